"""Run every benchmark, the quick ones first."""

from benchmarks import gap, mlp_step, page, peers, startup, step_cost, time_to_gap

for part in (startup, step_cost, mlp_step, time_to_gap, peers, gap, page):
    print(f"== {part.__name__}")
    part.main()
