"""The methods of the suite: each says its name and every setting, and makes a fresh estimator."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Self

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reproduction.data import Sample
from surefoot.ambiguity import WassersteinBall
from surefoot.baselines import ERM, SAA, Forest, Shapley
from surefoot.costs import Newsvendor
from surefoot.datasets import SyntheticData
from surefoot.estimators import RobustNewsvendor, RobustPolicy
from surefoot.policies import Linear
from surefoot.solvers import DASGD, PrimalDual, Solver
from surefoot.typing import FloatArray


@dataclass(frozen=True)
class Facts:
    """What a fitted method says about itself beside its cost.

    Attributes
    ----------
    radius
        The radius used, in the method's own units; None where there is none.
    gap
        The certified gap of the training problem; None where nothing is certified.
    note
        A sentence or none.
    """

    radius: float | None = None
    gap: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Method(ABC):
    """A way to decide. Subclasses are frozen dataclasses whose fields are all their settings."""

    name: str
    label: str

    @abstractmethod
    def estimator(self, sample: Sample, seed: int) -> Any:
        """Return an unfitted estimator with fit(X, y) and predict(X)."""

    def why_not(self, sample: Sample) -> str | None:
        """Return why this method cannot treat the data, or None."""
        return None

    def facts(self, fitted: Any) -> Facts:
        """Return what the fitted estimator says about itself."""
        return Facts()

    def settings(self) -> dict[str, Any]:
        """Return every setting by name."""
        names = [field.name for field in fields(self)]
        chosen = {name: getattr(self, name) for name in names if name not in ("name", "label")}
        return {"method": type(self).__name__, **chosen}


def _standardised(model: Any, sample: Sample) -> Any:
    """Put a scaler in front where columns come in different units."""
    return make_pipeline(StandardScaler(), model) if sample.mixed_units else model


def _last(fitted: Any) -> Any:
    return fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted


@dataclass(frozen=True)
class Robust(Method):
    """Our linear policy, solved to a certified gap. The radius is in deviations of the columns."""

    radius: float | str = "auto"
    order: int = 2
    intercept: bool = True
    gap_tol: float = 0.01
    max_steps: int | None = None
    solver: str = "PrimalDual"

    def estimator(self, sample: Sample, seed: int) -> Any:
        """Return a ``RobustPolicy`` with the solver named."""
        return RobustPolicy(
            Newsvendor(sample.backorder, sample.holding),
            Linear(intercept=self.intercept),
            ball=WassersteinBall(self.radius, order=self.order, scale=True),
            solver=self._solver(),
            random_state=seed,
        )

    def _solver(self) -> Solver:
        if self.solver == "DASGD":
            return DASGD(gap_tol=self.gap_tol, max_steps=self.max_steps)
        return PrimalDual(self.gap_tol, self.max_steps or PrimalDual().max_steps)

    def facts(self, fitted: Any) -> Facts:
        """Return the radius, the certified gap and the solver's own sentence."""
        return Facts(fitted.radius_, float(fitted.certificate_.gap), fitted.status_)


@dataclass(frozen=True)
class Default(Method):
    """``RobustNewsvendor`` as it comes: nothing is set but the costs.

    ``nominal`` is its option: "auto", or a ``Forecaster`` with parts left out.
    """

    nominal: Any = "auto"

    def estimator(self, sample: Sample, seed: int) -> Any:
        """Return a ``RobustNewsvendor``."""
        return RobustNewsvendor(
            sample.backorder, sample.holding, nominal=self.nominal, random_state=seed
        )

    def facts(self, fitted: Any) -> Facts:
        """Return the radius, the certified gap if there is one, and the sentence about them."""
        gap = float(fitted.certificate_.gap)
        return Facts(fitted.radius_, gap if math.isfinite(gap) else None, fitted.status_)

    def settings(self) -> dict[str, Any]:
        """Return every setting by name."""
        return {"method": "Default", "nominal": repr(self.nominal)}


@dataclass(frozen=True)
class Literal(Method):
    """Algorithm 1 as printed: the norm of order 1, constant steps, no intercept, smoothed cost.

    The paper gives none of these numbers. They are the best all-round choice of a small search
    (alpha = beta in 1e-4, 1e-3, 1e-2; eta in 0.01, 0.1; radius in 0.01, 0.1) on data with another
    seed than the suite's. The radius is in the units of the columns, which are those of [0, 1]^s;
    on real data columns are divided by their standard deviation first.
    """

    alpha: float = 0.01
    beta: float = 0.01
    eta: float = 0.01
    K: int = 10
    epsilon: float = 1e-3
    steps: int = 10_000
    radius: float = 0.1
    order: int = 1
    smoothing: float = 0.1
    intercept: bool = False

    def estimator(self, sample: Sample, seed: int) -> Any:
        """Return a ``RobustPolicy`` with ``DASGD.literal``."""
        return RobustPolicy(
            Newsvendor(sample.backorder, sample.holding, self.smoothing),
            Linear(intercept=self.intercept),
            ball=WassersteinBall(self.radius, order=self.order, scale=sample.mixed_units),
            solver=DASGD.literal(
                alpha=self.alpha, beta=self.beta, eta=self.eta, K=self.K,
                epsilon=self.epsilon, steps=self.steps,
            ),
            random_state=seed,
        )  # fmt: skip

    def facts(self, fitted: Any) -> Facts:
        """Return the radius, the certified gap and the solver's own sentence."""
        return Facts(fitted.radius_, float(fitted.certificate_.gap), fitted.status_)


@dataclass(frozen=True)
class Constant(Method):
    """SAA: the outcome quantile, whatever the context."""

    def estimator(self, sample: Sample, seed: int) -> Any:
        """Return an ``SAA``."""
        return SAA(sample.backorder, sample.holding)


@dataclass(frozen=True)
class Empirical(Method):
    """NV-ERM1 and NV-ERM2: the linear policy of least training cost."""

    l1: float | str = 0.0
    tie_break: str = "vertex"
    intercept: bool = True

    def estimator(self, sample: Sample, seed: int) -> Any:
        """Return an ``ERM``."""
        model = ERM(
            sample.backorder, sample.holding, l1=self.l1, intercept=self.intercept,
            tie_break=self.tie_break, random_state=seed,
        )  # fmt: skip
        return _standardised(model, sample)

    def facts(self, fitted: Any) -> Facts:
        """Return the chosen strength and which optimum this is."""
        model = _last(fitted)
        return Facts(note=f"l1={model.l1_:.6g}. {model.tie_break_}")


@dataclass(frozen=True)
class RandomForest(Method):
    """RF: the outcome quantile under the weights of a random forest."""

    n_trees: int = 100
    min_leaf: int = 5
    max_features: float = 1 / 3

    def estimator(self, sample: Sample, seed: int) -> Any:
        """Return a ``Forest``."""
        return Forest(
            sample.backorder, sample.holding, n_trees=self.n_trees, min_leaf=self.min_leaf,
            max_features=self.max_features, random_state=seed,
        )  # fmt: skip


@dataclass(frozen=True)
class ShapleyPolicy(Method):
    """The robust policy among all functions, with the Shapley extension."""

    radius: float | str = "auto"

    def estimator(self, sample: Sample, seed: int) -> Any:
        """Return a ``Shapley``."""
        model = Shapley(sample.backorder, sample.holding, radius=self.radius, random_state=seed)
        return _standardised(model, sample)

    def facts(self, fitted: Any) -> Facts:
        """Return the radius; the linear program behind it is solved exactly."""
        model = _last(fitted)
        return Facts(model.radius_, note=f"worst case {model.worst_case_:.6g}")


class _Knowing:
    """The policy of someone who knows the model behind the rows."""

    def __init__(self, truth: SyntheticData, backorder: float, holding: float) -> None:
        self.truth, self.backorder, self.holding = truth, backorder, holding

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Nothing to learn."""
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the conditional quantile."""
        return self.truth.oracle_decisions(X, self.backorder, self.holding)


@dataclass(frozen=True)
class Oracle(Method):
    """The best decision of all, known only because the model is."""

    def why_not(self, sample: Sample) -> str | None:
        """Real data have no known truth."""
        return "the truth behind real data is not known" if sample.truth is None else None

    def estimator(self, sample: Sample, seed: int) -> Any:
        """Return the policy that knows."""
        if sample.truth is None:
            raise AssertionError("why_not comes first")
        return _Knowing(sample.truth, sample.backorder, sample.holding)


METHODS: tuple[Method, ...] = (
    Robust("ours-auto-2", "robust linear"),
    Default("surefoot", "Surefoot"),
    Robust("ours-auto-1", "robust linear, order 1", order=1),
    Robust("ours-auto-2-plain", "robust linear, no intercept", intercept=False),
    Robust("ours-fixed-2", "robust linear, radius 0.3", radius=0.3),
    Robust("ours-fixed-1", "robust linear, order 1, radius 0.3", radius=0.3, order=1),
    Literal("literal", "DA-SGD as printed"),
    Constant("saa", "SAA"),
    Empirical("erm-vertex", "NV-ERM1, vertex"),
    Empirical("erm-norm", "NV-ERM1, minimum norm", tie_break="minimum_norm"),
    Empirical("erm-l1", "NV-ERM2", l1="auto"),
    RandomForest("forest", "RF"),
    ShapleyPolicy("shapley-auto", "Shapley"),
    ShapleyPolicy("shapley-fixed", "Shapley, radius 0.1", radius=0.1),
    Oracle("oracle", "Oracle"),
)
