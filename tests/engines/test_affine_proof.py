"""The run behind a lower bound: what it proves holds, and is close."""

from dataclasses import replace

import numpy as np
import pytest

from surefoot.costs import Pieces
from surefoot.engines.affine_proof import Proof, provable
from surefoot.engines.primal_dual import PrimalDualRun
from surefoot.solvers import ConvexProgram

THREE_LINES = Pieces((-1.5, -0.4, 0.6), (-1.1, 0.0, 0.0))


@pytest.mark.parametrize(
    "options",
    [{}, {"order": 1}, {"order": 1, "outcome_cost": 2.0}, {"box": "closed"}, {"pieces": THREE_LINES}],
    ids=["free", "order 1", "outcomes move", "box", "three lines"],
)
def test_a_proof_bounds_the_best_policy_closely(make_affine, options):
    lines = options.get("pieces")
    form = make_affine(3, rows=20, **{key: options[key] for key in options if key != "pieces"})
    form = form if lines is None else replace(form, pieces=lines)
    assert provable(form)
    best = form.worst_value(*ConvexProgram().solve_form(form).policy)[0]
    proof, lower = Proof(form), form.lower_bound(form.start()[1])
    for _ in range(60):
        if proof.gap(lower) <= 1e-3:
            break
        lower = max(lower, form.lower_bound(proof.go_on()))
    assert 0.999 * best <= lower <= best * (1 + 1e-6)
    assert proof.least >= best * (1 - 1e-6)
    dual = options in ({}, {"order": 1}, {"order": 1, "outcome_cost": 2.0})
    assert isinstance(proof._run, PrimalDualRun) is dual


def test_equal_proofs_are_equal(make_affine):
    form = make_affine(3, rows=20)
    first, second = Proof(form), Proof(form)
    np.testing.assert_array_equal(first.go_on(), second.go_on())
