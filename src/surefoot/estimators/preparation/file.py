"""A prepared policy as parts of a model file: its plan, and the fitted model behind it."""

from typing import Any

import numpy as np

from surefoot.estimators.model_checks import check_names
from surefoot.estimators.model_file import Parts, model_parts, packed_parameters
from surefoot.estimators.preparation.plan import Plan
from surefoot.exceptions import InvalidInputError, InvalidTypeError, ModelFileError
from surefoot.io import pack, unpack


def prepared_parts(policy: Any) -> Parts:
    """Return header and arrays that say all about a fitted ``PreparedPolicy``."""
    fitted, arrays = model_parts(policy.model_, {})
    header = {
        "estimator": type(policy).__name__,
        "parameters": {name: pack(name, value, arrays) for name, value in policy.options().items()},
        "plan": pack("plan", policy.plan_, arrays),
        "columns": policy.n_features_in_,
        "names": [str(name) for name in getattr(policy, "feature_names_in_", ())] or None,
        "unfitted": {
            "estimator": type(policy.model).__name__,
            "parameters": packed_parameters(policy.model, arrays),
        },
        "model": fitted,
    }
    return header, arrays


def restore_preparation(
    policy: Any, model: Any, header: dict[str, Any], arrays: dict[str, Any]
) -> None:
    """Give an unfitted ``PreparedPolicy`` its fitted model and all else that the header says."""
    plan = unpack(header["plan"], arrays)
    if not isinstance(plan, Plan) or max(len(plan.names), 1) != model.n_features_in_:
        raise ModelFileError("The file's preparation does not fit its model.")
    if header["columns"] != len(plan.kinds):
        raise ModelFileError(
            f"The file must hold {len(plan.kinds)} columns, got {header['columns']!r}."
        )
    try:
        policy.check_options()
    except (InvalidInputError, InvalidTypeError) as error:
        raise ModelFileError(f"The file's preparation cannot be: {error}") from error
    policy.plan_, policy.n_features_in_ = plan, len(plan.kinds)
    if header["names"] is not None:
        check_names(header["names"], len(plan.kinds))
        policy.feature_names_in_ = np.array(header["names"], dtype=object)
    policy._label_columns(model)
    policy.model_, policy._given = model, policy.options()
