"""Which parts of a fitted estimator go into a model file, and how they come back."""

import dataclasses
from typing import Any

import numpy as np

from surefoot.certificates import Certificate
from surefoot.estimators.centring import Centre
from surefoot.estimators.learning import restored_learner
from surefoot.estimators.persistence import decode, encode
from surefoot.estimators.selection import RadiusPath
from surefoot.exceptions import ModelFileError
from surefoot.typing import FloatArray

Parts = tuple[dict[str, Any], dict[str, FloatArray]]


def model_parts(estimator: Any) -> Parts:
    """Return header and arrays that say all about a fitted estimator."""
    if estimator._recipe() != estimator._given_recipe:
        raise ModelFileError(
            "The parameters must be those of the fit to be saved, got others: call fit again."
        )
    header: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "parameters": {
            name: encode(name, value) for name, value in estimator.get_params(deep=False).items()
        },
        "certificate": {
            name: encode(name, value)
            for name, value in dataclasses.asdict(estimator.certificate_).items()
        },
        "radius": estimator.radius_,
        "converged": estimator.converged_,
        "status": estimator.status_,
        "n_steps": estimator.n_steps_,
        "policy": encode("policy", estimator._fitted_recipe.policy),
        "learner": type(estimator._learner).__name__,
        "single": estimator._single,
        "outcomes": estimator._n_outcomes,
        "columns": estimator.n_features_in_,
        "names": [str(name) for name in getattr(estimator, "feature_names_in_", ())] or None,
    }
    arrays = estimator._learner.arrays() | {"multiplier": np.atleast_1d(estimator.multiplier_)}
    if estimator.centre_ is not None:
        arrays |= estimator.centre_.arrays()
    path = getattr(estimator, "radius_path_", None)
    if path is not None:
        arrays["path_radii"] = path.radii
        arrays["path_fold_costs"] = path.fold_costs
        arrays["path_fold_weights"] = path.fold_weights
    return header, arrays


def restore(estimator: Any, header: dict[str, Any], arrays: dict[str, FloatArray]) -> None:
    """Give an unfitted estimator everything that ``model_parts`` took from a fitted one."""
    try:
        estimator._single = bool(header["single"])
        estimator.multiplier_ = estimator._per_product(arrays["multiplier"])
        estimator.certificate_ = Certificate(
            **{name: decode(value) for name, value in header["certificate"].items()}
        )
        estimator.radius_ = float(header["radius"])
        estimator.converged_, estimator.status_ = bool(header["converged"]), str(header["status"])
        estimator.n_steps_, estimator.history_ = int(header["n_steps"]), ()
        estimator.n_features_in_ = int(header["columns"])
        if header["names"] is not None:
            estimator.feature_names_in_ = np.array(header["names"], dtype=object)
        if "path_radii" in arrays:
            estimator.radius_path_ = RadiusPath(
                arrays["path_radii"], arrays["path_fold_costs"], arrays["path_fold_weights"],
                estimator.radius_,
            )  # fmt: skip
        estimator._given_recipe = estimator._recipe()
        policy = decode(header["policy"])
        estimator._fitted_recipe = dataclasses.replace(estimator._given_recipe, policy=policy)
        estimator._n_outcomes = int(header["outcomes"])
        estimator.centre_ = Centre.restore(estimator._n_outcomes, arrays)
        learner = restored_learner(
            header["learner"], estimator._fitted_recipe, estimator.radius_,
            estimator.n_features_in_, arrays,
        )  # fmt: skip
        estimator._learner = learner
        estimator.parameters_ = estimator._whole(learner.parameters)
        estimator.scale_, estimator.movable_ = learner.scale, learner.movable
    except (KeyError, TypeError) as error:
        raise ModelFileError(f"The model file lacks a part that it must have: {error}.") from error
