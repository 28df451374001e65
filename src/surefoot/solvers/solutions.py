"""The answers to many problems: bounds and parameters of all at once, a Solution when one is read."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields
from numbers import Integral
from typing import Any, NamedTuple, overload

import numpy as np

from surefoot.certificates import Certificate, make_certificate, relative_gap
from surefoot.engines.problem_batch import Replies
from surefoot.exceptions import InvalidInputError, InvalidTypeError
from surefoot.policies import LinearParameters
from surefoot.solvers.base import Progress, Solution, sentence
from surefoot.solvers.primal_dual import PrimalDual
from surefoot.typing import BoolArray, FloatArray, IntArray


class Batch(NamedTuple):
    """Problems that were solved in one go: where they stand, and which replies are theirs."""

    solver: PrimalDual
    places: IntArray
    rows: IntArray
    replies: Replies

    @classmethod
    def solved(cls, solver: PrimalDual, places: IntArray, replies: Replies) -> "Batch":
        """Return the problems that were solved."""
        rows = np.flatnonzero(replies.records["solved"])
        return cls(solver, places[rows], rows, replies)

    def parameters(self, row: int) -> LinearParameters:
        """Return the policy of one answer."""
        first, thetas, records, _ = self.replies
        theta, intercept = thetas[first[row] : first[row + 1], None], records["intercept"][row]
        return LinearParameters(theta, np.array([intercept]), np.zeros(0))

    def multiplier(self, row: int) -> FloatArray:
        """Return the optimal gamma of one problem's adversary."""
        return np.array([self.replies.records["multiplier"][row]])

    def bounds(self, row: int) -> tuple[float, float, float]:
        """Return the upper and lower bound of one answer, and the floor of its gap."""
        _, _, upper, lower, floor, *_ = self.replies.records[row].item()
        return upper, lower, floor

    def certificate(self, row: int) -> Certificate:
        """Return what the bounds prove of one answer."""
        return make_certificate(*self.bounds(row), "exact")

    def converged(self, row: int) -> bool:
        """Return what the records say: the others are not among the rows."""
        return bool(self.replies.records["solved"][row])

    def status(self, row: int) -> str:
        """Say how the run for one answer ended."""
        gap, tolerance = relative_gap(*self.bounds(row)), self.solver.gap_tol
        share = f"certified gap {100 * gap:.2g} %, tolerance {100 * tolerance:.2g} %"
        return sentence(type(self.solver).__name__, self.n_steps(row), share, self.converged(row))

    def n_steps(self, row: int) -> int:
        """Return the steps taken for one answer."""
        return int(self.replies.records["steps"][row])

    def history(self, row: int) -> tuple[Progress, ...]:
        """Return the looks at one answer's bounds; the compiled loop does not look at a clock."""
        looks = self.replies.looked[row, : self.replies.records["looks"][row]].tolist()
        return tuple(
            [Progress(int(taken), upper, lower, gap, math.nan) for taken, upper, lower, gap in looks]
        )


class _OneOfMany(Solution):
    """The answer to one problem of a batch: a Solution whose parts are put together when first read."""

    @classmethod
    def of(cls, batch: Batch, row: int) -> Solution:
        """Return an answer that nobody has read yet."""
        answer = object.__new__(cls)
        vars(answer)["_source"] = batch, row
        return answer

    def __getattr__(self, name: str) -> Any:
        """Put together a part that was not read before."""
        if name not in Solution.__dataclass_fields__:
            raise AttributeError(f"'Solution' object has no attribute {name!r}")
        batch, row = vars(self)["_source"]
        value = vars(self)[name] = getattr(batch, name)(row)
        return value

    def __dir__(self) -> list[str]:
        """Name all parts, for completion, not only those that were read."""
        return sorted({*super().__dir__(), *Solution.__dataclass_fields__})

    def __repr__(self) -> str:
        """Print what any Solution prints."""
        return repr(copy(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle one answer, not the batch it came from."""
        return Solution, tuple(getattr(self, one.name) for one in fields(Solution))


class Solutions(Sequence[Solution]):
    """The answers of ``solve_many``, in the order of the problems.

    It is read like a list; it cannot be changed. A ``Solution`` is put together when it is first read:
    who needs bounds or parameters of thousands of problems reads them as arrays, in no time.

    Attributes
    ----------
    upper, lower, gap
        The bounds of the certificates and their gaps, shape (problems,).
    converged
        Whether each certified gap is within the solver's tolerance, shape (problems,).
    theta, intercept
        Parameters of linear policies, shapes (problems, columns, products) and (problems, products), of
        problems that have equally many columns and products.

    Examples
    --------
    >>> import numpy as np
    >>> from surefoot import Problem, WassersteinBall, solve_many
    >>> from surefoot.costs import Newsvendor
    >>> from surefoot.nominals import Empirical
    >>> from surefoot.policies import Linear
    >>> rows = Empirical([[0.0], [0.6], [1.0]], [1, 2, 4])
    >>> answers = solve_many([Problem(Newsvendor(1.0, 0.2), Linear(), rows, WassersteinBall(radius))
    ...                       for radius in (0.0, 0.1)])
    >>> answers.theta.shape, bool(answers.gap.max() <= 0.01), answers[-1].converged
    ((2, 1, 1), True, True)
    """

    def __init__(self, count: int, alone: Mapping[int, Solution], batches: Sequence[Batch]) -> None:
        self._alone, self._batches = dict(alone), tuple(batches)
        self._made: list[Solution | None] = [None] * count
        for k, solution in alone.items():
            self._made[k] = solution
        # Which batch, and which of its replies.
        self._where = np.zeros((count, 2), dtype=np.intp)
        for number, batch in enumerate(batches):
            self._where[batch.places, 0], self._where[batch.places, 1] = number, batch.rows

    def __len__(self) -> int:
        """Return how many problems there were."""
        return len(self._made)

    @overload
    def __getitem__(self, index: int) -> Solution: ...
    @overload
    def __getitem__(self, index: slice) -> list[Solution]: ...
    def __getitem__(self, index: Any) -> Solution | list[Solution]:
        """Return one answer, or a list of some."""
        if isinstance(index, slice):
            return [self._answer(k) for k in range(*index.indices(len(self)))]
        if isinstance(index, bool) or not isinstance(index, Integral):
            raise InvalidTypeError(
                f"the number of an answer must be a whole number or a slice, got {index!r}."
            )
        return self._answer(int(index))

    def __iter__(self) -> Iterator[Solution]:
        """Give the answers in order."""
        return map(self._answer, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether the other one holds the same answers; a list may."""
        return isinstance(other, Solutions | list) and list(self) == list(other)

    def __repr__(self) -> str:
        """Print how many there are rather than all of them."""
        return f"Solutions({len(self)} problems, {np.count_nonzero(self.converged)} converged)"

    def _answer(self, index: int) -> Solution:
        made = self._made[index]
        if made is None:
            number, row = self._where[index].tolist()
            made = self._made[index] = _OneOfMany.of(self._batches[number], row)
        return made

    def _numbers(
        self, of_batch: Callable[[Replies, IntArray], Any], of_one: Callable[[Solution], Any]
    ) -> FloatArray:
        """Return a number, or numbers of one shape, of each answer."""
        parts: list[tuple[Any, FloatArray]] = [
            (batch.places, of_batch(batch.replies, batch.rows)) for batch in self._batches
        ]
        parts += [([k], np.array([of_one(one)], dtype=float)) for k, one in self._alone.items()]
        shapes = sorted({part.shape[1:] for _, part in parts})
        if len(shapes) > 1:
            raise _differ(shapes)
        numbers = np.zeros((len(self), *(shapes[0] if shapes else ())))
        for places, part in parts:
            numbers[places] = part
        return numbers

    @property
    def upper(self) -> FloatArray:
        """The worst-case expected cost of each policy."""
        return self._numbers(
            lambda replies, rows: replies.records["upper"][rows], lambda one: one.certificate.upper
        )

    @property
    def lower(self) -> FloatArray:
        """What no policy of the family goes below, of each problem."""
        return self._numbers(
            # Rounding alone may have crossed them; see ``make_certificate``.
            lambda replies, rows: np.minimum(
                *(replies.records[end][rows] for end in ("lower", "upper"))
            ),
            lambda one: one.certificate.lower,
        )

    @property
    def gap(self) -> FloatArray:
        """The certified gap of each policy."""
        return self._numbers(
            lambda replies, rows: replies.looked[rows, replies.records["looks"][rows] - 1, 3],
            lambda one: one.certificate.gap,
        )

    @property
    def converged(self) -> BoolArray:
        """Whether each certified gap is within the solver's tolerance."""
        flags = self._numbers(lambda _, rows: np.ones(len(rows)), lambda one: one.converged is True)
        return flags > 0.0

    @property
    def theta(self) -> FloatArray:
        """The parameters of linear policies."""
        return self._numbers(_thetas, lambda one: _linear(one).theta)

    @property
    def intercept(self) -> FloatArray:
        """The intercepts of linear policies."""
        return self._numbers(
            lambda replies, rows: replies.records["intercept"][rows, None],
            lambda one: _linear(one).intercept,
        )


def _thetas(replies: Replies, rows: IntArray) -> FloatArray:
    """Return parameters of shape (problems, columns, 1)."""
    columns = np.diff(replies.first)
    least, most = int(columns.min()), int(columns.max())
    if least < most:
        raise _differ([(least, 1), (most, 1)])
    return replies.thetas.reshape(-1, most)[rows][:, :, None]


def _differ(shapes: Sequence[tuple[int, ...]]) -> InvalidInputError:
    return InvalidInputError(
        "theta and intercept of all problems at once must be of one shape, got "
        f"{shapes[0]} and {shapes[-1]}: read the parameters of each solution."
    )


def _linear(solution: Solution) -> LinearParameters:
    if not isinstance(solution.parameters, LinearParameters):
        raise InvalidInputError(
            "theta and intercept of all problems at once must be those of linear policies, got "
            f"{type(solution.parameters).__name__}: read the parameters of each solution."
        )
    return solution.parameters
