"""Read a model file back into an estimator."""

from pathlib import Path
from typing import Any

from surefoot.estimators.model_file import restore, restore_columns, restore_levels, unfitted
from surefoot.estimators.preparation import Plan, PreparedPolicy
from surefoot.estimators.robust_estimator import RobustEstimator
from surefoot.estimators.robust_newsvendor import RobustNewsvendor
from surefoot.estimators.robust_policy import RobustPolicy
from surefoot.exceptions import InvalidInputError, InvalidTypeError, ModelFileError
from surefoot.io import read_archive, unpack

_ESTIMATORS = {cls.__name__: cls for cls in (RobustPolicy, RobustNewsvendor)}


def load(path: str | Path) -> RobustEstimator | PreparedPolicy:
    """Return the fitted estimator that ``model.save(path)`` wrote.

    The file is checked first (kind, version, sizes, checksums), every value in it again when it is
    used, and nothing in it is executed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import surefoot
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=30, s=3, seed=0)
    >>> model = surefoot.RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "m.surefoot"
    >>> model.save(path)
    >>> bool((surefoot.load(path).predict(data.X) == model.predict(data.X)).all())
    True
    """
    return from_parts(path, *read_archive(path))


def from_parts(
    path: str | Path, header: dict[str, Any], arrays: dict[str, Any]
) -> RobustEstimator | PreparedPolicy:
    """Return the fitted estimator of a model file that was read already."""
    if header.get("estimator") != PreparedPolicy.__name__:
        return _fitted(path, header, arrays)
    try:
        model = unfitted(path, header["unfitted"], arrays, _ESTIMATORS)
        policy: PreparedPolicy = unfitted(
            path,
            header,
            arrays,
            {PreparedPolicy.__name__: lambda **given: PreparedPolicy(model, **given)},
        )
        _restore_preparation(policy, _fitted(path, header["model"], arrays), header, arrays)
    except (AttributeError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} does not fit this version of Surefoot: {error}.") from error
    return policy


def _restore_preparation(
    policy: PreparedPolicy, model: RobustEstimator, header: dict[str, Any], arrays: dict[str, Any]
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
    restore_columns(policy, len(plan.kinds), header["names"])
    policy.plan_ = plan
    policy._label_columns(model)
    policy.model_, policy._given = model, policy.options()


def _fitted(path: str | Path, header: dict[str, Any], arrays: dict[str, Any]) -> RobustEstimator:
    levels = header.get("levels")
    if levels is not None:
        return _with_levels(path, header, levels, arrays)
    estimator: RobustEstimator = unfitted(path, header, arrays, _ESTIMATORS)
    restore(estimator, header, arrays)
    return estimator


def _with_levels(
    path: str | Path, header: dict[str, Any], levels: Any, arrays: dict[str, Any]
) -> RobustEstimator:
    """Return a model that learned a policy for each cost ratio."""
    kinds = {RobustNewsvendor.__name__: RobustNewsvendor}
    estimator: RobustEstimator = unfitted(path, header, arrays, kinds)
    try:
        models = []
        for one in levels["models"]:
            model = unfitted(path, one, arrays, kinds)
            restore(model, one, arrays)
            models.append(model)
        restore_levels(estimator, models, levels)
    except ModelFileError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path} does not fit this version of Surefoot: {error}.") from error
    return estimator
