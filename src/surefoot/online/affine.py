"""Affine policies with kinked costs on a stream, through the compiled kernels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surefoot.costs import ConvexPiecewiseCost
from surefoot.engines import adaptive as slots
from surefoot.engines.online import MEAN_INTERCEPT, OFFSET, STREAM_SCALARS, stream_steps
from surefoot.engines.online_constants import MEAN, TABLE_ROWS
from surefoot.engines.twin import initial_state
from surefoot.exceptions import InvalidInputError
from surefoot.online.learner import RESTART_ROWS, WideningLearner, kernel_options
from surefoot.online.settings import Settings
from surefoot.policies import Linear, LinearParameters
from surefoot.problem import affine_problems
from surefoot.solvers.adaptive import Arrangement, pack
from surefoot.typing import FloatArray

_NAMES = ("table", "theta", "average", "scalars", "clock")


@dataclass(eq=False)
class AffineStream(WideningLearner):
    """Where the compiled kernel stands.

    Attributes
    ----------
    table
        Shape (6, columns): running mean, summed squared deviations, count, frozen, lower, upper.
    theta, average
        Shape (products, columns), in the user's units: the newest parameters and their average.
    scalars
        Shape (products, numbers): what else the next step needs.
    clock
        Shape (1,): rows since the start or the last restart.
    """

    block: ClassVar[int] = 256

    settings: Settings
    table: FloatArray
    theta: FloatArray
    average: FloatArray
    scalars: FloatArray
    clock: FloatArray

    def __post_init__(self) -> None:
        """Prepare what the kernel reads and what a decision needs."""
        cost = self.settings.cost
        assert isinstance(cost, ConvexPiecewiseCost)  # asked before
        self._pieces = np.array(
            [(piece.up, piece.down, piece.smoothing) for piece in cost.pieces(len(self.theta))]
        )
        self._options = kernel_options(self.settings, self.table)

    @classmethod
    def start(
        cls, settings: Settings, table: FloatArray, rows: FloatArray, outcomes: FloatArray
    ) -> "AffineStream":
        """Begin where ``fit`` begins on these rows, with their scale, and learn them."""
        filled = np.where(np.isnan(rows), table[MEAN], rows)
        problems = affine_problems(settings.problem(filled, outcomes))
        scalars = np.zeros((len(problems), STREAM_SCALARS))
        for own, problem in zip(scalars, problems, strict=True):
            own[: slots.N_SCALARS] = pack(initial_state(Arrangement.of(problem).problem))
            own[MEAN_INTERCEPT] = own[slots.INTERCEPT]
        theta = np.zeros((len(problems), table.shape[1]))
        stream = cls(settings, table, theta, theta.copy(), scalars, np.zeros(1))
        stream._step(rows, outcomes, running=False)
        return stream

    @classmethod
    def after_fit(
        cls, settings: Settings, table: FloatArray, parameters: LinearParameters, numbers: FloatArray
    ) -> "AffineStream":
        """Go on from a fitted policy; ``numbers`` are the running numbers that its rows would leave."""
        theta, scalars = parameters.theta.T.copy(), np.zeros((len(numbers), STREAM_SCALARS))
        scalars[:, : slots.N_SCALARS] = numbers
        centred = parameters.intercept + (theta @ table[MEAN] if _has_intercept(settings) else 0.0)
        for slot in (slots.INTERCEPT, slots.START, MEAN_INTERCEPT):
            scalars[:, slot] = centred
        scalars[:, OFFSET] = parameters.intercept
        return cls(settings, table, theta, theta.copy(), scalars, numbers[:1, slots.STEPS].copy())

    @classmethod
    def restore(cls, settings: Settings, arrays: Mapping[str, FloatArray]) -> "AffineStream":
        """Return the stream that ``arrays`` describes."""
        rows, size = arrays["theta"].shape
        for name, shape in {
            "table": (TABLE_ROWS, size),
            "average": (rows, size),
            "scalars": (rows, STREAM_SCALARS),
            "clock": (1,),
        }.items():
            if arrays[name].shape != shape:
                raise InvalidInputError(
                    f"{name} of the state must have shape {shape}, got {arrays[name].shape}."
                )
        return cls(settings, **{name: arrays[name] for name in _NAMES})

    def learn(self, rows: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Take one update for each row and product."""
        return self._step(rows, outcomes, running=True)

    def _step(self, rows: FloatArray, outcomes: FloatArray, *, running: bool) -> FloatArray:
        limits, decided = self.settings.policy.decisions, np.empty(outcomes.shape)
        if limits is not None:
            outcomes = np.ascontiguousarray(limits.map_into(outcomes))
        stream_steps(
            rows, outcomes, self.table, self.theta, self.average, self.scalars, self._pieces,
            self._options, self.clock, running, decided,
        )  # fmt: skip
        return decided if limits is None else limits.map_into(decided)

    def decide(self, rows: FloatArray) -> FloatArray:
        """Return the averaged policy's decisions, shape (rows, products)."""
        filled = np.where(np.isnan(rows), self.table[MEAN], rows)
        free = filled @ self.average.T + self.scalars[:, OFFSET]
        limits = self.settings.policy.decisions
        return free if limits is None else limits.map_into(free)

    def decide_row(self, row: FloatArray) -> FloatArray:
        """Return the averaged policy's decision for one row."""
        free = self.average @ row + self.scalars[:, OFFSET]
        if free[0] != free[0]:  # an entry is missing
            filled = np.where(np.isnan(row), self.table[MEAN], row)
            free = self.average @ filled + self.scalars[:, OFFSET]
        limits = self.settings.policy.decisions
        return free if limits is None else limits.map_into(free)

    def widen(self, table: FloatArray) -> None:
        """Add columns; their parameters start at zero."""
        self.table = np.hstack([self.table, table])
        empty = np.zeros((len(self.theta), table.shape[1]))
        self.theta, self.average = np.hstack([self.theta, empty]), np.hstack([self.average, empty])
        self._options = kernel_options(self.settings, self.table)

    def put(self, arrays: Mapping[str, FloatArray]) -> None:
        """Go back to what ``arrays`` describes."""
        for name in _NAMES:
            getattr(self, name)[:] = arrays[name]

    def restart(self) -> None:
        """Take large steps again, from where the parameters stand."""
        kept = min(1.0, RESTART_ROWS / self.clock[0])
        for slot in (slots.SQUARES, slots.INTERCEPT_SQUARES, slots.MULTIPLIER_SQUARES):
            self.scalars[:, slot] *= kept
        self.clock[0] = min(self.clock[0], RESTART_ROWS)

    def arrays(self) -> dict[str, FloatArray]:
        """Return all that the next update needs."""
        return {name: getattr(self, name).copy() for name in _NAMES}


def _has_intercept(settings: Settings) -> bool:
    policy = settings.policy
    return isinstance(policy, Linear) and policy.intercept
