"""Many small problems side by side in one JAX program, each to its certified gap.

Where there is a GPU it steps all of them at once; the processor prepares and judges. What is left when
most are solved goes back to the compiled loop over problems: a few stragglers are no work for a GPU.
"""

import importlib
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from surefoot.costs import Pieces
from surefoot.engines.lockstep_kernels import NUMBERS, judge_packed, prepare_packed
from surefoot.engines.many_kernel import LOOK, MOST_LOOKS, REPLY
from surefoot.engines.problem_batch import BatchReply, Packed, pack, read_replies
from surefoot.problem import Problem
from surefoot.tracing import keep_compiled, load_jax

# Steps before the first look at the bounds, and by how much they grow from look to look.
FIRST_STEPS, GROWTH = 80, 1.5
# As soon as no larger share of the problems is left, they are left out.
STRAGGLERS = 0.02
# Numbers of one program at most: 1 GB of rows.
MOST_NUMBERS = 2**27
# Problems that a thread prepares or judges at a time.
CHUNK = 64


def solve_in_lockstep(
    problems: Sequence[Problem],
    lines: Sequence[Pieces],
    *,
    gap_tol: float,
    max_steps: int,
) -> list[BatchReply | None]:
    """Solve problems that have plain lines; None where one is not solved here.

    Nothing is drawn: the answers depend on the problems alone.
    """
    jax = load_jax("engine='batch'")
    keep_compiled(jax)
    answers: list[BatchReply | None] = [None] * len(problems)
    for members in _programs(problems):
        packed = pack([problems[k] for k in members], [lines[k] for k in members], gap_tol, max_steps)
        with jax.enable_x64(True), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            found = _Program(packed, jax, pool).solve(max_steps)
        for k, reply in zip(members, found, strict=True):
            answers[k] = reply
    return answers


def _programs(problems: Sequence[Problem]) -> list[list[int]]:
    """Group problems that can share a program: one kind, sizes that do not waste much."""
    kinds: dict[tuple[int, bool, int, int], list[int]] = {}
    for k, problem in enumerate(problems):
        nominal: Any = problem.nominal
        policy: Any = problem.policy
        ball: Any = problem.ball
        rows, columns = (2 ** math.ceil(math.log2(size)) for size in nominal.contexts.shape)
        kinds.setdefault((ball.order, policy.intercept, rows, columns), []).append(k)
    programs = []
    for (_, _, rows, columns), members in kinds.items():
        most = max(MOST_NUMBERS // (rows * (columns + 1)), 1)
        programs += [members[k : k + most] for k in range(0, len(members), most)]
    return programs


class _Program:
    """Problems of one order, with or without intercept, that step together."""

    def __init__(self, packed: Packed, jax: Any, pool: ThreadPoolExecutor) -> None:
        self.packed, self.jax, self.pool = packed, jax, pool
        requests = packed.requests
        count, n, s = len(requests), int(requests["rows"].max()), int(requests["columns"].max())
        size = min(n + 1, s) + 1  # axes, one more where the mean has its own, and the constant
        self.rows, self.targets = np.zeros((count, n, size)), np.zeros((count, n))
        self.weights, self.metric = np.zeros((count, n)), np.zeros((count, size))
        self.axes, self.mean = np.zeros((count, size, s)), np.zeros((count, s))
        self.theta, self.slopes = np.zeros((count, size)), np.zeros((count, n))
        self.numbers = np.zeros(count, NUMBERS)
        self.thetas, self.replies = np.zeros(len(packed.scales)), np.zeros(count, REPLY)
        self.looked = np.zeros((count, MOST_LOOKS + 1, LOOK))
        self._in_threads(
            prepare_packed,
            (self.rows, self.targets, self.weights, self.metric, self.axes, self.mean, self.theta,
             self.slopes, self.numbers),
        )  # fmt: skip

    def _in_threads(self, kernel: Any, arrays: tuple[Any, ...], whole: tuple[Any, ...] = ()) -> None:
        """Call a kernel on some problems at a time, with their part of the arrays."""

        def call(start: int) -> None:
            some = slice(start, start + CHUNK)
            requests, *rows = self.packed
            kernel(requests[some], *rows, *whole, *(array[some] for array in arrays))

        list(self.pool.map(call, range(0, len(self.numbers), CHUNK)))

    def solve(self, max_steps: int) -> list[BatchReply | None]:
        """Step, look at the bounds, and go on until few are left."""
        engine = importlib.import_module("surefoot.engines.lockstep_steps")
        given, standing = self._on_device(engine)
        requests, steps, block = self.packed.requests, 0, float(FIRST_STEPS)
        run = engine.compiled_steps(int(requests["order"][0]), intercept=bool(requests["intercept"][0]))
        most = max_steps // int(requests["rows"].max())
        for _ in range(MOST_LOOKS):
            standing = run(standing, given, math.ceil(block))
            steps += math.ceil(block)
            block *= GROWTH
            theta, slopes = np.asarray(standing.theta), np.asarray(standing.slopes)
            self._in_threads(
                judge_packed,
                (self.axes, self.mean, theta, slopes, self.numbers, self.replies, self.looked),
                whole=(self.thetas, steps),
            )
            left = np.count_nonzero(self.numbers["plain"] & ~self.replies["solved"])
            if left <= STRAGGLERS * len(requests) or steps >= most:
                break
        return read_replies(self.packed, self.thetas, self.replies, self.looked)

    def _on_device(self, engine: Any) -> tuple[Any, Any]:
        """Send the numbers of the problems to where they will step."""
        send, numbers = self.jax.device_put, self.numbers
        priced = np.arange(self.metric.shape[1]) < numbers["count"][:, None]
        plain = numbers["plain"]  # the others step, too, with numbers that do no harm
        given = engine.Given(
            rows=send(self.rows), targets=send(self.targets), weights=send(self.weights),
            metric=send(self.metric), priced=send(priced.astype(float)),
            up=send(numbers["up"].copy()), down=send(numbers["down"].copy()),
            radius=send(numbers["radius"].copy()), pull=send(numbers["pull"].copy()),
            norm=send(np.where(plain, numbers["norm"], 1.0)),
        )  # fmt: skip
        balance = send(np.where(plain, numbers["balance"], 1.0))
        return given, engine.Standing(send(self.theta), send(self.slopes), balance)
