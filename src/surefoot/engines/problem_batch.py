"""Problems packed for the compiled loop over problems, and what it answers."""

import math
import os
from collections.abc import Sequence
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
    looks: list[list[float]]


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
    return Packed(
        _requests(problems, lines, gap_tol, max_steps),
        np.concatenate([_rows(p).contexts.reshape(-1) for p in problems]),
        np.concatenate([_rows(p).outcomes[:, 0] for p in problems]),
        np.concatenate([_rows(p).masses for p in problems]),
        np.concatenate([_scale(p) for p in problems]),
    )


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
) -> list[BatchReply | None]:
    """Solve problems that have plain lines on all cores; None where one is not solved here.

    ``words`` says where the generator of each problem stands; its answer depends on itself and on them
    alone, not on its company.
    """

    def solve(start: int) -> list[BatchReply | None]:
        chunk = slice(start, start + CHUNK)
        packed = pack(problems[chunk], lines[chunk], gap_tol, max_steps)
        return _solve_chunk(packed, words[chunk], growth)

    starts = range(0, len(problems), CHUNK)
    with ThreadPoolExecutor(max_workers=min(len(starts), os.cpu_count() or 1)) as pool:
        return [reply for replies in pool.map(solve, starts) for reply in replies]


def _solve_chunk(packed: Packed, words: Any, growth: float) -> list[BatchReply | None]:
    """Solve some problems in one call."""
    requests, *rows = packed
    thetas, replies = np.zeros(len(packed.scales)), np.zeros(len(requests), REPLY)
    looked = np.zeros((len(requests), MOST_LOOKS + 1, LOOK))
    solve_packed(requests, words, *rows, growth, FIRST_PASSES, FIRST_STEPS, thetas, replies, looked)
    return read_replies(packed, thetas, replies, looked)


def _rows(problem: Problem) -> Empirical:
    assert isinstance(problem.nominal, Empirical)  # or its pieces were None
    return problem.nominal


def _scale(problem: Problem) -> FloatArray:
    """Units of the columns; for those in standard deviations, room to put them."""
    scale: Any = getattr(problem.ball, "scale", True)
    return np.ones(_rows(problem).n_columns) if isinstance(scale, bool) else np.array(scale)


def _requests(
    problems: Sequence[Problem], lines: Sequence[Pieces], gap_tol: float, max_steps: int
) -> Any:
    """Return the numbers of the problems and where their rows begin."""
    shapes = np.array([_rows(p).contexts.shape for p in problems], dtype=np.int64)
    requests = np.zeros(len(problems), REQUEST)
    requests["rows"], requests["columns"] = shapes.T
    for name, counts in (
        ("first", shapes[:, 0]), ("first_context", shapes.prod(axis=1)), ("first_column", shapes[:, 1]),
    ):  # fmt: skip
        requests[name] = np.cumsum(counts) - counts
    balls: list[Any] = [p.ball for p in problems]
    policies: list[Any] = [p.policy for p in problems]
    requests["radius"] = [ball.size for ball in balls]
    requests["order"] = [ball.order for ball in balls]
    requests["outcome_cost"] = [ball.outcome_cost for ball in balls]
    requests["own_scale"] = [ball.scale is not True for ball in balls]
    requests["intercept"] = [policy.intercept for policy in policies]
    requests["up"], requests["down"] = [p.up for p in lines], [p.down for p in lines]
    requests["cost_unit"] = [power_of_two(p.steepest) for p in lines]
    requests["gap_tol"], requests["max_steps"] = TARGET_SHARE * gap_tol, max_steps
    return requests


def read_replies(
    packed: Packed, thetas: FloatArray, replies: Any, looked: FloatArray
) -> list[BatchReply | None]:
    """Return the records of the kernels as answers, None where a problem was not solved."""
    ends = np.cumsum(packed.requests["columns"])[:-1]
    answers: list[BatchReply | None] = []
    for record, theta, looks in zip(
        replies.tolist(), np.split(thetas[:, None], ends), looked, strict=True
    ):
        solved, intercept, upper, lower, floor, multiplier, steps, count = record
        parameters = LinearParameters(theta, np.array([intercept]))
        answers.append(
            BatchReply(parameters, multiplier, upper, lower, floor, steps, looks[:count].tolist())
            if solved
            else None
        )
    return answers
