"""Read a model file back into an estimator."""

from pathlib import Path

from surefoot.estimators.base import RobustEstimator
from surefoot.estimators.model_file import restore
from surefoot.estimators.persistence import decode, read_file
from surefoot.estimators.robust_newsvendor import RobustNewsvendor
from surefoot.estimators.robust_policy import RobustPolicy
from surefoot.exceptions import ModelFileError

_ESTIMATORS = {cls.__name__: cls for cls in (RobustPolicy, RobustNewsvendor)}


def load(path: str | Path) -> RobustEstimator:
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
    name = header.get("estimator")
    if name not in _ESTIMATORS:
        raise ModelFileError(
            f"{path} must hold {' or '.join(_ESTIMATORS)}, got {name!r}: upgrade Surefoot."
        )
    try:
        parameters = {key: decode(value) for key, value in header["parameters"].items()}
        estimator = _ESTIMATORS[name](**parameters)
    except (AttributeError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} does not fit this version of Surefoot: {error}.") from error
    restore(estimator, header, arrays)
    return estimator
