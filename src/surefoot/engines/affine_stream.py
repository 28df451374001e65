"""Affine policies with piecewise linear costs on a stream, through the compiled kernels."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from surefoot.ambiguity import WassersteinForm
from surefoot.costs import ConvexPiecewiseCost
from surefoot.engines.affine_kernels import GEOMETRY, NUMBERS
from surefoot.engines.affine_lane import first_numbers
from surefoot.engines.arrangement import Arrangement
from surefoot.engines.compiling import as_compiled
from surefoot.engines.stream import RESTART_ROWS, Stream, StreamOptions, check_columns, without_outliers
from surefoot.engines.stream_kernels import SETTLED_ROWS, decide_rows, known_rows, stream_steps
from surefoot.exceptions import InvalidInputError
from surefoot.policies import Linear, LinearParameters
from surefoot.problem import Problem, affine_forms
from surefoot.typing import FloatArray
from surefoot.validation import check_array


class StreamState(NamedTuple):
    """Where the compiled kernel stands.

    Attributes
    ----------
    columns
        Records of ``COLUMN``, one for each context column: running mean, spread, range.
    theta, average
        Shape (products, columns), in the user's units: the newest parameters and their average.
    numbers
        Records of ``NUMBERS``, one for each product.
    clock
        Shape (1,): rows since the start or the last restart.
    """

    columns: Any
    theta: FloatArray
    average: FloatArray
    numbers: Any
    clock: FloatArray


class AffineStream(Stream):
    """A linear policy on a stream."""

    widens: ClassVar[bool] = True

    def __init__(self, options: StreamOptions, state: StreamState) -> None:
        self.options, self.state = options, state
        cost, policy, ball = options.cost, options.policy, options.ball
        assert isinstance(cost, ConvexPiecewiseCost)  # or another engine would follow
        assert isinstance(policy, Linear)
        self._linear = policy
        pieces = cost.pieces(len(state.theta))
        most = max(len(piece.slopes) for piece in pieces)
        # Fewer lines than others have are filled up with the last one, which changes no maximum.
        lines = np.array([
            [[*line, *[line[-1]] * (most - len(line))] for line in kind]
            for kind in ([p.slopes for p in pieces], [p.intercepts for p in pieces])
        ])  # fmt: skip
        self._geometry, self._rules = np.zeros(1, GEOMETRY), options.rules()
        self._geometry["inverse_kappa"], self._geometry["order"] = 1.0 / ball.outcome_cost, ball.order
        self._geometry["smoothing"], self._geometry["batch"] = pieces[0].smoothing, 1
        self._geometry["intercept"], self._geometry["boxed"] = policy.intercept, self._boxed()
        # What the kernel is handed beside rows and state.
        self._given = (lines, self._geometry, self._rules)

    def _boxed(self) -> bool:
        columns, ball = self.state.columns, self.options.ball
        free = columns["frozen"] == 0.0
        held = np.isfinite(columns["lower"][free]).any() or np.isfinite(columns["upper"][free]).any()
        bounds = [self._rules["low_y"], self._rules["high_y"]]
        return bool(held or (np.isfinite(ball.outcome_cost) and np.isfinite(bounds).any()))

    @classmethod
    def start(
        cls, options: StreamOptions, columns: Any, rows: FloatArray, outcomes: FloatArray,
        offsets: FloatArray | None = None,
    ) -> "AffineStream":  # fmt: skip
        """Begin where ``fit`` begins on these rows, with their scale, and learn them."""
        known = known_rows(rows, columns)
        policy = options.policy
        assert isinstance(policy, Linear)
        offsets = policy.offsets(known) if offsets is None else offsets
        # One outlier must not say how far outcomes vary; the constant order is a quantile anyhow.
        errors = outcomes if offsets is None else outcomes - offsets
        kept = without_outliers(errors)
        kept = kept if offsets is None else kept + offsets
        forms = affine_forms(options.problem(known, kept, offsets))
        numbers = np.concatenate([_plain_numbers(form) for form in forms])
        numbers["mean_intercept"] = numbers["intercept"]
        theta = np.zeros((len(forms), len(columns)))
        stream = cls(options, StreamState(columns, theta, theta.copy(), numbers, np.zeros(1)))
        stream._step(rows, outcomes, offsets, running=False)
        return stream

    @classmethod
    def after_fit(
        cls, options: StreamOptions, columns: Any, problem: Problem, parameters: LinearParameters
    ) -> "AffineStream":
        """Go on from a fitted policy, as if the rows of its problem had been learned one by one.

        The step size then is what those rows would have left it at, so that the fitted policy is
        refined and not thrown about by the first new rows.
        """
        forms = affine_forms(problem)
        policy = options.policy
        assert isinstance(policy, Linear)
        theta, numbers = parameters.theta.T.copy(), np.zeros(len(forms), NUMBERS)
        centre = columns["mean"] if policy.intercept else np.zeros(len(columns))
        for j, (form, row) in enumerate(zip(forms, theta, strict=True)):
            numbers[j] = _plain_numbers(form, row * form.scale / form.column_unit)[0]
        for name in ("intercept", "start", "mean_intercept"):
            numbers[name] = parameters.intercept + theta @ centre
        if not policy.intercept:  # a fit without intercept knows no mean
            columns["count"], columns["deviations"] = (
                SETTLED_ROWS, columns["deviations"] / columns["count"] * SETTLED_ROWS,
            )  # fmt: skip
        clock = numbers["steps"][:1].copy()
        return cls(options, StreamState(columns, theta, theta.copy(), numbers, clock))

    @classmethod
    def restore(cls, options: StreamOptions, arrays: Mapping[str, Any]) -> "AffineStream":
        """Return the stream that ``arrays`` describes."""
        products, size = np.shape(arrays["theta"])
        cls.check(options, products, size, arrays)
        return cls(options, StreamState(*(arrays[name] for name in StreamState._fields)))

    @staticmethod
    def check(
        options: StreamOptions, n_outcomes: int, n_columns: int, arrays: Mapping[str, Any]
    ) -> None:
        """Refuse arrays that are no state of such a stream."""
        del options
        check_columns("columns", arrays["columns"], n_columns)
        for name in ("theta", "average"):
            check_array(f"{name} of the state", arrays[name], (n_outcomes, n_columns))
        check_array("clock of the state", arrays["clock"], (1,))
        numbers = arrays["numbers"]
        if not isinstance(numbers, np.ndarray) or numbers.dtype != NUMBERS:
            raise InvalidInputError("numbers of the state must be records of lanes, got others.")
        for name in NUMBERS.fields or ():
            check_array(f"{name} of the state", numbers[name].astype(float), (n_outcomes,))
        if arrays["clock"][0] < 0.0:
            raise InvalidInputError(f"clock of the state must be >= 0, got {arrays['clock'][0]}.")

    @property
    def block(self) -> int:
        """Rows between two looks at drift."""
        return 256

    @property
    def columns(self) -> Any:
        """What is known of each column."""
        return self.state.columns

    def learn(
        self, rows: FloatArray, outcomes: FloatArray, offsets: FloatArray | None = None
    ) -> FloatArray:
        """Take one update for each row and product."""
        return self._step(rows, outcomes, offsets, running=True)

    def _step(
        self, rows: FloatArray, outcomes: FloatArray, offsets: FloatArray | None, *, running: bool
    ) -> FloatArray:
        limits = self.options.policy.decisions
        if limits is not None:
            outcomes = limits.map_into(outcomes)
        fixed = self._offsets(rows, offsets)
        decided = np.zeros(outcomes.shape) if fixed is None else fixed.copy()
        stream_steps.compiled(
            as_compiled(rows), as_compiled(outcomes), *self.state, *self._given, running, decided
        )
        return decided if limits is None else limits.map_into(decided)

    def _offsets(self, rows: FloatArray, offsets: FloatArray | None) -> FloatArray | None:
        if offsets is not None or self._linear.offset is None:
            return offsets
        return self._linear.offsets(known_rows(rows, self.state.columns))

    def decide(self, rows: FloatArray, offsets: FloatArray | None = None) -> FloatArray:
        """Return the averaged policy's decisions, shape (rows, products)."""
        state, decided = self.state, np.empty((len(rows), len(self.state.theta)))
        intercept = int(self._geometry["intercept"][0])
        decide_rows(as_compiled(rows), state.columns, state.average, state.numbers, intercept, decided)
        fixed, limits = self._offsets(rows, offsets), self.options.policy.decisions
        decided = decided if fixed is None else decided + fixed
        return decided if limits is None else limits.map_into(decided)

    def parameters(self) -> LinearParameters:
        """Return the averaged policy in the user's units."""
        state, policy = self.state, self.options.policy
        assert isinstance(policy, Linear)
        intercept = state.numbers["mean_intercept"].copy()
        if policy.intercept:
            intercept -= state.average @ state.columns["mean"]
        return LinearParameters(state.average.T.copy(), intercept)

    def widen(self, columns: Any) -> None:
        """Add columns; their parameters start at zero."""
        state = self.state
        empty = np.zeros((len(state.theta), len(columns)))
        self.state = state._replace(
            columns=np.concatenate([state.columns, columns]),
            theta=np.hstack([state.theta, empty]),
            average=np.hstack([state.average, empty]),
        )
        self._geometry["boxed"] = self._boxed()

    def put(self, arrays: Mapping[str, FloatArray]) -> None:
        """Go back to what ``arrays`` describes."""
        for name, array in zip(StreamState._fields, self.state, strict=True):
            array[:] = arrays[name]

    def restart(self) -> None:
        """Take large steps again, from where the parameters stand."""
        kept = min(1.0, RESTART_ROWS / self.state.clock[0])
        for name in ("squares", "intercept_squares", "multiplier_squares"):
            self.state.numbers[name] *= kept
        self.state.clock[0] = min(self.state.clock[0], RESTART_ROWS)

    def arrays(self) -> dict[str, FloatArray]:
        """Return all that the next update needs."""
        return {name: array.copy() for name, array in self.state._asdict().items()}


def _plain_numbers(form: Any, theta: FloatArray | None = None) -> Any:
    """Return a lane's numbers in the user's units, before its first row or after those of a fit.

    ``theta`` is the fitted policy, in units of the ball; None is the start.
    """
    assert isinstance(form, WassersteinForm)  # or another engine would follow
    plain = form.in_plain_units()
    rows = Arrangement.of(plain, plain.movable, rotate=False).rows(plain.contexts)
    numbers = first_numbers(plain, rows)
    if theta is not None:
        count, square = len(plain.outcomes), plain.slope_constant**2
        size = float(plain.weights @ (rows**2).sum(axis=1))
        numbers["travelled"] = max(float(np.linalg.norm(theta)), float(numbers["travelled"][0]))
        numbers["squares"], numbers["intercept_squares"] = count * square * size, count * square
        numbers["steps"] = count
    return numbers
