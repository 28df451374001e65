"""Which parts of a fitted estimator go into a model file, and how they come back."""

import dataclasses
from typing import Any

import numpy as np

from surefoot.certificates import Certificate
from surefoot.estimators.persistence import decode, encode
from surefoot.estimators.selection import RadiusPath
from surefoot.estimators.stream import Stream
from surefoot.exceptions import ModelFileError
from surefoot.policies import LinearParameters
from surefoot.solvers.adaptive import pack
from surefoot.typing import FloatArray

Parts = tuple[dict[str, Any], dict[str, FloatArray]]


def model_parts(estimator: Any) -> Parts:
    """Return header and arrays that say all about a fitted estimator."""
    if estimator._recipe() != estimator._fitted_recipe:
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
        "single": estimator._single,
        "columns": estimator.n_features_in_,
        "names": [str(name) for name in getattr(estimator, "feature_names_in_", ())] or None,
    }
    arrays = {
        "theta": estimator.parameters_.theta,
        "intercept": estimator.parameters_.intercept,
        "multiplier": np.atleast_1d(estimator.multiplier_),
        "scale": estimator.scale_,
        "movable": estimator.movable_,
    }
    path = getattr(estimator, "radius_path_", None)
    if path is not None:
        arrays["path_radii"] = path.radii
        arrays["path_fold_costs"] = path.fold_costs
        arrays["path_fold_weights"] = path.fold_weights
    for j, stream in enumerate(estimator._streams):
        arrays[f"stream_{j}_theta"] = stream.state.theta
        arrays[f"stream_{j}_numbers"] = pack(stream.state)
        arrays[f"stream_{j}_mean"] = stream.arrangement.mean
    return header, arrays


def restore(estimator: Any, header: dict[str, Any], arrays: dict[str, FloatArray]) -> None:
    """Give an unfitted estimator everything that ``model_parts`` took from a fitted one."""
    try:
        estimator.parameters_ = LinearParameters(arrays["theta"], arrays["intercept"])
        estimator._single = bool(header["single"])
        estimator.multiplier_ = estimator._per_product(arrays["multiplier"])
        estimator.scale_, estimator.movable_ = arrays["scale"], arrays["movable"]
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
        estimator._fitted_recipe = estimator._recipe()
        estimator._streams = _streams(estimator, arrays)
    except (KeyError, TypeError) as error:
        raise ModelFileError(f"The model file lacks a part that it must have: {error}.") from error


def _streams(estimator: Any, arrays: dict[str, FloatArray]) -> list[Stream]:
    geometry = estimator._geometry()
    return [
        Stream.restore(
            problem,
            arrays[f"stream_{j}_mean"],
            arrays[f"stream_{j}_theta"],
            arrays[f"stream_{j}_numbers"],
        )
        for j, problem in enumerate(geometry)
    ]
