"""Print constraints that pin every dependency of the core to its lower bound in pyproject.toml.

``python .github/oldest.py exact cli`` pins those extras, too. The autodiff engine cannot be among them:
JAX needs a newer NumPy than the core does.
"""

import re
import sys
import tomllib
from pathlib import Path

BOUND = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)$")


def lower_bounds(project: dict, extras: list[str]) -> list[str]:
    """Return ``name==bound`` for each dependency; one without a lower bound is an error."""
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    pins = []
    for requirement in wanted:
        found = BOUND.match(requirement)
        if found is None:
            raise SystemExit(f"A dependency must read name>=bound, got {requirement!r}.")
        pins.append(f"{found[1]}=={found[2]}")
    return pins


if __name__ == "__main__":
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    print(*lower_bounds(tomllib.loads(text)["project"], sys.argv[1:]), sep="\n")
