"""A prepared policy as parts of a model file: its plan is JSON, its arrays are the model's."""

import dataclasses
from typing import Any

import numpy as np

from surefoot.estimators.model_file import Parts, model_parts
from surefoot.estimators.persistence import encode
from surefoot.estimators.preparation.blocks import assemble
from surefoot.estimators.preparation.plan import CategoryPart, NumberPart, Plan
from surefoot.exceptions import ModelFileError


def prepared_parts(policy: Any) -> Parts:
    """Return header and arrays that say all about a fitted ``PreparedPolicy``."""
    fitted, arrays = model_parts(policy.model_)
    unfitted = policy.model.get_params(deep=False)
    header = {
        "estimator": type(policy).__name__,
        "parameters": {name: encode(name, value) for name, value in policy.options().items()},
        "plan": dataclasses.asdict(policy.plan_),
        "columns": policy.n_features_in_,
        "names": [str(name) for name in getattr(policy, "feature_names_in_", ())] or None,
        "unfitted": {
            "estimator": type(policy.model).__name__,
            "parameters": {name: encode(name, value) for name, value in unfitted.items()},
        },
        "fitted": fitted,
    }
    return header, arrays


def restore_preparation(policy: Any, model: Any, header: dict[str, Any]) -> None:
    """Give an unfitted ``PreparedPolicy`` its fitted model and all else that the header says."""
    try:
        policy.plan_ = _plan(header["plan"])
        policy.n_features_in_ = int(header["columns"])
        if header["names"] is not None:
            policy.feature_names_in_ = np.array(header["names"], dtype=object)
    except (KeyError, TypeError) as error:
        raise ModelFileError(f"The model file lacks a part that it must have: {error}.") from error
    policy.transformer_ = assemble(*policy.plan_.blocks())
    policy.model_, policy._given = model, policy.options()


def _plan(parts: dict[str, Any]) -> Plan:
    def category(part: dict[str, Any]) -> CategoryPart:
        lists = {name: tuple(part[name]) for name in ("levels", "shares", "rare")}
        return CategoryPart(**{**part, **lists})

    return Plan(
        kinds=tuple(parts["kinds"]),
        numbers=tuple(NumberPart(**part) for part in parts["numbers"]),
        categories=tuple(category(part) for part in parts["categories"]),
        constant=tuple(category(part) for part in parts["constant"]),
    )
