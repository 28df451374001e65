"""Run, check, stop: the loop trusts bounds, never a run."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from surefoot.exceptions import ConvergenceWarning
from surefoot.solvers import Exact
from surefoot.solvers.base import assemble
from surefoot.solvers.loop import draw_blocks, run_until


@dataclass
class Scripted:
    """A run that returns policies and slopes from a list, whatever it is asked to do."""

    form: object
    script: list
    steps: int = 0
    slopes: np.ndarray = field(default=None)

    def __post_init__(self):
        self.slopes = np.zeros(len(self.form.weights))

    def run(self, draws):
        self.steps += len(draws)
        self.now, self.slopes = self.script.pop(0)

    def policy(self):
        return self.now


def blocks(count, size=10):
    return iter([np.arange(size)] * count)


def test_the_best_policy_and_the_best_slopes_are_kept(make_affine):
    form = make_affine(1, radius=0.1)
    decision, u = form.constant_order()
    good, zero = np.array([0.3, 0.2, 0.1]), np.zeros(8)
    script = [((good, decision), u), ((good * 100, decision), zero)]
    candidates = [form.worst_value(*policy)[0] for policy, _ in script]
    start = form.worst_value(np.zeros(3), decision)[0]
    answer = run_until(Scripted(form, script), blocks(2), gap_tol=1e-9)
    kept = form.worst_value(answer.theta, answer.intercept)[0]
    assert kept == min(start, *candidates)
    assert form.lower_bound(answer.slopes) == form.lower_bound(u) > 0
    assert not answer.interrupted
    assert answer.history[-1].gap > 1e-9
    assert answer.steps == 20
    assert [check.steps for check in answer.history] == [0, 10, 20]


def test_a_run_that_diverges_does_no_harm(make_affine):
    form = make_affine(1, radius=0.1)
    decision, u = form.constant_order()
    script = [((np.full(3, np.nan), np.nan), u)] * 2
    answer = run_until(Scripted(form, script), blocks(2), gap_tol=1e-9)
    assert not answer.theta.any()
    assert answer.intercept == decision


def test_it_stops_at_half_the_tolerance_or_says_that_it_met_the_whole(make_affine):
    form = make_affine(1, radius=0.1)
    decision, u = form.constant_order()
    start = form.worst_value(np.zeros(3), decision)[0]
    gap = (start - form.lower_bound(u)) / max(form.lower_bound(u), form.gap_floor)
    same = ((np.zeros(3), decision), u)

    def run(tolerance):
        answer = run_until(Scripted(form, [same] * 3), blocks(3), gap_tol=tolerance)
        assert not answer.interrupted
        return answer.steps, assemble(Exact(), [answer], gap_tol=tolerance).converged

    assert run(2.01 * gap) == (0, True)
    assert run(1.5 * gap) == (30, True)
    with pytest.warns(ConvergenceWarning, match="^Exact ran out of steps after 30 "):
        assert run(0.9 * gap) == (30, False)


def test_a_continued_run_is_looked_at_before_it_steps(make_affine):
    form = make_affine(1, radius=0.1)
    best = Exact().solve_form(form)
    run = Scripted(form, [])
    run.now, run.slopes, run.steps = (best.theta, best.intercept), best.slopes, 50
    answer = run_until(run, blocks(0), gap_tol=1e-9)
    assert answer.theta is best.theta
    np.testing.assert_array_equal(answer.slopes, best.slopes)
    assert answer.steps == 0


def test_equal_weights_are_drawn_in_shuffled_passes(make_affine):
    form = make_affine(1, rows=7)
    taken = list(draw_blocks(form, np.random.default_rng(0), 9_000, growth=2.0))
    assert [len(block) for block in taken] == [2_000, 4_000, 3_000]
    passes = taken[0][: 7 * 285].reshape(-1, 7)
    assert (np.sort(passes, axis=1) == np.arange(7)).all()
    assert len(np.unique(passes, axis=0)) > 100


def test_unequal_weights_are_drawn_by_weight(make_affine):
    form = make_affine(1, rows=4)
    form = replace(form, weights=np.array([0.1, 0.2, 0.3, 0.4]))
    (block,) = draw_blocks(form, np.random.default_rng(0), 2_000, growth=2.0)
    shares = np.bincount(block, minlength=4) / len(block)
    np.testing.assert_allclose(shares, form.weights, atol=0.04)


def test_few_steps_make_one_short_block(make_affine):
    (block,) = draw_blocks(make_affine(1), np.random.default_rng(0), 5, growth=1.5)
    assert len(block) == 5
    assert block.max() < 8


@pytest.mark.parametrize("rows", [3, 3_000])
def test_the_first_block_sees_every_row_at_least_twice(make_affine, rows):
    form = make_affine(1, rows=rows, columns=1)
    block = next(draw_blocks(form, np.random.default_rng(0), 10**6, growth=2.0))
    assert np.bincount(block, minlength=rows).min() >= 2
