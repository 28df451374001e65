"""Problems packed for the compiled loop over problems, and what it answers."""

import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from surefoot.ambiguity import WassersteinBall
from surefoot.costs import ConvexPiecewiseCost, Pieces
from surefoot.engines.affine_lane import TARGET_SHARE
from surefoot.engines.affine_proof import FIRST_PASSES, FIRST_STEPS
from surefoot.engines.many_kernel import LOOK, MOST_LOOKS, REPLY, REQUEST, solve_packed
from surefoot.nominals import Empirical
from surefoot.policies import Linear, LinearParameters
from surefoot.problem import Problem
from surefoot.problem.affine_form import power_of_two
from surefoot.typing import FloatArray

# Problems with more numbers gain nothing from a batch: their steps take longer than any call.
MOST_NUMBERS, MOST_ROWS = 100_000, 5_000
# Problems that a thread takes at a time: enough that asking for them costs little.
CHUNK = 64
# What a request takes from its problem; the rest is the same for all, or where its rows begin.
ASKED = (
    "rows", "columns", "radius", "order", "outcome_cost", "up", "down", "cost_unit", "intercept",
    "own_scale",
)  # fmt: skip


class BatchReply(NamedTuple):
    """The answer to one problem, in the user's units.

    ``looks`` holds of each look: steps so far, upper bound, lower bound, gap.
    """

    parameters: LinearParameters
    multiplier: float
    upper: float
    lower: float
    floor: float
    steps: int
    looks: FloatArray


class Packed(NamedTuple):
    """Problems whose rows lie one behind the other, and what each asks for."""

    requests: Any
    contexts: FloatArray
    outcomes: FloatArray
    masses: FloatArray
    scales: FloatArray


def pack(
    problems: Sequence[Problem], lines: Sequence[Pieces], gap_tol: float, max_steps: int
) -> Packed:
    """Put the rows of problems that have plain lines one behind the other."""
    requests = _requests(problems, lines, gap_tol, max_steps)
    nominals: list[Any] = [problem.nominal for problem in problems]
    # In standard deviations: only room to put them.
    scales = np.ones(int(requests["columns"].sum()))
    for k in np.flatnonzero(requests["own_scale"]).tolist():
        ball: Any = problems[k].ball
        if ball.scale is not False:
            scales[requests["first_column"][k] :][: len(ball.scale)] = ball.scale
    return Packed(
        requests,
        _joined([nominal.contexts for nominal in nominals]),
        _joined([nominal.outcomes for nominal in nominals]),
        _joined([nominal.masses for nominal in nominals]),
        scales,
    )


def _joined(arrays: list[FloatArray]) -> FloatArray:
    """Return the numbers of arrays one behind the other.

    NumPy's concatenate lets go of the interpreter's lock for each array, and threads then spend more
    time handing it over than copying.
    """
    return np.frombuffer(bytearray().join([np.ascontiguousarray(array).data for array in arrays]))


def plain_lines(problems: Sequence[Problem]) -> list[Pieces | None]:
    """Return the lines of each problem that the compiled loop can take, None for others.

    It takes one product, a cost of two lines, a linear policy of the contexts themselves and a
    Wasserstein ball with free support, around not too many rows.
    """
    known: dict[int, Pieces | None] = {}  # most problems share their cost
    lines = []
    for problem in problems:
        cost, pieces = problem.cost, None
        if isinstance(cost, ConvexPiecewiseCost) and _plain(problem):
            if id(cost) not in known:
                (given,) = cost.pieces(1)
                known[id(cost)] = given if given.two and given.smoothing == 0.0 else None
            pieces = known[id(cost)]
        lines.append(pieces)
    return lines


def _plain(problem: Problem) -> bool:
    """Whether everything but the cost is as the compiled loop has it."""
    policy, nominal, ball = problem.policy, problem.nominal, problem.ball
    if type(policy) is not Linear or type(ball) is not WassersteinBall:
        return False
    if policy.features is not None or policy.decisions is not None or policy.offset is not None:
        return False
    if ball.support is not None or ball.frozen or not isinstance(nominal, Empirical):
        return False
    if ball.order == 1 and ball.outcome_cost < math.inf:
        return False  # runs linger where ||theta|| = 1/kappa, and there rounding decides
    rows, columns = nominal.contexts.shape
    if nominal.n_products != 1 or rows > MOST_ROWS or rows * columns > MOST_NUMBERS:
        return False
    return isinstance(ball.scale, bool) or len(ball.scale) == columns


def solve_batch(
    problems: Sequence[Problem],
    lines: Sequence[Pieces],
    words: Any,
    *,
    gap_tol: float,
    max_steps: int,
    growth: float,
) -> Iterator[BatchReply | None]:
    """Solve problems that have plain lines on all cores; None where one is not solved here.

    Answers come in order, while later problems are still being solved. ``words`` says where the
    generator of each problem stands; its answer depends on itself and on them alone, not on its
    company.
    """

    def solve(start: int) -> list[BatchReply | None]:
        chunk = slice(start, start + CHUNK)
        packed = pack(problems[chunk], lines[chunk], gap_tol, max_steps)
        return _solve_chunk(packed, words[chunk], growth)

    starts = range(0, len(problems), CHUNK)
    with ThreadPoolExecutor(max_workers=min(len(starts), os.cpu_count() or 1)) as pool:
        for replies in pool.map(solve, starts):
            yield from replies


def _solve_chunk(packed: Packed, words: Any, growth: float) -> list[BatchReply | None]:
    """Solve some problems in one call."""
    requests, *rows = packed
    thetas, replies = np.zeros(len(packed.scales)), np.zeros(len(requests), REPLY)
    looked = np.zeros((len(requests), MOST_LOOKS + 1, LOOK))
    solve_packed(requests, words, *rows, growth, FIRST_PASSES, FIRST_STEPS, thetas, replies, looked)
    return read_replies(packed, thetas, replies, looked)


def _requests(
    problems: Sequence[Problem], lines: Sequence[Pieces], gap_tol: float, max_steps: int
) -> Any:
    """Return the numbers of the problems and where their rows begin."""
    requests = np.zeros(len(problems), REQUEST)
    requests[list(ASKED)] = np.array(
        [_asked(problem, pieces) for problem, pieces in zip(problems, lines, strict=True)],
        requests[list(ASKED)].dtype,
    )
    rows, columns = requests["rows"], requests["columns"]
    for name, counts in (
        ("first", rows), ("first_context", rows * columns), ("first_column", columns),
    ):  # fmt: skip
        requests[name] = np.cumsum(counts) - counts
    requests["gap_tol"], requests["max_steps"] = TARGET_SHARE * gap_tol, max_steps
    return requests


def _asked(problem: Problem, lines: Pieces) -> tuple[Any, ...]:
    """Return the entries ``ASKED`` of a problem."""
    ball: Any = problem.ball
    policy: Any = problem.policy
    nominal: Any = problem.nominal
    return (
        *nominal.contexts.shape, ball.size, ball.order, ball.outcome_cost,
        lines.up, lines.down, power_of_two(lines.steepest), policy.intercept, ball.scale is not True,
    )  # fmt: skip


def read_replies(
    packed: Packed, thetas: FloatArray, replies: Any, looked: FloatArray
) -> list[BatchReply | None]:
    """Return the records of the kernels as answers, None where a problem was not solved."""
    thetas, intercepts = thetas[:, None], np.array(replies["intercept"])
    ends = np.cumsum(packed.requests["columns"]).tolist()
    answers, start = [], 0
    nothing = np.zeros(0)
    for k, (record, end) in enumerate(zip(replies.tolist(), ends, strict=True)):
        solved, _, upper, lower, floor, multiplier, steps, count = record
        parameters = LinearParameters(thetas[start:end], intercepts[k : k + 1], nothing)
        reply = BatchReply(parameters, multiplier, upper, lower, floor, steps, looked[k, :count])
        answers.append(reply if solved else None)
        start = end
    return answers
