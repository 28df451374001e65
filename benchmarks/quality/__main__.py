"""Run what is missing (hours on two cores from nothing; resumable), then write tables and page.

python -m benchmarks.quality          run and write
python -m benchmarks.quality page     write only
"""

import sys

from benchmarks.quality import page, run

if "page" not in sys.argv[1:]:
    run.main()
page.main()
