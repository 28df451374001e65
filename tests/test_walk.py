"""CONTRIBUTING tells the truth: its map names every module, its walk is the one that calls take."""

import csv
import re
import sys
import threading
import tomllib
from pathlib import Path

import numpy as np
import pytest

import surefoot
from surefoot import RobustNewsvendor
from surefoot.datasets import synthetic
from surefoot.io import read_file

SOURCE = Path(surefoot.__file__).parent
ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
MODULE = re.compile(r"`([\w/]+\.py)`")


def section(title, level="##"):
    """Return the text below a heading, up to the next one of its level or above."""
    rest = TEXT.split(f"\n{level} {title}", 1)[1].split("\n", 1)[1]
    return re.split(rf"^#{{2,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def crossed(call):
    """Return what a call gives back, and the files of the package in the order of their first call."""
    files = {}

    def follow(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_name != "<module>":
            path = Path(code.co_filename)
            if path.is_relative_to(SOURCE):
                files.setdefault(path.relative_to(SOURCE).as_posix(), code.co_qualname)

    threading.setprofile(follow)  # folds are solved in threads
    sys.setprofile(follow)
    try:
        answer = call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return answer, files


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """The files crossed by reading, fitting and deciding."""
    path, data = tmp_path_factory.mktemp("walk") / "past.csv", synthetic(n=60, s=5, seed=0)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[*"abcde", "demand"], *np.column_stack([data.X, data.y]).tolist()])
    RobustNewsvendor(1.0, 0.2).fit(data.X, data.y)  # compiling is no part of the walk
    (table, outcomes), read = crossed(lambda: read_file(path).split("demand"))
    contexts = table.to_numpy()
    model = RobustNewsvendor(1.0, 0.2)
    _, fit = crossed(lambda: model.fit(contexts, outcomes))
    decision, decide = crossed(lambda: model.predict(contexts[:1]))
    assert decision.shape == (1,)
    return {"Read": read, "Fit": fit, "Decide": decide}


@pytest.mark.parametrize("part", ["Read", "Fit", "Decide"])
def test_the_walk_is_the_one_that_calls_take(walk, part):
    told = MODULE.findall(section(f"{part}: ", "###"))
    made = walk[part]
    assert told == list(made), "the calls were\n" + "\n".join(f"{k}  {v}" for k, v in made.items())


def mapped():
    """Return the modules that the map names, in its order."""
    rows = re.findall(r"^\| `([\w./]+)/` \| (.*) \|$", section("The map of the house"), re.MULTILINE)
    return [(Path(folder) / name).as_posix() for folder, text in rows for name in MODULE.findall(text)]


def test_the_map_names_every_module_once_and_no_other():
    modules = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    assert sorted(mapped()) == sorted(path.relative_to(SOURCE).as_posix() for path in modules)


def test_the_map_goes_down_as_the_imports_do():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    floors = [re.findall(r"surefoot\.(\w+)", layer) for layer in contracts[0]["layers"]]
    floor = {part: number for number, parts in enumerate(floors) for part in parts}
    heights = [floor[module.removesuffix(".py").split("/")[0]] for module in mapped()]
    assert heights == sorted(heights)
