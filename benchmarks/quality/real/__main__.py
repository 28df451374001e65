"""Run what is missing (an hour on two cores from nothing), then write the tables of the page.

python -m benchmarks.quality.real                    run both halves and write
python -m benchmarks.quality.real run design|judge [method ...]
python -m benchmarks.quality.real page
python -m benchmarks.quality.real order              what time= is worth
"""

import sys

from benchmarks.quality.real import in_order, page, run

command, *rest = sys.argv[1:] or ["all"]
if command in ("all", "run"):
    for half in rest[:1] or ("design", "judge"):
        run.main(half, tuple(rest[1:]))
if command in ("all", "order"):
    in_order.main()
page.main()
