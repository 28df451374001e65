"""Problems packed for the compiled loop over problems, and what it answers.

Python reads a problem under the interpreter's lock, and while it does, other cores may have to wait. So
what problems share is looked at once, and problems stay rows of arrays until somebody reads an answer.
"""

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import ConvexPiecewiseCost
from surefoot.engines.affine_lane import TARGET_SHARE
from surefoot.engines.affine_proof import FIRST_PASSES, FIRST_STEPS
from surefoot.engines.many_kernel import LOOK, MOST_LOOKS, REPLY, REQUEST, solve_packed
from surefoot.engines.primal_dual import STEPS_WHERE_STUCK, sticks
from surefoot.nominals import Empirical
from surefoot.policies import Linear
from surefoot.problem import Problem
from surefoot.problem.affine_form import power_of_two
from surefoot.typing import FloatArray, IntArray

# Problems with more numbers gain nothing from a batch: their steps take longer than any call.
MOST_NUMBERS, MOST_ROWS = 100_000, 5_000
# Problems that a thread takes at a time: so many that asking for them costs little, so few that all
# cores are soon at work.
CHUNK, LEAST_CHUNK = 24, 4
CORES = os.cpu_count() or 1
# What a request takes from the cost, the policy and the ball of its problem.
ASKED = ("radius", "order", "outcome_cost", "up", "down", "cost_unit", "intercept", "own_scale")


class _Kind(NamedTuple):
    """What problems with the same cost, policy and ball ask for, and the units that the ball names."""

    number: int
    asked: tuple[Any, ...]
    scale: Sequence[float] | None


class PlainProblems(NamedTuple):
    """Problems that the compiled loop takes: where they stand, what each asks for, and its rows.

    Requests say where rows begin if all lie one behind the other; ``scales`` holds the units of columns
    where the ball names them.
    """

    places: IntArray
    requests: Any
    nominals: list[Empirical]
    scales: list[Sequence[float] | None]

    def some(self, chosen: Sequence[int]) -> "PlainProblems":
        """Return some of the problems."""
        requests = _one_behind_the_other(self.requests[chosen])
        nominals, scales = [self.nominals[k] for k in chosen], [self.scales[k] for k in chosen]
        return PlainProblems(self.places[chosen], requests, nominals, scales)

    def pack(self, some: slice, join: Callable[[list[FloatArray]], FloatArray]) -> tuple[Any, ...]:
        """Return the requests, contexts, outcomes, masses and units of some problems."""
        requests, nominals = self.requests[some], self.nominals[some]
        # In standard deviations: only room to put them.
        scales = np.ones(int(requests["columns"].sum()))
        for k in np.flatnonzero(requests["own_scale"]).tolist():
            place = requests["first_column"][k] - requests["first_column"][0]
            scale = self.scales[some.start + k]
            scales[place : place + requests["columns"][k]] = 1.0 if scale is None else scale
        return (
            requests,
            join([nominal.contexts for nominal in nominals]),
            join([nominal.outcomes for nominal in nominals]),
            join([nominal.masses for nominal in nominals]),
            scales,
        )


def part_of(packed: tuple[Any, ...], some: slice) -> tuple[Any, ...]:
    """Return some of the problems that were packed."""
    requests, contexts, outcomes, masses, scales = packed
    at = requests[some.start]
    return (
        requests[some], contexts[at["first_context"] :], outcomes[at["first"] :],
        masses[at["first"] :], scales[at["first_column"] :],
    )  # fmt: skip


def join_in_a_thread(arrays: list[FloatArray]) -> FloatArray:
    """Return the numbers of arrays one behind the other.

    NumPy's concatenate lets go of the interpreter's lock for each array, and threads then spend more
    time handing it over than copying.
    """
    buffers: list[Any] = [np.ascontiguousarray(array) for array in arrays]
    return np.frombuffer(bytearray().join(buffers))


def join_alone(arrays: list[FloatArray]) -> FloatArray:
    """Return the same where no other thread waits for the lock: NumPy's way, in large pages."""
    return np.concatenate([array.ravel() for array in arrays])


def _one_behind_the_other(requests: Any) -> Any:
    """Say where the rows of each problem begin."""
    rows, columns = requests["rows"], requests["columns"]
    for name, counts in (
        ("first", rows), ("first_context", rows * columns), ("first_column", columns),
    ):  # fmt: skip
        requests[name] = np.cumsum(counts) - counts
    return requests


def plain_problems(problems: Sequence[Problem], gap_tol: float, max_steps: int) -> PlainProblems:
    """Return the problems that the compiled loop can take, to be solved to this gap.

    It takes one product, a cost of two lines, a linear policy of the contexts themselves and a
    Wasserstein ball with free support, around not too many rows.
    """
    known: dict[tuple[int, int, int], _Kind | None] = {}
    kinds: list[_Kind] = []
    cost, policy, ball, kind = None, None, None, None
    places, chosen, rows, columns, nominals = [], [], [], [], []
    for place, problem in enumerate(problems):
        nominal = problem.nominal
        if not isinstance(nominal, Empirical) or nominal.outcomes.shape[1] != 1:
            continue
        # Most problems share all but their rows.
        if problem.cost is not cost or problem.policy is not policy or problem.ball is not ball:
            cost, policy, ball = problem.cost, problem.policy, problem.ball
            parts = id(cost), id(policy), id(ball)
            if parts not in known:
                known[parts] = _kind(problem, len(kinds))
                kinds += [] if (new := known[parts]) is None else [new]
            kind = known[parts]
        if kind is None:
            continue
        n, s = nominal.contexts.shape
        if n > MOST_ROWS or n * s > MOST_NUMBERS or (kind.scale is not None and len(kind.scale) != s):
            continue
        places.append(place)
        chosen.append(kind.number)
        rows.append(n)
        columns.append(s)
        nominals.append(nominal)
    requests = np.zeros(len(kinds), REQUEST)
    requests[list(ASKED)] = np.array([kind.asked for kind in kinds], requests[list(ASKED)].dtype)
    requests["gap_tol"], requests["max_steps"] = TARGET_SHARE * gap_tol, max_steps
    requests = requests[np.array(chosen, dtype=np.intp)]
    requests["rows"], requests["columns"] = rows, columns
    stuck = sticks(*(requests[name] for name in ("order", "intercept", "up", "down")))
    requests["max_steps"][stuck] = min(max_steps, STEPS_WHERE_STUCK)
    scales = [kinds[number].scale for number in chosen]
    return PlainProblems(np.array(places, np.intp), _one_behind_the_other(requests), nominals, scales)


def _kind(problem: Problem, number: int) -> _Kind | None:
    """Return what a problem asks for but for its rows, None if the compiled loop cannot go there."""
    cost, policy, ball = problem.cost, problem.policy, problem.ball
    if type(policy) is not Linear or type(ball) is not WassersteinBall:
        return None
    if policy.features is not None or policy.decisions is not None or policy.offset is not None:
        return None
    if ball.support is not None or ball.frozen or not isinstance(cost, ConvexPiecewiseCost):
        return None
    if ball.order == 1 and ball.outcome_cost < math.inf:
        return None  # runs linger where ||theta|| = 1/kappa, and there rounding decides
    lines = cost.pieces(1)[0]
    if not lines.two or lines.smoothing > 0.0:
        return None
    asked = (
        ball.size, ball.order, ball.outcome_cost, lines.up, lines.down, power_of_two(lines.steepest),
        policy.intercept, ball.scale is not True,
    )  # fmt: skip
    return _Kind(number, asked, None if isinstance(ball.scale, bool) else ball.scale)


class Replies(NamedTuple):
    """What the kernels answer, in the user's units.

    A ``REPLY`` for each problem, its looks at the bounds, and its parameters from ``first`` on.
    """

    first: IntArray
    thetas: FloatArray
    records: Any
    looked: FloatArray

    @classmethod
    def to(cls, requests: Any) -> "Replies":
        """Return room for the answers to requests."""
        thetas, records = np.zeros(int(requests["columns"].sum())), np.zeros(len(requests), REPLY)
        looked = np.zeros((len(requests), MOST_LOOKS + 1, LOOK))
        return cls(np.append(requests["first_column"], len(thetas)), thetas, records, looked)

    def of(self, some: slice) -> tuple[FloatArray, Any, FloatArray]:
        """Return parameters, records and looks of some problems."""
        return self.thetas[self.first[some.start] :], self.records[some], self.looked[some]


def solve_batch(plain: PlainProblems, words: Any, growth: float) -> Replies:
    """Solve problems on all cores; records say which ones were not solved here.

    ``words`` says where the generator of each problem stands; its answer depends on itself and on them
    alone, not on its company.
    """
    replies = Replies.to(plain.requests)

    def solve(some: slice) -> None:
        packed = plain.pack(some, join_in_a_thread)
        solve_packed(*packed, words[some], growth, FIRST_PASSES, FIRST_STEPS, *replies.of(some))

    with ThreadPoolExecutor(CORES) as pool:
        in_threads(pool, solve, _chunks(len(plain.requests)))
    return replies


def _chunks(count: int) -> list[slice]:
    """Cut problems into chunks, fewer problems in the end, so that no core waits long for the last."""
    chunks, start = [], 0
    while start < count:
        size = min(max((count - start) // (2 * CORES), LEAST_CHUNK), CHUNK)
        chunks.append(slice(start, min(start + size, count)))
        start += size
    return chunks


def in_threads(
    pool: ThreadPoolExecutor, call: Callable[[slice], None], chunks: Sequence[slice]
) -> None:
    """Call with each chunk of problems, on all cores."""
    shared = iter(chunks)  # a thread that is done takes the next one

    def work(_: int) -> None:
        for some in shared:
            call(some)

    list(pool.map(work, range(min(CORES, len(chunks)))))
