"""Run every benchmark, the quick ones first."""

from benchmarks import (
    beyond_memory,
    command_line,
    compare_large,
    convergence,
    coverage,
    fit_time,
    gap,
    mixed_columns,
    mlp_step,
    online,
    page,
    panel_memory,
    peers,
    price,
    robustness_pictures,
    scaling,
    startup,
    step_cost,
    time_to_gap,
)
from benchmarks.quality import page as quality_page
from benchmarks.quality import run as quality_run

for part in (
    startup, command_line, fit_time, step_cost, mlp_step, online, time_to_gap, compare_large, peers, price,
    robustness_pictures, gap, panel_memory, scaling, page, mixed_columns, convergence, coverage,
    beyond_memory, quality_run, quality_page,
):  # fmt: skip
    print(f"== {part.__name__}")
    part.main()
