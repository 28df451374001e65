"""Learning from a stream: the same update, with the newest rows in the place of draws."""

from dataclasses import dataclass, replace

import numpy as np

from surefoot.engines.twin import State, initial_state
from surefoot.problem import AffineProblem
from surefoot.solvers.adaptive import AdaptiveRun, Arrangement, unpack
from surefoot.typing import FloatArray


@dataclass
class Stream:
    """One product's learner: its geometry, fixed by the first rows, and where it stands."""

    arrangement: Arrangement
    state: State

    @classmethod
    def start(cls, first: AffineProblem) -> "Stream":
        """Begin at the constant order of the first rows."""
        arrangement = Arrangement.of(first)
        return cls(arrangement, initial_state(arrangement.problem))

    @classmethod
    def resume(cls, fitted: AffineProblem, theta: FloatArray, intercept: float) -> "Stream":
        """Go on from a fitted policy, as if its rows had been learned one by one.

        The step size then is what those rows would have left it at, so that the fitted policy is
        refined and not thrown about by the first new rows.
        """
        stream = cls.start(fitted)
        arranged = stream.arrangement.problem
        theta, intercept = stream.arrangement.arranged(theta, intercept)
        rows = len(arranged.outcomes)
        square = arranged.slope_constant**2
        size = float(arranged.weights @ (arranged.contexts**2).sum(axis=1))
        stream.state = replace(
            stream.state,
            theta=theta,
            intercept=intercept,
            start=intercept,
            travelled=max(float(np.linalg.norm(theta)), stream.state.travelled),
            squares=rows * square * size,
            intercept_squares=rows * square,
            steps=rows,
        )
        return stream

    @classmethod
    def restore(
        cls, geometry: AffineProblem, mean: FloatArray, theta: FloatArray, numbers: FloatArray
    ) -> "Stream":
        """Return a stream from what was saved of it."""
        return cls(Arrangement.of(geometry, mean), unpack(theta, numbers))

    def learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        """Take one update for each row, in order; contexts are scaled."""
        arranged = (contexts - self.arrangement.mean)[:, self.arrangement.order]
        problem = replace(
            self.arrangement.problem,
            contexts=np.ascontiguousarray(arranged),
            outcomes=np.ascontiguousarray(outcomes),
            weights=np.full(len(outcomes), 1.0 / len(outcomes)),
        )
        run = AdaptiveRun.resume(problem, self.state)
        run.run(np.arange(len(outcomes)))
        self.state = run.state()

    def policy(self) -> tuple[FloatArray, float]:
        """Return (theta, intercept) in the problem's own columns."""
        return self.arrangement.original(self.state.theta, self.state.intercept)
