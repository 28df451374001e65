"""Processor time of a problem among ten thousand: n = 100, s = 20, fixed radius, certified to 1 %.

python -m benchmarks.many_problems

Processor time counts all threads, so it says what the work costs whatever else the machine does; other
programs on the same cores make it larger, never smaller.
"""

import time

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.machine import write_csv
from surefoot import PrimalDual, Problem, WassersteinBall, solve_many
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.nominals import Empirical
from surefoot.policies import Linear

PROBLEMS, ALONE, ROWS, COLUMNS, RADIUS = 10_000, 500, 100, 20, 0.1


def describe(order, problems=PROBLEMS, rows=ROWS, columns=COLUMNS):
    """Problems on data of their own."""
    cost, policy, ball = Newsvendor(1.0, 0.2), Linear(), WassersteinBall(RADIUS, order=order)
    data = (synthetic(rows, columns, seed=k, test=1) for k in range(problems))
    return [Problem(cost, policy, Empirical(one.X, one.y), ball) for one in data]


def read_arrays(answers):
    """Parameters and certified gaps of all answers."""
    return answers.theta, answers.intercept, answers.gap


def read_each(answers):
    """Policy and certificate of each Solution."""
    return [(one.parameters, one.certificate) for one in answers]


def measured(solve):
    """What a call returns, its processor seconds and its wall seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = solve()
    return found, time.process_time() - cpu, time.perf_counter() - wall


def row(order, way, solutions, cpu, wall):
    """One line of the table."""
    gaps = [solution.certificate.gap for solution in solutions]
    return {
        "order": order, "way": way, "problems": len(solutions),
        "processor_ms_each": f"{1e3 * cpu / len(solutions):.3f}",
        "wall_ms_each": f"{1e3 * wall / len(solutions):.3f}",
        "gap_median": f"{np.median(gaps):.5f}", "gap_largest": f"{max(gaps):.5f}",
        "converged": sum(bool(solution.converged) for solution in solutions),
    }  # fmt: skip


def main():
    """Measure and write results/many_problems.csv."""
    rows = []
    for order in (2, 1):
        problems = describe(order)
        solve_many(problems[:20])  # loads what is compiled
        for what, read in (("arrays", read_arrays), ("each Solution", read_each)):

            def solve(given=problems, use=read):
                answers = solve_many(given)
                use(answers)
                return answers

            rows.append(row(order, f"solve_many, {what} read", *measured(solve)))
            print(rows[-1], flush=True)
        few = problems[:ALONE]
        with threadpool_limits(1, user_api="blas"):
            alone = measured(lambda given=few: [PrimalDual().solve(one) for one in given])
        rows.append(row(order, "a loop over PrimalDual().solve", *alone))
        print(rows[-1], flush=True)
    write_csv("many_problems", rows)


if __name__ == "__main__":
    main()
