"""Methods on a stream. Each decides on a row before it sees that row's outcome."""

import bisect
import importlib
import importlib.util
import math
import warnings
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction.stream_measures import critical_share
from surefoot.ambiguity import WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.estimators import RobustPolicy
from surefoot.exceptions import ConvergenceWarning, DataWarning
from surefoot.online import DecayingRadius, OnlinePolicy, Restart, Window
from surefoot.typing import FloatArray


class StreamMethod(ABC):
    """Makes the decisions of a whole stream, row by row.

    ``decisions(X, y)[t]`` depends on the rows before t, on the context of row t, and on nothing else.
    """

    @abstractmethod
    def decisions(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Return one decision a row, shape (rows,)."""

    def why_not(self) -> str | None:
        """Return why the method cannot run here, or None."""
        return None

    @abstractmethod
    def described(self) -> str:
        """Return the settings, for people."""


@dataclass(frozen=True)
class Online(StreamMethod):
    """``OnlinePolicy``: one DA-SGD update a row."""

    cost: Newsvendor
    ball: WassersteinBall
    decay: bool = False
    drift: Restart | Window | None = None

    def policy(self) -> OnlinePolicy:
        """Return a policy that has seen nothing."""
        radius = DecayingRadius() if self.decay else None
        return OnlinePolicy(self.cost, ball=self.ball, radius=radius, drift=self.drift)

    def decisions(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Decide and learn, row by row."""
        return self.policy().decide_and_learn(X, y)

    def described(self) -> str:
        """Return radius and drift handling."""
        falling = " falling as 1/√t" if self.decay else ""
        drift = "" if self.drift is None else f", {self.drift}"
        return f"radius {self.ball.radius:g}{falling}{drift}"


@dataclass(frozen=True)
class WindowSAA(StreamMethod):
    """The b/(b+h) quantile of the newest outcomes, whatever the context.

    Examples
    --------
    >>> WindowSAA(Newsvendor(1.0, 1.0), 3).decisions(np.zeros((5, 1)), np.array([1.0, 5, 3, 9, 9]))
    array([0., 1., 1., 3., 5.])
    """

    cost: Newsvendor
    rows: int

    def decisions(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Return running quantiles; zero before the first outcome."""
        share = critical_share(self.cost)
        newest: deque[float] = deque()
        ranked: list[float] = []
        made = np.zeros(len(y))
        for t, outcome in enumerate(y.tolist()):
            if ranked:
                # The smallest outcome with at least this share at or below it.
                made[t] = ranked[max(math.ceil(share * len(ranked) - 1e-12) - 1, 0)]
            newest.append(outcome)
            bisect.insort(ranked, outcome)
            if len(newest) > self.rows:
                del ranked[bisect.bisect_left(ranked, newest.popleft())]
        return made

    def described(self) -> str:
        """Return the window."""
        return f"the newest {self.rows} rows"


@dataclass(frozen=True)
class RiverQuantile(StreamMethod):
    """River's linear model with the pinball cost, contexts and outcomes standardised as they come."""

    cost: Newsvendor
    step: float

    def why_not(self) -> str | None:
        """Return why the method cannot run here."""
        if importlib.util.find_spec("river") is None:
            return 'river is not installed: pip install "surefoot[online]"'
        return None

    def decisions(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Predict, then learn, row by row."""
        model = self._model()
        names = [f"x{j}" for j in range(X.shape[1])]
        made = np.zeros(len(y))
        for t, (row, outcome) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
            x = dict(zip(names, row, strict=True))
            made[t] = model.predict_one(x)
            model.learn_one(x, outcome)
        return made

    def _model(self) -> Any:
        linear = importlib.import_module("river.linear_model")
        optim = importlib.import_module("river.optim")
        preprocessing = importlib.import_module("river.preprocessing")
        share = critical_share(self.cost)
        model = linear.LinearRegression(
            optimizer=optim.SGD(self.step), loss=optim.losses.Quantile(share), intercept_lr=self.step
        )
        return preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(regressor=model)

    def described(self) -> str:
        """Return the step size."""
        return f"LinearRegression, Quantile, SGD({self.step:g}), standardised contexts and outcomes"


@dataclass(frozen=True)
class Refit(StreamMethod):
    """``RobustPolicy`` fitted anew on all rows so far, at the end of each day.

    Attributes
    ----------
    day
        Rows in a day.
    first
        Rows before the first fit; until then the decision is that of SAA.
    """

    cost: Newsvendor
    ball: WassersteinBall
    day: int
    first: int

    def decisions(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Decide a day's rows with the policy of the evening before."""
        made = WindowSAA(self.cost, len(y)).decisions(X[: self.first], y[: self.first])
        parts = [made]
        for start in range(self.first, len(y), self.day):
            model = RobustPolicy(self.cost, ball=self.ball)
            with warnings.catch_warnings():
                # A young column of zeros and a slow fit are part of a life on a stream.
                warnings.simplefilter("ignore", DataWarning)
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X[:start], y[:start])
            parts.append(np.asarray(model.predict(X[start : start + self.day])))
        return np.concatenate(parts)

    def described(self) -> str:
        """Return radius and rhythm."""
        rhythm = "every row" if self.day == 1 else f"every {self.day} rows"
        return f"radius {self.ball.radius:g}, {rhythm}, on all rows so far"
