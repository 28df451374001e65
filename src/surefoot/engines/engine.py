"""What computes a problem: the only rooms that know how a step is taken.

There are two engines, ``Affine`` (compiled; linear policies with piecewise linear costs) and
``Autodiff`` (JAX; the rest). ``engines.choice.engine_for`` is the only place that asks which.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from surefoot.ambiguity import Adversary
from surefoot.certificates import Certificate
from surefoot.policies import LinearParameters, PolicyParameters
from surefoot.problem import Problem
from surefoot.typing import FloatArray

Parameters = LinearParameters | PolicyParameters


class Bounds(NamedTuple):
    """What is known of the best policy so far and of the best possible.

    Attributes
    ----------
    upper
        Worst-case expected cost of the policy, in the user's units.
    lower
        No policy of the family has a smaller worst case; minus infinity where nothing is known.
    gap
        (upper - lower) / max(lower, floor), or the change since the last look where there is no lower
        bound.
    proved
        Whether the gap is one to the best possible, and not a mere change.
    """

    upper: float
    lower: float
    gap: float
    proved: bool


class Answer(NamedTuple):
    """The best policy of a run, with what its engine has to say about it.

    ``steps`` counts those of all products; ``remark`` is a sentence for the status, empty where there
    is nothing to add. ``polished`` says that the policy was found by other means than steps.
    """

    parameters: Parameters
    multiplier: FloatArray
    certificate: Certificate
    steps: int
    remark: str = ""
    polished: bool = False


@dataclass(frozen=True)
class Options:
    """How DA-SGD steps: most steps, samples of a step, ascent steps (0: exact moves), optimizer.

    ``rough`` is for rehearsals such as folds: fewer steps, and no proof that nobody will read.
    """

    max_steps: int | None = None
    minibatch: int = 1
    inner_steps: int = 0
    optimizer: Any = None
    gap_tol: float = 0.01
    rough: bool = False


class Engine(ABC):
    """Computes problems that share their parts; a single problem is a batch of one.

    ``update`` takes one step of DA-SGD for each sample (each minibatch): it moves the sample to
    where it costs most and steps the parameters and the multiplier. Fits, streams and many problems
    side by side all step through it. ``judge`` looks at where a state stands, through certificates,
    and remembers the best policy of each problem.
    """

    problems: Sequence[Problem]
    options: Options

    @abstractmethod
    def init(self) -> Any:
        """Return the state before the first step: a NamedTuple of arrays."""

    @abstractmethod
    def start(self) -> list[Bounds] | None:
        """Return bounds of the policies at which runs start, or None where nothing is known of them."""

    @abstractmethod
    def done(self, bounds: Sequence[Bounds]) -> bool:
        """Whether every problem is solved well enough to stop."""

    @abstractmethod
    def why_stop(self, gaps: Sequence[float], steps: int) -> str | None:
        """Return a sentence that says why going on would not help, or None."""

    @abstractmethod
    def blocks(self) -> Iterator[int]:
        """Yield how many steps to take before each look, up to the most that the options allow."""

    @abstractmethod
    def draw(self, steps: int) -> Any:
        """Draw the samples of so many steps from the nominal of each problem."""

    @abstractmethod
    def update(self, state: Any, samples: Any) -> tuple[Any, Any]:
        """Take one step for each sample; return the next state and what was seen on the way."""

    @abstractmethod
    def judge(self, state: Any, seen: Any) -> tuple[Any, list[Bounds]]:
        """Bound what the steps have led to; return the state to go on from, and bounds by problem."""

    @abstractmethod
    def finish(self, state: Any) -> list[Answer]:
        """Return the best policy of each problem, certified."""

    @staticmethod
    @abstractmethod
    def adversary(problem: Problem, parameters: Parameters) -> Adversary:
        """Return the worst distribution for a policy around the rows of a problem."""

    @staticmethod
    @abstractmethod
    def radius_grid(problem: Problem) -> FloatArray:
        """Return radii that may be useful for a problem on rows, from the largest down to zero."""

    @staticmethod
    @abstractmethod
    def worst_values(
        problem: Problem, parameters: Parameters, radii: FloatArray
    ) -> tuple[FloatArray, str]:
        """Return the worst case of a policy around the rows of a problem at each radius.

        The second part says what the values are: "exact", "bound" (never too low) or "estimate".
        """
