"""The wheel works with the core's dependencies alone, and says what to install for more."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

pytest.importorskip("build")
pytest.importorskip("hatchling")

ROOT = Path(__file__).parent.parent
EXTRAS = ("cvxpy", "jax", "matplotlib", "optax", "pandas", "polars", "river", "rich", "typer")

FIT = """
import importlib.util
import surefoot
from surefoot import RobustNewsvendor
from surefoot.datasets import load_yaz

found = [name for name in {extras!r} if importlib.util.find_spec(name)]
assert not found, f"extras are installed: {{found}}"
days = load_yaz(drop_closed=True)
X, y = days.contexts[:60, :5], days.product("lamb")[:60]
for name in surefoot.__all__:
    getattr(surefoot, name)
model = RobustNewsvendor(15, 10, radius=0.1).fit(X, y)
assert model.converged_ and model.predict(X).shape == (60,)
"""

MISSING = """
import surefoot
from surefoot import ConvexProgram, Problem, WassersteinBall, RobustPolicy
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.exceptions import MissingExtraError
from surefoot.nominals import Empirical
from surefoot.policies import MLP, Linear

data = synthetic(n=20, s=2, seed=0)
cost, ball = Newsvendor(1.0, 0.2), WassersteinBall(0.1)

def picture():
    from surefoot.diagnostics import plot_price, price_of_robustness
    plot_price(price_of_robustness(RobustPolicy(cost, ball=ball).fit(data.X, data.y), data.X, data.y))

def table():
    from surefoot.io import read_file
    read_file("sales.csv")

for extra, call in {
    "exact": lambda: ConvexProgram().solve(Problem(cost, Linear(), Empirical(data.X, data.y), ball), seed=0),
    "jax": lambda: RobustPolicy(cost, MLP((4,)), ball=ball).fit(data.X, data.y),
    "cli": picture,
    " cli": table,
}.items():
    try:
        call()
    except MissingExtraError as error:
        assert f'pip install "surefoot[{extra.strip()}]"' in str(error), error
    else:
        raise AssertionError(f"nothing was missing for {extra}")
from surefoot.cli.main import main
assert main(["demo"]) == 2
"""


def required(name, seen):
    """Collect a distribution and everything that it needs without extras."""
    try:
        found = distribution(name)
    except PackageNotFoundError:  # of another system or version of Python
        return seen
    if found.metadata["Name"].lower() in seen:
        return seen
    seen[found.metadata["Name"].lower()] = found
    for requirement in found.requires or ():
        if "extra ==" not in requirement:
            required(re.match(r"[\w.-]+", requirement)[0], seen)
    return seen


def core():
    """The distributions of the core's dependencies, from the metadata of the wheel's own project."""
    text = (ROOT / "pyproject.toml").read_text().split("dependencies = [", 1)[1].split("]", 1)[0]
    seen = {}
    for name in re.findall(r'"([\w-]+)>=', text):
        required(name, seen)
    return seen


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT],
        check=True, capture_output=True,
    )  # fmt: skip
    return {path.suffix: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def bare(built, tmp_path_factory):
    """A Python with the wheel and links to the core's dependencies of this environment, nothing else."""
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, symlinks=True, with_pip=False)
    packages = next(home.glob("lib/python*/site-packages"))
    for found in core().values():
        for top in {Path(file).parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(found.locate_file(top))
    zipfile.ZipFile(built[".whl"]).extractall(packages)
    return home / "bin" / "python"


def run(python, code, folder):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [python, "-I", "-W", "error", "-c", code],
        env=environment, cwd=folder, capture_output=True, text=True,
    )  # fmt: skip


def test_the_wheel_holds_the_package_and_no_more(built):
    names = zipfile.ZipFile(built[".whl"]).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"surefoot"}
    assert "surefoot/py.typed" in names
    assert any(name.startswith("surefoot/datasets/data/") for name in names)


def test_the_source_holds_what_is_tested(built):
    with tarfile.open(built[".gz"]) as source:
        tops = {name.split("/")[1] for name in source.getnames() if "/" in name}
    assert {"src", "tests", "docs", "pyproject.toml", "LICENSE", "CITATION.cff"} <= tops


@pytest.mark.nightly
@pytest.mark.skipif(os.name == "nt", reason="links need rights that few have on Windows")
@pytest.mark.parametrize("code", [FIT.format(extras=EXTRAS), MISSING], ids=["fit", "missing"])
def test_the_core_works_without_extras(bare, code, tmp_path):
    done = run(bare, code, tmp_path)
    assert done.returncode == 0, done.stderr
