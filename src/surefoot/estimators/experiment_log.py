"""MLflow: its autologging sees our estimators, and not the forests and models inside them.

``mlflow.sklearn.autolog()`` watches the classes of scikit-learn alone. Without what follows it records
a forest that nobody asked for as the model of the run.
"""

import functools
import importlib
import math
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from surefoot.exceptions import MissingExtraError, SurefootWarning, warn_user

# Whether a fit is being recorded, so that fits inside it are not.
_RECORDING: ContextVar[bool] = ContextVar("recording", default=False)
LONGEST = 500  # letters of a parameter that MLflow keeps
MEASURES = ("radius_", "n_steps_")
BOUNDS = ("upper", "lower", "gap")


def recorded(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let MLflow's autologging, where it is on, record one fit: that of the outermost model."""

    @functools.wraps(fit)
    def fit_on_record(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _watched():
            return fit(self, *args, **kwargs)
        return _record(self, functools.partial(fit, self, *args, **kwargs))

    return fit_on_record


def skops_types(model: Any) -> list[str]:
    """Return the classes of Surefoot that a model holds, for those who load it with skops.

    MLflow and Hugging Face keep scikit-learn models in the format of skops, which restores classes of
    other packages only if they are named. Classes of neither Surefoot nor scikit-learn are not named
    here: look at them yourself.

    Examples
    --------
    >>> from surefoot import RobustNewsvendor
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=30, s=3, seed=0)
    >>> model = RobustNewsvendor(radius=0.1).fit(data.X, data.y)
    >>> skops_types(model)[-1]  # doctest: +SKIP
    'surefoot.solvers.base.Progress'
    """
    try:
        skops = importlib.import_module("skops.io")
    except ImportError as error:
        raise MissingExtraError("skops_types needs skops: pip install skops") from error
    untrusted: list[str] = skops.get_untrusted_types(data=skops.dumps(model))
    return [name for name in untrusted if name.startswith("surefoot.")]


def _watched() -> bool:
    """Whether MLflow's autologging of scikit-learn is on, and no outer fit is being recorded."""
    tools: Any = sys.modules.get("mlflow.utils.autologging_utils")
    if tools is None or "mlflow.sklearn" not in sys.modules:
        return False
    if _RECORDING.get() or tools.autologging_is_disabled("sklearn"):
        return False
    session = getattr(getattr(tools, "safety", None), "_AutologgingSessionManager", None)
    return session is None or session.active_session() is None


def _record(model: Any, fit: Callable[[], Any]) -> Any:
    """Fit within a run of MLflow, the active one or a new one, and write down what came out."""
    mlflow: Any = sys.modules["mlflow"]
    tools: Any = sys.modules["mlflow.utils.autologging_utils"]
    own = mlflow.active_run() is None
    begun = _told(lambda: _begin(model))
    token, ended = _RECORDING.set(True), "FAILED"
    try:
        with tools.disable_autologging():
            fitted = fit()
        if begun:
            _told(lambda: _end(fitted))
        ended = "FINISHED"
        return fitted
    finally:
        _RECORDING.reset(token)
        if own and begun:
            _told(lambda: mlflow.end_run(ended))


def _told(write: Callable[[], Any]) -> bool:
    """Return whether MLflow could write; where it could not, the fit is none the worse."""
    try:
        write()
    except (sys.modules["mlflow"].MlflowException, MissingExtraError) as error:
        reason = str(error).partition("\n")[0]
        warn_user(f"MLflow did not record the fit: {reason}", SurefootWarning)
        return False
    return True


def _begin(model: Any) -> None:
    """Start a run, if there is none, and write down what is to be fitted."""
    mlflow: Any = sys.modules["mlflow"]
    if mlflow.active_run() is None:
        mlflow.start_run()
    kind = type(model)
    mlflow.set_tags(
        {"estimator_name": kind.__name__, "estimator_class": f"{kind.__module__}.{kind.__name__}"}
    )
    mlflow.log_params({k: str(v)[:LONGEST] for k, v in model.get_params(deep=True).items()})


def _end(model: Any) -> None:
    """Write down what came out and, unless the user has said no, keep the model."""
    mlflow: Any = sys.modules["mlflow"]
    tools: Any = sys.modules["mlflow.utils.autologging_utils"]
    mlflow.log_metrics(_measures(model))
    if tools.get_autologging_config("sklearn", "log_models", True):
        mlflow.sklearn.log_model(model, name="model", skops_trusted_types=skops_types(model))


def _measures(model: Any) -> dict[str, float]:
    """Return the finite numbers that a fit ends with."""
    model = getattr(model, "model_", model)  # of a prepared policy
    measures = {name.rstrip("_"): getattr(model, name, None) for name in MEASURES}
    certificate = getattr(model, "certificate_", None)
    measures |= {f"certificate_{name}": getattr(certificate, name, None) for name in BOUNDS}
    numbers = {name: value for name, value in measures.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}
