"""Read a model file back into an estimator."""

from pathlib import Path
from typing import Any

from surefoot.estimators.base import RobustEstimator
from surefoot.estimators.model_file import restore
from surefoot.estimators.persistence import decode, read_file
from surefoot.estimators.preparation import PreparedPolicy
from surefoot.estimators.preparation.file import restore_preparation
from surefoot.estimators.robust_newsvendor import RobustNewsvendor
from surefoot.estimators.robust_policy import RobustPolicy
from surefoot.exceptions import ModelFileError
from surefoot.typing import FloatArray

_ESTIMATORS = {cls.__name__: cls for cls in (RobustPolicy, RobustNewsvendor)}


def load(path: str | Path) -> RobustEstimator | PreparedPolicy:
    """Return the fitted estimator that ``model.save(path)`` wrote.

    The file is checked first (kind, version, checksums) and nothing in it is executed.

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
    header, arrays = read_file(path)
    if header.get("estimator") == PreparedPolicy.__name__:
        return _prepared(path, header, arrays)
    return _fitted(path, header, arrays)


def _unfitted(path: str | Path, header: dict[str, Any]) -> RobustEstimator:
    """Return the estimator that a header names, with its parameters."""
    name = header.get("estimator")
    if name not in _ESTIMATORS:
        raise ModelFileError(
            f"{path} must hold {' or '.join(_ESTIMATORS)}, got {name!r}: upgrade Surefoot."
        )
    try:
        parameters = {key: decode(value) for key, value in header["parameters"].items()}
        return _ESTIMATORS[name](**parameters)
    except (AttributeError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} does not fit this version of Surefoot: {error}.") from error


def _fitted(path: str | Path, header: dict[str, Any], arrays: dict[str, FloatArray]) -> RobustEstimator:
    estimator = _unfitted(path, header)
    restore(estimator, header, arrays)
    return estimator


def _prepared(
    path: str | Path, header: dict[str, Any], arrays: dict[str, FloatArray]
) -> PreparedPolicy:
    try:
        options = {key: decode(value) for key, value in header["parameters"].items()}
        policy = PreparedPolicy(_unfitted(path, header["unfitted"]), **options)
        model = _fitted(path, header["fitted"], arrays)
    except (AttributeError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} does not fit this version of Surefoot: {error}.") from error
    restore_preparation(policy, model, header)
    return policy
