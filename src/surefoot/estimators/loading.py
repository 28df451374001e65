"""Read a model file back into an estimator."""

from pathlib import Path
from typing import Any

from surefoot.estimators.model_file import read_model, restore, restore_levels, unfitted
from surefoot.estimators.preparation import PreparedPolicy
from surefoot.estimators.preparation.file import restore_preparation
from surefoot.estimators.robust_estimator import RobustEstimator
from surefoot.estimators.robust_newsvendor import RobustNewsvendor
from surefoot.estimators.robust_policy import RobustPolicy
from surefoot.exceptions import ModelFileError

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
    return from_parts(path, *read_model(path))


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
        restore_preparation(policy, _fitted(path, header["model"], arrays), header, arrays)
    except (AttributeError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} does not fit this version of Surefoot: {error}.") from error
    return policy


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
