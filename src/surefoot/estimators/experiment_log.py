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
    found: list[str] = skops.get_untrusted_types(data=skops.dumps(model))
    return [name for name in found if name.startswith("surefoot.")]


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
    if own:
        mlflow.start_run()
    done, token = False, _RECORDING.set(True)
    try:
        mlflow.set_tags({
            "estimator_name": type(model).__name__,
            "estimator_class": f"{type(model).__module__}.{type(model).__name__}",
        })  # fmt: skip
        mlflow.log_params({k: str(v)[:LONGEST] for k, v in model.get_params(deep=True).items()})
        with tools.disable_autologging():
            fitted = fit()
        mlflow.log_metrics(_measures(fitted))
        if tools.get_autologging_config("sklearn", "log_models", True):
            _log_model(fitted)
        done = True
        return fitted
    finally:
        _RECORDING.reset(token)
        if own:
            mlflow.end_run("FINISHED" if done else "FAILED")


def _measures(model: Any) -> dict[str, float]:
    """Return the finite numbers that a fit ends with."""
    model = getattr(model, "model_", model)  # of a prepared policy
    found = {name.rstrip("_"): getattr(model, name, None) for name in MEASURES}
    certificate = getattr(model, "certificate_", None)
    found |= {f"certificate_{name}": getattr(certificate, name, None) for name in BOUNDS}
    numbers = {name: value for name, value in found.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}


def _log_model(model: Any) -> None:
    """Keep the model in MLflow's own format; where that fails, the fit is none the worse."""
    mlflow: Any = sys.modules["mlflow"]
    try:
        mlflow.sklearn.log_model(model, name="model", skops_trusted_types=skops_types(model))
    except (mlflow.MlflowException, MissingExtraError) as error:
        reason = str(error).partition("\n")[0]
        warn_user(f"MLflow recorded the fit, but did not keep the model: {reason}", SurefootWarning)
