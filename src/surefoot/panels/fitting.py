"""Fit one series, and judge it on windows of its own past: what a worker does, one after the other."""

import hashlib
import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from surefoot.baselines import SAA
from surefoot.comparison.splits import RollingWindow
from surefoot.costs import ConvexPiecewiseCost, Cost
from surefoot.estimators import RobustEstimator
from surefoot.estimators.guarantees import decides
from surefoot.estimators.preparation import PreparedPolicy
from surefoot.exceptions import InvalidInputError
from surefoot.nominals import Empirical
from surefoot.panels.records import FAILED, FITTED, SeriesRecord, model_bytes, settings_digest
from surefoot.panels.series import Key, PanelColumns, Series
from surefoot.random import rng_for
from surefoot.typing import FloatArray
from surefoot.version import __version__

# The constant order is judged on as many folds as the policy's radius.
FOLDS = 5


@dataclass(frozen=True)
class FitSettings:
    """What all series of a panel share: the columns, the unfitted policy, its cost and the seed."""

    columns: PanelColumns
    model: RobustEstimator
    seed: int

    @property
    def cost(self) -> Cost:
        """What a decision costs."""
        return self.model._recipe().cost

    def fingerprint(self) -> str:
        """Return what tells these settings from others, in any process."""
        given = sorted(self.model.get_params(deep=False).items())
        parts = [type(self.model).__name__, [(name, repr(value)) for name, value in given]]
        return settings_digest([__version__, repr(self.columns), parts, self.seed])

    def policy(self, key: Key) -> PreparedPolicy:
        """Return the unfitted policy of a series; its seed depends on the key alone."""
        seed = int(rng_for(self.seed, "series", *key).integers(2**31))
        model = clone(self.model).set_params(random_state=seed)
        return PreparedPolicy(model, categories=self.columns.categories)


def series_digest(series: Series, fingerprint: str) -> str:
    """Return a fingerprint of a series and its settings."""
    seen = hashlib.sha256(fingerprint.encode())
    seen.update("\x1f".join(series.key).encode())
    columns = {**series.contexts, "": series.outcomes, "\x1d": series.times}
    for name, values in columns.items():
        seen.update(f"\x1e{name}\x1e".encode())
        if values is None:
            continue
        if values.dtype.kind == "O":
            seen.update("\x1f".join(map(repr, values.tolist())).encode())
        else:
            seen.update(str(values.dtype).encode() + np.ascontiguousarray(values).tobytes())
    return seen.hexdigest()


def fit_series(series: Series, settings: FitSettings, digest: str = "") -> SeriesRecord:
    """Fit the policy of one series; whatever goes wrong is its reason, and the other series go on."""
    empty = SeriesRecord(series.key, len(series.rows), FAILED, digest=digest)
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            table, outcomes = series.table(), series.clean_outcomes()
            if len(outcomes) < 2:
                raise InvalidInputError(f"A series must have at least 2 rows, got {len(outcomes)}.")
            policy = settings.policy(series.key).fit(table, outcomes, time=series.times)
            model = policy.model_
            record = replace(
                empty,
                status=FITTED,
                radius=float(model.radius_),
                gap=model.certificate_.gap if math.isfinite(model.certificate_.gap) else math.nan,
                cost=held_out_cost(model),
                constant_cost=constant_held_out(settings.cost, outcomes, model.random_state),
                constant=best_constant(settings.cost, outcomes),
                model=model_bytes(policy),
            )
        except Exception as error:  # costs and policies may be the user's own, and raise anything
            record = replace(empty, reason=str(error) or type(error).__name__)
            outcomes = np.zeros(0)
    notes = [str(warning.message) for warning in caught]
    if len(outcomes) and np.ptp(outcomes) == 0.0:
        notes.append("The outcome never varied: decisions are constant.")
    return replace(record, warnings=tuple(dict.fromkeys(notes)))


def held_out_cost(model: Any) -> float:
    """Return the cost on rows that were held out, NaN where none was measured."""
    nominal, path = getattr(model, "nominal_", None), getattr(model, "radius_path_", None)
    if decides(model) and isinstance(nominal, Empirical):
        cost, limits = model.problem_.cost, model.problem_.policy.decisions
        honest = nominal.offsets if limits is None else limits.map_into(nominal.offsets)
        return float(cost.mean(honest, nominal.outcomes, nominal.weights))
    if path is None or not path.fold_costs.any():  # with very few rows the choice holds none out
        return math.nan
    return float(path.mean_costs[int(np.argmin(np.abs(path.radii - path.radius)))])


def constant_held_out(cost: Cost, outcomes: FloatArray, seed: int) -> float:
    """Return the mean cost of the best constant order on folds that it did not see."""
    if len(outcomes) < 3:  # two at least must remain to learn from
        return math.nan
    order = rng_for(seed, "constant order").permutation(len(outcomes))
    total = 0.0
    for held in np.array_split(order, min(FOLDS, len(outcomes))):
        seen = np.ones(len(outcomes), dtype=bool)
        seen[held] = False
        total += len(held) * constant_cost(cost, outcomes[seen], outcomes[held])
    return total / len(outcomes)


def constant_cost(cost: Cost, seen: FloatArray, judged: FloatArray) -> float:
    """Return the mean cost on some outcomes of the order that was best for others."""
    orders = np.full((len(judged), 1), best_constant(cost, seen))
    return float(cost.evaluate(orders, judged[:, None]).mean())


def best_constant(cost: Cost, outcomes: FloatArray) -> float:
    """Return the constant order of least cost on some outcomes."""
    if isinstance(cost, ConvexPiecewiseCost):
        equal = np.full(len(outcomes), 1.0 / len(outcomes))
        return cost.pieces(1)[0].best_constant(outcomes, equal)
    model = SAA(cost_function=cost).fit(np.zeros((len(outcomes), 1)), outcomes)
    return float(model.predict(np.zeros((1, 1)))[0])


@dataclass(frozen=True)
class SeriesEvaluation:
    """How one series would have done: windows, rows judged, mean costs, or the reason why not.

    One window is that of the fit itself.
    """

    key: Key
    windows: int
    rows: int
    cost: float
    constant_cost: float
    reason: str = ""

    @property
    def saving(self) -> float:
        """The share of the constant order's cost that the policy saves."""
        return 1.0 - self.cost / self.constant_cost if self.constant_cost > 0.0 else math.nan


def evaluate_series(series: Series, settings: FitSettings, window: RollingWindow) -> SeriesEvaluation:
    """Fit on each window of one series in order of time, and judge on the rows that follow."""
    costs, constants, rows = [], [], []
    with warnings.catch_warnings(action="ignore"):
        try:
            outcomes = series.clean_outcomes()
            for split in window.splits(len(outcomes), 0):
                past, ahead = series.take(split.train), series.take(split.test)
                policy = settings.policy(series.key).fit(
                    past.table(), outcomes[split.train], time=past.times
                )
                costs.append(policy.cost(ahead.table(), outcomes[split.test]))
                constants.append(
                    constant_cost(settings.cost, outcomes[split.train], outcomes[split.test])
                )
                rows.append(len(split.test))
        except Exception as error:  # as in a fit: the reason of this series, not the end of all
            reason = str(error) or type(error).__name__
            return SeriesEvaluation(series.key, 0, 0, math.nan, math.nan, reason)
    weights = np.array(rows) / sum(rows)
    return SeriesEvaluation(
        series.key, len(rows), sum(rows), float(weights @ costs), float(weights @ constants)
    )
