"""Many small problems side by side in one JAX program, each to its certified gap.

Where there is a GPU it steps all of them at once; the processor prepares and judges other programs
meanwhile. What is left when most are solved goes back to the compiled loop over problems: a few
stragglers are no work for a GPU.
"""

import importlib
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from surefoot.engines.lockstep_kernels import NUMBERS, form_packed, judge_packed
from surefoot.engines.many_kernel import MOST_LOOKS
from surefoot.engines.problem_batch import (
    CORES,
    PlainProblems,
    Replies,
    in_threads,
    join_alone,
    part_of,
)
from surefoot.tracing import keep_compiled, load_jax
from surefoot.typing import IntArray

# Steps are asked for in blocks: so many before the first look at the bounds, and how they grow.
BLOCK, FIRST_BLOCKS, GROWTH = 20, 8, 1.5
# As soon as no larger share of the problems is left, they are left out.
STRAGGLERS = 0.02
# Problems and numbers (64 MB of rows) of one program at most: while it steps, the processor prepares
# the next one. Programs at once at most: there is an end to a GPU's memory.
MOST_PROBLEMS, MOST_NUMBERS, MOST_RUNNING = 2_048, 2**23, 8


def solve_in_lockstep(plain: PlainProblems, max_steps: int) -> Iterator[tuple[IntArray, Replies]]:
    """Solve problems; give which ones were in a program and its replies, which say what is solved.

    Nothing is drawn: the answers depend on the problems alone.
    """
    jax = load_jax("engine='batch'")
    keep_compiled(jax)
    # One thread speaks with JAX: two that ask for programs at once wait for each other on its CPU.
    with ThreadPoolExecutor(1) as speaker, ThreadPoolExecutor(CORES) as pool:
        waiting = _programs(plain.requests)
        running: list[tuple[IntArray, _Program]] = []
        while waiting or running:
            if waiting and len(running) < MOST_RUNNING:
                members, size = waiting.pop(0)
                some = plain.some(members.tolist())
                running.append((members, _Program(some, size, jax, speaker, pool)))
                continue
            members, program = running.pop(0)
            if program.look(max_steps):
                yield members, program.replies
            else:
                running.append((members, program))


def _programs(requests: Any) -> list[tuple[IntArray, int]]:
    """Group problems that can share a program, and say for how many it is made.

    They are of one kind, and of sizes that do not waste much.
    """
    kinds = 2 * requests["order"] + requests["intercept"]
    for name in ("rows", "columns"):
        kinds = 64 * kinds + np.ceil(np.log2(requests[name])).astype(np.int64)
    programs = []
    for kind in np.unique(kinds):
        members = np.flatnonzero(kinds == kind)
        numbers = int(requests["rows"][members].max() * (requests["columns"][members].max() + 1))
        most = min(max(MOST_NUMBERS // numbers, 1), MOST_PROBLEMS)
        # Of one size, filled up: each size would be compiled by itself.
        size = math.ceil(len(members) / math.ceil(len(members) / most))
        programs += [(members[k : k + size], size) for k in range(0, len(members), size)]
    return programs


class _Program:
    """Problems of one order, with or without intercept, that step together.

    While the speaker sends rows and asks for steps, the other threads prepare and judge other programs.
    """

    def __init__(
        self, plain: PlainProblems, size: int, jax: Any, speaker: ThreadPoolExecutor,
        pool: ThreadPoolExecutor,
    ) -> None:  # fmt: skip
        self.requests, self.jax, self.speaker, self.pool = plain.requests, jax, speaker, pool
        self.replies = Replies.to(self.requests)
        count, n, s = len(self.requests), *(int(self.requests[k].max()) for k in ("rows", "columns"))
        share = math.ceil(count / CORES)
        self.chunks = [slice(k, min(k + share, count)) for k in range(0, count, share)]
        self.numbers = np.zeros(size, NUMBERS)
        # Contexts, outcomes, weights and slopes of the forms, units and sizes of their columns.
        self.forms = [np.empty((size, *shape)) for shape in ((n, s), (n,), (n,), (n,), (s,), (s,))]
        for array in self.forms:
            array[count:] = 0.0
        packed = plain.pack(slice(0, count), join_alone)

        def fill(some: slice) -> None:
            arrays = (array[some] for array in (*self.forms, self.numbers))
            form_packed(*part_of(packed, some), *arrays)

        in_threads(pool, fill, self.chunks)
        self.steps, self.blocks, self.looks = 0, float(FIRST_BLOCKS), 0
        self.answer = speaker.submit(self._start)

    def _start(self) -> list[Any]:
        """Send the problems to where they step, and ask for the first steps."""
        engine = importlib.import_module("surefoot.engines.lockstep_steps")
        self.compiled = engine.compiled(
            int(self.requests["order"][0]), intercept=bool(self.requests["intercept"][0]), steps=BLOCK
        )
        # Those that are not plain step, too, with numbers that do no harm.
        plainly = {
            name: np.where(self.numbers["plain"], self.numbers[name], 1.0)
            for name in ("decision", "cost", "up", "down", "radius", "inverse_kappa")
        }
        with self.jax.enable_x64(True):
            forms = self.jax.device_put(engine.Forms(*self.forms[:4], **plainly))
            self.given, self.standing = self.compiled.start(forms)
        return self._go_on()

    def _go_on(self) -> list[Any]:
        """Ask for the next steps; return policies, constants and slopes, which are there later."""
        blocks = math.ceil(self.blocks)
        with self.jax.enable_x64(True):
            after = self.standing
            for _ in range(blocks):
                after = self.compiled.steps(after, self.given)
            self.standing, *policies = self.compiled.settle(self.standing, after, self.given)
        self.steps, self.blocks = self.steps + blocks * BLOCK, GROWTH * self.blocks
        return [*policies, self.standing.slopes]

    def look(self, max_steps: int) -> bool:
        """Wait for the steps, judge what they reached, and go on; return whether few are left."""
        arrays = [*map(np.asarray, self.answer.result()), *self.forms, self.numbers]

        def judge(some: slice) -> None:
            parts = (array[some] for array in arrays)
            judge_packed(self.requests[some], self.steps, *parts, *self.replies.of(some))

        in_threads(self.pool, judge, self.chunks)
        self.looks += 1
        count, plain = len(self.requests), self.numbers["plain"][: len(self.requests)]
        left = np.count_nonzero(plain & ~self.replies.records["solved"])
        most = max_steps // int(self.requests["rows"].max())
        done = left <= STRAGGLERS * count or self.steps >= most or self.looks == MOST_LOOKS
        if not done:
            self.answer = self.speaker.submit(self._go_on)
        return bool(done)
