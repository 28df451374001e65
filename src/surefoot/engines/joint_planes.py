"""Cutting planes for several products under one adversary: how large they are, and where they begin."""

import numpy as np

from surefoot.ambiguity import JointForm, WassersteinForm
from surefoot.engines.affine_proof import FIRST_STEPS, draw_rows, why_no_dual
from surefoot.engines.cutting_planes import FEW_PAIRS, CuttingPlaneRun
from surefoot.engines.primal_dual import PrimalDualRun
from surefoot.random import rng_for
from surefoot.typing import FloatArray

# The first policy is that of adversaries of their own, after so many passes over the rows.
FIRST_PASSES = 200
# In a box every line is moved by itself for each multiplier that is tried: quick for so many lines.
FEW_LINES = 32
# Programs of up to so many numbers for each round are quicker than any other way to a proof.
SMALL_PROGRAM = 60_000


def small_joint_program(form: JointForm) -> bool:
    """Whether several products under one adversary have a program that is quickly solved."""
    (rows, columns), lines = form.contexts.shape, len(form.lines.levels)
    if form.boxed and lines > FEW_LINES:
        return False
    pairs = rows * lines if rows * lines <= FEW_PAIRS else rows
    return bool(pairs * columns * len(form.products) <= SMALL_PROGRAM)


def joint_run(form: JointForm) -> CuttingPlaneRun:
    """Return a run that begins where each product would be under an adversary of its own, if better."""
    run = CuttingPlaneRun(form)
    if all(why_no_dual(one) is None for one in form.products):
        found = [_policy_apart(one) for one in form.products]
        run.begin_at((np.column_stack([theta for theta, _ in found]), np.array([t for _, t in found])))
    return run


def _policy_apart(form: WassersteinForm) -> tuple[FloatArray, float]:
    """Return roughly the best policy of one product under an adversary of its own."""
    run = PrimalDualRun.start(form)
    count = max(FIRST_PASSES * len(form.outcomes), FIRST_STEPS)
    run.run(draw_rows(form.weights, rng_for(0, "apart"), count))
    return run.policy()
