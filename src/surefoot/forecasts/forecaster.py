"""Learn a forecast that says how wrong it is: the centre of the default nominal."""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist, pdist, squareform
from threadpoolctl import ThreadpoolController

from surefoot.costs import Pieces
from surefoot.costs.quantiles import weighted_quantiles
from surefoot.forecasts.forecast import Forecast, SmoothPart
from surefoot.forecasts.rows import Rows
from surefoot.forecasts.spectrum import Spectrum, log_mean
from surefoot.forecasts.trees import Forest, grow
from surefoot.io import register
from surefoot.random import rng_for
from surefoot.typing import FloatArray
from surefoot.validation import check_flag

# Prior variances of the coefficients in units of the noise: how far each may be from zero, and how
# far all of them together. Zero is the constant forecast.
SPREADS = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 19)])
SHARED = np.concatenate([[0.0], np.geomspace(1e-2, 1e2, 5)])
BENDS = np.concatenate([[0.0], np.geomspace(1e-2, 1e2, 13)])
# Strengths whose log probability is so far below the best one's are left out.
LEAST_LOG_PROBABILITY = -30.0
# Up to this many rows each row is a centre of the smooth part; beyond it a sample of them is.
MOST_CENTRES = 500
SAMPLED_CENTRES = 300
JITTER = 1e-9  # keeps the factorisation alive where contexts repeat
# Trees join with this weight where the smooth model is at least as likely as the linear one, with
# less where it is less likely, and not at all below the smallest weight or with too few rows.
TREE_WEIGHT, LEAST_TREE_WEIGHT = 1.0 / 3.0, 0.05
ROWS_FOR_TREES = 30
# A column with two values among so many rows is a flag.
LEVELS_LOOKED_AT = 1_000


@dataclass(frozen=True, eq=False)
class HonestForecast:
    """A forecast with the errors that it made on rows that it had not seen.

    Attributes
    ----------
    forecast
        Learned from all rows.
    errors
        Outcome minus the forecast learned without that row, shape (n,).
    linear_share
        The probability of the linear model against the smooth one, given the data.
    units
        Whether each unit of a row's mass was an observation of its own.
    forest
        The trees, in standard deviations of contexts and outcomes, if any were grown.
    """

    forecast: Forecast
    errors: FloatArray
    linear_share: float
    units: bool
    forest: Forest | None = None


@dataclass(frozen=True, eq=False)
class _Part:
    """One family: its forecast, its honest errors and the logarithm of its evidence."""

    forecast: Forecast
    errors: FloatArray
    evidence: float = 0.0
    forest: Forest | None = None


@register
@dataclass(frozen=True)
class Forecaster:
    r"""How the default nominal forecasts outcomes.

    A linear model and a smooth one are learned for a whole grid of prior variances and averaged by
    their probability given the data (the evidence of a Gaussian model, see ``spectrum``), so that
    nothing has to be chosen and little data mean a forecast close to the constant. Where bending is
    called for, trees join. Every row's error comes from a model that did not see the row.

    Parameters
    ----------
    common
        Whether coefficients may have a common part: columns that all push the outcome the same way.
    smooth
        Whether a smooth model (a Laplace kernel) competes with the linear one.
    trees
        Whether a random forest joins where the smooth model is about as likely as the linear one, or
        more.

    Examples
    --------
    >>> from surefoot.costs import Pieces
    >>> from surefoot.datasets import synthetic
    >>> data = synthetic(n=60, s=20, seed=0)
    >>> honest = Forecaster().fit(data.X, data.y, None, Pieces.kinked(up=0.2, down=1.0), seed=0)
    >>> errors = data.y_test - honest.forecast(data.X_test)
    >>> bool(errors.std() < 0.9 * data.y_test.std())
    True
    >>> bool(0.8 < errors.std() / honest.errors.std() < 1.25)
    True
    """

    common: bool = True
    smooth: bool = True
    trees: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        for name in ("common", "smooth", "trees"):
            object.__setattr__(self, name, check_flag(name, getattr(self, name)))

    def fit(
        self,
        contexts: FloatArray,
        outcomes: FloatArray,
        masses: FloatArray | None,
        pieces: Pieces,
        seed: int,
        bases: "Bases | None" = None,
    ) -> HonestForecast:
        """Learn from rows, which should be distinct: a row seen twice knows its own twin.

        Parameters
        ----------
        contexts, outcomes
            Shapes (n, s) and (n,).
        masses
            How often each row counts, or None for once each.
        pieces
            The cost that decides between smooth models.
        seed
            Of the trees and of the sample of centres.
        bases
            What an earlier call on the same contexts and masses has decomposed already.
        """
        with one_thread():
            return self.fit_rows(Rows.of(contexts, outcomes, masses), pieces, seed, bases)

    def fit_rows(
        self, rows: Rows, pieces: Pieces, seed: int, bases: "Bases | None" = None
    ) -> HonestForecast:
        """Learn from rows as ``fit`` does, on as many threads as there are."""
        if rows.trivial or rows.count < 3:
            return constant_forecast(rows)
        bases = Bases() if bases is None else bases
        linear = self._linear(rows, bases)
        if not self.smooth:
            return HonestForecast(linear.forecast, linear.errors, 1.0, rows.units)
        smooth = _smooth(rows, pieces, seed, bases)
        share = 1.0 / (1.0 + float(np.exp(np.clip(smooth.evidence - linear.evidence, -700, 700))))
        parts = [(share, linear), (1.0 - share, smooth)]
        joining, forest = TREE_WEIGHT * min(1.0, 2.0 * (1.0 - share)), None
        if self.trees and len(rows.outcomes) >= ROWS_FOR_TREES and joining >= LEAST_TREE_WEIGHT:
            parts = [((1.0 - joining) * weight, part) for weight, part in parts]
            trees = _trees(rows, seed)
            parts, forest = [*parts, (joining, trees)], trees.forest
        errors = np.asarray(sum(weight * part.errors for weight, part in parts))
        return HonestForecast(_mixed(rows, parts), errors, share, rows.units, forest)

    def _linear(self, rows: Rows, bases: "Bases") -> _Part:
        """Average the linear models by their probability."""
        known = bases.linear_parts.get((self.common, id(rows.outcomes)))
        if known is not None:
            return known[1]
        unit = np.sqrt(rows.scaled.shape[1])  # so that one grid serves few columns and many
        shared = SHARED if self.common else SHARED[:1]
        spectrum = bases.linear(rows, unit)
        evidence = spectrum.evidence(SPREADS, shared)
        # Most strengths are out of the question: only the others are worth n numbers each.
        spread, common = np.nonzero(evidence > evidence.max() + LEAST_LOG_PROBABILITY)
        paths = spectrum.solve(SPREADS[spread], shared[common], evidence[spread, common])
        theta = np.zeros(rows.contexts.shape[1])
        theta[rows.varies] = paths.by_evidence() @ paths.coefficients / unit / rows.spread[rows.varies]
        forecast = Forecast(rows.average, theta, rows.mean, rows.spread)
        part = _Part(forecast, paths.by_evidence() @ paths.errors, log_mean(evidence))
        bases.linear_parts[self.common, id(rows.outcomes)] = rows.outcomes, part
        return part


def constant_forecast(rows: Rows) -> HonestForecast:
    """Forecast the mean, which no column improves: its errors are those of the constant order."""
    theta = np.zeros(rows.contexts.shape[1])
    errors = rows.outcomes - rows.average
    forecast = Forecast(rows.average, theta, rows.mean, rows.spread)
    return HonestForecast(forecast, errors, 1.0, rows.units)


def one_thread() -> Any:
    """Return a context in which linear algebra uses one thread.

    Matrices are a few hundred wide: on a busy machine two threads waited for each other many times as
    long as one would work.
    """
    return _threads().limit(limits=1, user_api="blas")


@cache
def _threads() -> ThreadpoolController:
    """Return what knows the libraries with threads; to look for them takes a moment."""
    return ThreadpoolController()


class _Kernel(NamedTuple):
    """A Laplace kernel around centres, as features: those of its Cholesky factor."""

    centres: FloatArray
    length: float
    factor: FloatArray
    features: FloatArray
    spectrum: Spectrum

    @classmethod
    def of(cls, rows: Rows, seed: int) -> "_Kernel":
        """Decompose the kernel of all rows, or of a sample of them."""
        scaled = rows.scaled
        centres = scaled
        if len(scaled) > MOST_CENTRES:
            chosen = rng_for(seed, "centres").choice(len(scaled), SAMPLED_CENTRES, replace=False)
            centres = scaled[np.sort(chosen)]
        distances = pdist(centres, "cityblock")  # of each pair once
        length = float(np.median(distances)) or 1.0
        kernel = squareform(np.exp(-distances / length))
        np.fill_diagonal(kernel, 1.0)
        factor = cholesky(kernel + JITTER * np.eye(len(centres)), lower=True)
        if centres is scaled:
            features = factor
        else:
            between = np.exp(-cdist(scaled, centres, "cityblock") / length)
            features = solve_triangular(factor, between.T, lower=True).T
        return cls(centres, length, factor, features, Spectrum.of(features, rows))


class Bases:
    """What forecasts of several outcomes on the same contexts and masses share.

    Linear forecasts are kept with their outcomes: several ask for the same one.
    """

    def __init__(self) -> None:
        self.linear_parts: dict[tuple[bool, int], tuple[FloatArray, _Part]] = {}
        self._linear: Spectrum | None = None
        self._kernel: _Kernel | None = None

    def linear(self, rows: Rows, unit: float) -> Spectrum:
        """Return the columns, decomposed."""
        if self._linear is None:
            scaled = rows.scaled
            # Flags of a category have nothing in common: a level never seen would shift their sum.
            some = scaled[:LEVELS_LOOKED_AT]
            many = ((some != some.min(axis=0)) & (some != some.max(axis=0))).any(axis=0)
            self._linear = Spectrum.of(scaled / unit, rows, many.astype(float))
        return self._linear.of_outcomes(rows)

    def kernel(self, rows: Rows, seed: int) -> _Kernel:
        """Return the kernel, decomposed."""
        if self._kernel is None:
            self._kernel = _Kernel.of(rows, seed)
        return self._kernel._replace(spectrum=self._kernel.spectrum.of_outcomes(rows))


def _smooth(rows: Rows, pieces: Pieces, seed: int, bases: Bases) -> _Part:
    """Average smooth models by what their decisions would have cost on rows left out."""
    kernel = bases.kernel(rows, seed)
    paths = kernel.spectrum.solve(BENDS, np.zeros(len(BENDS)))
    weights = weights_by_cost(paths.errors, rows, pieces)
    inner = weights @ paths.coefficients
    coefficients = solve_triangular(kernel.factor, inner, lower=True, trans="T")
    part = SmoothPart(kernel.centres, coefficients, kernel.length)
    # Features were centred on their mean: the constant makes up for it.
    share = rows.masses / rows.masses.sum()
    constant = rows.average - float(share @ kernel.features @ inner)
    theta = np.zeros(rows.contexts.shape[1])
    forecast = Forecast(constant, theta, rows.mean, rows.spread, part)
    return _Part(forecast, weights @ paths.errors, log_mean(paths.evidence))


def weights_by_cost(errors: FloatArray, rows: Rows, pieces: Pieces) -> FloatArray:
    """Weigh strengths by exp(-n (cost - best) / deviation of the best's costs); errors are (k, n)."""
    shares = rows.masses / rows.masses.sum()
    constants = weighted_quantiles(errors, shares, pieces.quantile)
    costs = pieces.evaluate(constants[:, None] - errors)
    mean = costs @ shares
    best = int(np.argmin(mean))
    deviation = float(np.sqrt(shares @ (costs[best] - mean[best]) ** 2))
    if deviation == 0.0:
        return np.asarray(np.eye(len(mean))[best])
    weights = np.exp(-rows.count * (mean - mean[best]) / deviation)
    return np.asarray(weights / weights.sum())


def standard_forest(rows: Rows, seed: int) -> tuple[Forest, float]:
    """Return a forest in standard deviations of contexts and outcomes, and that of outcomes."""
    # Trees take contexts and outcomes for equal by absolute tolerances: they get clean units.
    centred = rows.outcomes - rows.average
    unit = float(np.sqrt(rows.masses @ centred**2 / rows.masses.sum()))
    return grow(Rows(rows.scaled, centred / unit, rows.masses), seed), unit


def _trees(rows: Rows, seed: int) -> _Part:
    forest, unit = standard_forest(rows, seed)
    theta = np.zeros(rows.contexts.shape[1])
    trees = forest.trees.scaled(unit)
    forecast = Forecast(rows.average, theta, rows.mean, rows.spread, None, trees)
    return _Part(forecast, unit * forest.errors, forest=forest)


def _mixed(rows: Rows, parts: list[tuple[float, _Part]]) -> Forecast:
    """Return the weighted sum of forecasts as one."""
    forecasts = [(weight, part.forecast) for weight, part in parts]
    smooth = [(w, f.smooth) for w, f in forecasts if f.smooth is not None]
    trees = [(w, f.trees) for w, f in forecasts if f.trees is not None]
    return Forecast(
        constant=sum(weight * forecast.constant for weight, forecast in forecasts),
        theta=np.asarray(sum(weight * forecast.theta for weight, forecast in forecasts)),
        mean=rows.mean,
        spread=rows.spread,
        smooth=smooth[0][1].scaled(smooth[0][0]) if smooth else None,
        trees=trees[0][1].scaled(trees[0][0]) if trees else None,
    )
