"""Which parts of a fitted estimator go into a model file, and how they come back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.ambiguity import AmbiguitySet
from surefoot.engines.stream import why_no_stream
from surefoot.estimators.data_warnings import plain_labels
from surefoot.estimators.model_checks import (
    check_kinds,
    check_learning,
    check_levels,
    check_multiplier,
    check_names,
    check_parameters,
)
from surefoot.estimators.scikit_learn_habits import seed_from
from surefoot.exceptions import ModelFileError
from surefoot.io import pack, unpack, write_archive
from surefoot.nominals import Empirical
from surefoot.policies import Policy
from surefoot.problem import Problem
from surefoot.typing import FloatArray

Parts = tuple[dict[str, Any], dict[str, Any]]


def save_model(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator to a file."""
    write_archive(path, *model_parts(estimator, {}))


def model_parts(estimator: Any, arrays: dict[str, Any]) -> Parts:
    """Return header and arrays that say all about a fitted estimator."""
    if hasattr(estimator, "levels_"):
        return _level_parts(estimator, arrays), arrays
    if estimator._recipe() != estimator._given_recipe:
        raise ModelFileError(
            "The parameters must be those of the fit to be saved, got others: call fit again."
        )
    problem = estimator.problem_
    fitted = {
        "policy": problem.policy,
        "ball": problem.ball,
        "asked_ball": estimator._ball,
        "parameters": estimator.parameters_,
        "certificate": estimator.certificate_,
        "multiplier": np.atleast_1d(estimator.multiplier_),
        "converged": estimator.converged_,
        "status": estimator.status_,
        "n_steps": estimator.n_steps_,
        "single": estimator._single,
        "outcomes": estimator._n_outcomes,
        **_columns(estimator),
        "outcome_names": getattr(estimator, "_outcome_names", None),
        "radius_path": getattr(estimator, "radius_path_", None),
        "stream": estimator.stream_arrays(),
    }
    header = {
        "estimator": type(estimator).__name__,
        "parameters": packed_parameters(estimator, arrays),
        "fitted": {name: pack(name, value, arrays) for name, value in fitted.items()},
    }
    return header, arrays


def _level_parts(estimator: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the header of an estimator that has a policy for each of some cost ratios."""
    return {
        "estimator": type(estimator).__name__,
        "parameters": packed_parameters(estimator, arrays),
        "levels": {
            "ratios": estimator.cost_levels_.tolist(),
            "models": [model_parts(level, arrays)[0] for level in estimator.levels_],
            **_columns(estimator),
            "outcome_names": estimator._outcome_names,
        },
    }


def prepared_parts(policy: Any) -> Parts:
    """Return header and arrays that say all about a fitted ``PreparedPolicy``."""
    fitted, arrays = model_parts(policy.model_, {})
    header = {
        "estimator": type(policy).__name__,
        "parameters": {name: pack(name, value, arrays) for name, value in policy.options().items()},
        "plan": pack("plan", policy.plan_, arrays),
        **_columns(policy),
        "unfitted": {
            "estimator": type(policy.model).__name__,
            "parameters": packed_parameters(policy.model, arrays),
        },
        "model": fitted,
    }
    return header, arrays


def _columns(estimator: Any) -> dict[str, Any]:
    """Return how many columns an estimator was fitted to, and their names if they have any."""
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    return {"columns": estimator.n_features_in_, "names": names or None}


def restore_columns(estimator: Any, columns: int, names: Any) -> None:
    """Give an estimator its columns and their names, checked."""
    check_names(names, columns)
    estimator.n_features_in_ = columns
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def packed_parameters(estimator: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the constructor's parameters of an estimator as JSON."""
    given = estimator.get_params(deep=False)
    return {name: pack(name, value, arrays) for name, value in given.items()}


def unfitted(path: Any, header: dict[str, Any], arrays: dict[str, Any], kinds: dict[str, Any]) -> Any:
    """Return the estimator that a header names, with its parameters."""
    name = header.get("estimator")
    if not isinstance(name, str) or name not in kinds:
        raise ModelFileError(f"{path} must hold {' or '.join(kinds)}, got {name!r}: upgrade Surefoot.")
    try:
        parameters = {key: unpack(value, arrays) for key, value in header["parameters"].items()}
        return kinds[name](**parameters)
    except (AttributeError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} does not fit this version of Surefoot: {error}.") from error


def restore(estimator: Any, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Give an unfitted estimator everything that ``model_parts`` took from a fitted one, checked."""
    try:
        fitted = {name: unpack(value, arrays) for name, value in header["fitted"].items()}
        _restore(estimator, fitted)
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ModelFileError(f"The model file lacks a part that it must have: {error}.") from error


def _restore(estimator: Any, fitted: dict[str, Any]) -> None:
    check_kinds(fitted)
    columns, outcomes, names = fitted["columns"], fitted["outcomes"], fitted["names"]
    policy, ball = fitted["policy"], fitted["ball"]
    restore_columns(estimator, columns, names)
    check_names(fitted["outcome_names"], outcomes)
    estimator._given_recipe = estimator._recipe()
    estimator.seed_ = seed_from(estimator.random_state)
    row = Empirical(_inside(ball, columns, policy), np.zeros((1, outcomes)), names=names)
    estimator.problem_ = Problem(estimator._given_recipe.cost, policy, row, ball)
    check_parameters(estimator.problem_, fitted["parameters"])
    check_parameters(replace(estimator.problem_, ball=fitted["asked_ball"]), fitted["parameters"])
    estimator.parameters_, estimator._ball = fitted["parameters"], fitted["asked_ball"]
    estimator._certificate = fitted["certificate"]
    estimator._n_outcomes, estimator._single = outcomes, fitted["single"]
    estimator.radius_ = ball.size
    estimator.converged_, estimator.status_ = fitted["converged"], fitted["status"]
    estimator.n_steps_, estimator.history_ = fitted["n_steps"], ()
    estimator.suspects_ = ()  # a file holds no rows
    estimator._outcome_names = fitted["outcome_names"]
    if fitted["radius_path"] is not None:
        estimator.radius_path_ = fitted["radius_path"]
    check_multiplier(fitted["multiplier"], estimator.problem_.cost.n_decisions(outcomes))
    estimator._multiplier = estimator._per_product(fitted["multiplier"])
    if why_no_stream(estimator._ball) is None:
        check_learning(estimator, columns, fitted["stream"])
        estimator._stream_arrays = fitted["stream"]


def restore_levels(estimator: Any, models: list[Any], levels: dict[str, Any]) -> None:
    """Give an unfitted estimator its policies, one for each cost ratio, checked."""
    ratios = np.asarray(levels["ratios"], dtype=np.float64)
    columns, names = levels["columns"], levels["names"]
    restore_columns(estimator, columns, names)
    check_names(levels["outcome_names"], 1)
    check_levels(ratios, models, columns)
    estimator._take_levels(tuple(models), ratios)
    estimator.seed_ = models[0].seed_
    estimator._outcome_names = levels["outcome_names"]
    estimator.suspects_ = ()  # a file holds no rows
    estimator.label_columns(plain_labels(columns, names))


def _inside(ball: AmbiguitySet, columns: int, policy: Policy) -> FloatArray:
    """Return a row of contexts that lies in the support of a set."""
    row = np.zeros((1, columns))
    if ball.support is None or policy.features is not None:
        return row
    return np.clip(row, *ball.support.arrays(columns))
