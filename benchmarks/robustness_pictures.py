"""Run the code of docs/robustness.md where its pictures lie: the page draws them itself.

python -m benchmarks.robustness_pictures
"""

import contextlib
import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

DOCS = Path(__file__).parent.parent / "docs"
IMAGES = DOCS / "images" / "robustness"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def main():
    IMAGES.mkdir(parents=True, exist_ok=True)
    page = (DOCS / "robustness.md").read_text()
    namespace = {"__name__": "page"}
    with contextlib.chdir(IMAGES), mpl.rc_context({"savefig.dpi": 130}):
        for source in BLOCK.findall(page):
            exec(compile(source, "docs/robustness.md", "exec"), namespace)
    print(f"wrote {', '.join(sorted(path.name for path in IMAGES.glob('*.png')))} in {IMAGES}")


if __name__ == "__main__":
    main()
