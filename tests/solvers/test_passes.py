"""Rows that do not fit into memory, through both solvers, against the same rows at once."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from surefoot import Box, Problem, WassersteinBall
from surefoot.costs import Newsvendor
from surefoot.exceptions import ConvergenceWarning, UnsupportedProblemError
from surefoot.nominals import Empirical, ParquetRows, row_batches
from surefoot.policies import MLP, Linear
from surefoot.problem import affine_forms, form_policies
from surefoot.solvers import DASGD, PrimalDual, default_solver, passes
from tests.held_rows import HeldRows, demand


@pytest.fixture(autouse=True)
def few_rows_are_kept(monkeypatch):
    monkeypatch.setattr(row_batches, "KEPT_NUMBERS", 5 * 2_000)


def problem_of(nominal, order=2, **ball):
    return Problem(Newsvendor(3.0, 0.5), Linear(), nominal, WassersteinBall(0.1, order=order, **ball))


def worst_at_once(problem, rows, parameters):
    forms = affine_forms(problem.around(Empirical(rows.X, rows.y)))
    policies = form_policies(forms, parameters)
    return sum(f.worst_value(*p)[0] * f.value_unit for f, p in zip(forms, policies, strict=True))


@pytest.mark.sweep
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("solver", [PrimalDual(), DASGD()])
@pytest.mark.parametrize("products", [1, 2])
def test_bounds_over_all_rows_hold_for_the_rows_at_once(order, solver, products):
    X, y = demand(20_000)
    rows = HeldRows(X, np.column_stack([y, 2.0 * y + X[:, 0]])[:, :products])
    problem = problem_of(rows, order)
    found = solver.solve(problem, seed=1)
    best = PrimalDual(gap_tol=1e-3).solve(problem.around(Empirical(rows.X, rows.y)))
    assert found.converged
    assert found.certificate.gap <= 0.01
    assert found.certificate.message.startswith("Over all 20,000 rows")
    assert found.certificate.lower <= best.certificate.upper
    assert found.certificate.upper >= best.certificate.lower
    exact = worst_at_once(problem, rows, found.parameters)
    assert exact <= found.certificate.upper * (1.0 + 1e-9)
    assert exact == pytest.approx(found.certificate.upper, rel=1e-3)
    assert exact <= best.certificate.upper * 1.01
    again = solver.solve(problem, seed=1)
    assert (again.parameters.theta == found.parameters.theta).all()
    assert again.certificate == found.certificate


def test_the_sample_alone_would_not_do():
    """Rows whose second half is another world: only passes over all of them see it."""
    X, y = demand(20_000)
    y = y + 30.0 * (np.arange(len(y)) >= 10_000)
    rows = HeldRows(X, y)
    half = PrimalDual().solve(problem_of(Empirical(X[:10_000], y[:10_000])))
    found = PrimalDual().solve(problem_of(rows))
    assert found.certificate.gap <= 0.01
    assert worst_at_once(problem_of(rows), rows, found.parameters) < 0.8 * worst_at_once(
        problem_of(rows), rows, half.parameters
    )


def test_a_few_passes_are_taken_and_told():
    rows = HeldRows(*demand(20_000))
    told = []
    found = PrimalDual(callback=told.append).solve(problem_of(rows))
    assert 2 <= rows.passes <= 8  # one of them tells the units
    assert len(told) == len(found.history) == rows.passes - 1
    assert "passes over all 20,000" in found.status
    assert "steps on 2,000 rows" in found.status
    assert [one.gap for one in told] == sorted((one.gap for one in told), reverse=True)
    assert found.n_steps == told[-1].steps


ODD = {
    "zero": lambda X, y: (X, 0.0 * y),
    "constant": lambda X, y: (X, 0.0 * y + 7.0),
    "counts": lambda X, y: (X, np.round(y / 10.0)),
    "flags and counts": lambda X, y: (1.0 * (X.mean(axis=0) < X), np.round(y / 10.0)),
    "rare": lambda X, y: (X, 1.0 * (y > np.quantile(y, 0.998))),
    "exact": lambda X, y: (X, X @ [1.0, 0.1, 0.2, 0.3] + 5.0),
    "doubled column": lambda X, y: (np.column_stack([X, X[:, 0]]), y),
    "constant column": lambda X, y: (np.column_stack([X, np.ones(len(y))]), y),
    "few rows": lambda X, y: (X[:3], y[:3]),
    "large numbers": lambda X, y: (1e8 * X, 1e8 * y),
    "small numbers": lambda X, y: (1e-8 * X, 1e-8 * y),
    "heavy tails": lambda X, y: (X, np.tan(np.linspace(-1.57, 1.57, len(y)))),
}


@pytest.mark.sweep
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(("order", "radius"), [(1, 0.0), (1, 0.05), (2, 0.05), (2, 1.0)])
def test_odd_rows_are_certified_and_bounds_hold(odd, order, radius):
    rows = HeldRows(*ODD[odd](*demand()))
    problem = problem_of(rows, order).at_radius(radius)
    found = PrimalDual().solve(problem)
    best = PrimalDual(gap_tol=1e-3).solve(problem.around(Empirical(rows.X, rows.y)))
    assert found.converged
    assert found.certificate.lower <= best.certificate.upper * (1 + 1e-9) + 1e-12
    assert found.certificate.upper >= best.certificate.lower * (1 - 1e-9) - 1e-12


def test_a_path_of_radii():
    found = PrimalDual().solve_path(problem_of(HeldRows(*demand())), [0.3, 0.0])
    assert all(one.converged for one in found)
    assert found[0].certificate.upper > found[1].certificate.upper
    assert found[1].multiplier.tolist() == [0.0]


def test_without_an_intercept_order_one_is_certified_too():
    problem = problem_of(HeldRows(*demand()), order=1)
    problem = Problem(problem.cost, Linear(intercept=False), problem.nominal, problem.ball)
    found = PrimalDual().solve(problem)
    assert found.converged
    assert found.parameters.intercept.tolist() == [0.0]


def test_the_multiplier_is_that_of_the_rows_at_once():
    rows = HeldRows(*demand(20_000))
    for order in (1, 2):
        problem = problem_of(rows, order)
        found = PrimalDual(gap_tol=1e-3).solve(problem)
        best = PrimalDual(gap_tol=1e-4).solve(problem.around(Empirical(rows.X, rows.y)))
        assert found.multiplier == pytest.approx(best.multiplier, rel=0.03)


def test_which_solver_runs():
    rows = HeldRows(*demand(2_000))
    free, boxed = problem_of(rows), problem_of(rows, support=Box(-1e6, 1e6))
    assert isinstance(default_solver(free), PrimalDual)
    assert isinstance(default_solver(boxed), DASGD)
    with pytest.raises(UnsupportedProblemError, match="rows in batches need a free support"):
        PrimalDual().solve(boxed)
    assert PrimalDual().why_not(Problem(free.cost, MLP(), rows, free.ball)) is not None


def test_without_sums_a_run_estimates():
    rows = HeldRows(*demand(2_000))
    found = DASGD(gap_tol=0.1, max_steps=4_000).solve(problem_of(rows, support=Box(-1e6, 1e6)))
    assert found.certificate.kind == "estimate"


def test_an_interrupted_run_returns_what_the_passes_have_proved():
    rows = HeldRows(*demand(20_000))

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="was interrupted after .* the best policy so far"):
        found = PrimalDual(gap_tol=1e-5, callback=stop).solve(problem_of(rows))
    assert found.converged is False
    assert worst_at_once(problem_of(rows), rows, found.parameters) <= found.certificate.upper * (
        1 + 1e-9
    )


def test_before_the_first_pass_there_is_nothing_to_return(monkeypatch):
    def stop(self, beside=()):
        raise KeyboardInterrupt

    monkeypatch.setattr(passes.NewtonPasses, "take_pass", stop)
    with pytest.raises(KeyboardInterrupt):
        PrimalDual().solve(problem_of(HeldRows(*demand(2_000))))
    found = DASGD(gap_tol=0.1).solve(problem_of(HeldRows(*demand(2_000))))
    assert found.certificate.kind == "estimate"
    assert "The passes over all rows were interrupted." in found.status


def test_a_gap_out_of_reach_is_told(monkeypatch):
    monkeypatch.setattr(passes, "MOST_PASSES", 1)
    with pytest.warns(
        ConvergenceWarning, match="stopped after .* 1 pass over all 6,000 .*loosen gap_tol"
    ):
        found = PrimalDual(gap_tol=1e-6).solve(problem_of(HeldRows(*demand())))
    assert found.converged is False


def test_a_solve_holds_a_batch_and_a_sample_and_not_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(row_batches, "BATCH_NUMBERS", 2**14)
    X, y = demand(300_000)
    columns = {f"x{j}": X[:, j] for j in range(4)}
    pq.write_table(pa.table({**columns, "y": y}), tmp_path / "a.parquet", row_group_size=20_000)
    whole = X.nbytes + y.nbytes
    del X, y, columns
    problem = problem_of(ParquetRows(tmp_path, outcome="y"))
    PrimalDual().solve(problem)  # what is compiled stays
    problem = problem_of(ParquetRows(tmp_path, outcome="y"))
    tracemalloc.start()
    try:
        assert PrimalDual().solve(problem).converged
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.25 * whole


@pytest.mark.parametrize("solver", [PrimalDual(), DASGD()])
def test_files_are_solved_as_rows_in_memory_are(tmp_path, solver):
    X, y = demand(20_000)
    names = ["a", "b", "c", "d"]
    for k in range(3):
        part = slice(k * 7_000, (k + 1) * 7_000)
        table = pa.table({**{n: X[part, j] for j, n in enumerate(names)}, "sales": y[part]})
        pq.write_table(table, tmp_path / f"{k}.parquet", row_group_size=1_000)
    rows = ParquetRows(tmp_path, outcome="sales")
    found, held = (solver.solve(problem_of(one)) for one in (rows, HeldRows(X, y, names=names)))
    assert found.converged
    assert held.certificate.upper == pytest.approx(found.certificate.upper, rel=0.01)
    if isinstance(solver, PrimalDual):  # which draws nothing beyond the rows that are kept
        assert found.certificate.upper == pytest.approx(held.certificate.upper, rel=1e-9)
