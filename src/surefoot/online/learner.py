"""What both engines offer a stream: learn rows, decide, start afresh, be saved."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from surefoot.engines import online_constants as at
from surefoot.online.settings import Settings
from surefoot.policies import Linear
from surefoot.typing import FloatArray

# After a restart, steps are as long as after this many rows.
RESTART_ROWS = 30.0


class StreamLearner(ABC):
    """A policy that learns row by row; NaN in a row stands for a missing entry."""

    settings: Settings

    @property
    @abstractmethod
    def block(self) -> int:
        """How many rows are taken between two looks at drift; the answer does not depend on it."""

    @abstractmethod
    def learn(self, rows: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Take one update for each row, in order; outcomes have shape (rows, products).

        Return the decision for each row before it was learned, shape (rows, decisions).
        """

    @abstractmethod
    def decide(self, rows: FloatArray) -> FloatArray:
        """Return decisions, shape (rows, decisions)."""

    @abstractmethod
    def decide_row(self, row: FloatArray) -> FloatArray:
        """Return the decision for one row, shape (decisions,)."""

    def realised(self, decisions: FloatArray, outcomes: FloatArray) -> FloatArray:
        """Return what decisions have cost, shape (rows,)."""
        return self.settings.cost.evaluate(decisions, outcomes)

    @abstractmethod
    def restart(self) -> None:
        """Take large steps again."""

    @abstractmethod
    def put(self, arrays: Mapping[str, FloatArray]) -> None:
        """Go back to what ``arrays`` describes, taken from this learner with as many columns."""

    @abstractmethod
    def arrays(self) -> dict[str, FloatArray]:
        """Return all that the next update needs."""


class WideningLearner(StreamLearner):
    """A learner that takes new columns after the start."""

    @abstractmethod
    def widen(self, table: FloatArray) -> None:
        """Add columns, given as columns of the table of running numbers; parameters start at zero."""


def kernel_options(settings: Settings, table: FloatArray) -> FloatArray:
    """Return question and rules as the kernel reads them."""
    ball, policy = settings.ball, settings.policy
    movable = table[at.FROZEN] == 0.0
    bounds = table[at.LOWER : at.UPPER + 1, movable]
    low_y, high_y = (-np.inf, np.inf) if ball.support is None else ball.support.outcome
    outcome_held = np.isfinite(ball.outcome_cost) and np.isfinite([low_y, high_y]).any()
    options = np.zeros(at.N_OPTIONS)
    options[at.RADIUS] = ball.radius
    options[at.RADIUS_ROWS] = 0.0 if settings.radius is None else settings.radius.rows
    options[at.ORDER] = ball.order
    options[at.OUTCOME_COST] = ball.outcome_cost
    options[at.WITH_INTERCEPT] = float(isinstance(policy, Linear) and policy.intercept)
    options[at.SCALED] = float(ball.scale)
    options[at.BOXED] = float(np.isfinite(bounds).any() or outcome_held)
    options[at.LOW_Y], options[at.HIGH_Y] = low_y, high_y
    options[at.STEP_RULE], options[at.STEP_SIZE] = settings.step.coded()
    options[at.AVERAGING] = float(settings.step.averages)
    options[at.WINDOW] = settings.window
    return options
