import importlib
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import surefoot

HEAVY = ("cvxpy", "jax", "numba", "pandas", "scipy", "sklearn")

# Remembers what was asked for, so that a package that is not installed here is seen too.
WATCH = """
import sys
class Watch:
    asked = set()
    def find_spec(self, name, path=None, target=None):
        self.asked.add(name.partition(".")[0])
sys.meta_path.insert(0, Watch())
{code}
print(*sorted(Watch.asked | {{name.partition(".")[0] for name in sys.modules}}))
"""


def modules_after(code):
    """Top-level modules that a fresh interpreter asked for or holds after ``code``."""
    env = {**os.environ, "PYTHONPATH": str(Path(surefoot.__file__).parents[1])}
    run = subprocess.run(
        [sys.executable, "-c", WATCH.format(code=code)],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(run.stdout.split())


def test_import_is_light():
    modules = modules_after("import surefoot")
    assert "surefoot" in modules
    assert not modules.intersection(HEAVY)
    assert "numpy" not in modules


def test_describing_a_problem_needs_no_compiler_and_no_scikit_learn():
    modules = modules_after(
        "from surefoot import Box, Problem, WassersteinBall\n"
        "from surefoot.costs import Newsvendor\n"
        "from surefoot.nominals import Empirical\n"
        "from surefoot.policies import Linear\n"
        "Problem(Newsvendor(1.0, 0.2), Linear(), Empirical([[1.0]], [2.0]), WassersteinBall(0.3))"
    )
    assert "numpy" in modules
    assert not modules.intersection(HEAVY)


def test_the_watch_sees_what_it_should():
    assert {"colorsys", "missing_package"} <= modules_after(
        "import colorsys\ntry:\n    import missing_package.part\nexcept ImportError:\n    pass"
    )


@pytest.mark.parametrize("name", surefoot.__all__)
def test_every_public_name_resolves(name):
    value = getattr(surefoot, name)
    assert value is getattr(surefoot, name)
    assert name in dir(surefoot)
    if name != "__version__":
        home = importlib.import_module(surefoot._HOMES[name])
        assert value is getattr(home, name)
        assert name in home.__all__


def test_public_names_and_their_homes_are_one_list():
    assert len(set(surefoot.__all__)) == len(surefoot.__all__)
    assert set(surefoot.__all__) == {*surefoot._HOMES, "__version__"}


def test_names_can_be_imported_at_once():
    namespace = {}
    exec("from surefoot import *", namespace)
    assert namespace.keys() >= set(surefoot.__all__)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match=r"^module 'surefoot' has no attribute 'Wasserstein'$"):
        surefoot.Wasserstein  # noqa: B018
    assert not hasattr(surefoot, "DaSgd")
    with pytest.raises(ImportError, match="cannot import name 'Wasserstein'"):
        exec("from surefoot import Wasserstein")


def test_listing_loads_nothing():
    modules = modules_after("import surefoot\nassert 'RobustPolicy' in dir(surefoot)")
    assert not modules.intersection(HEAVY)


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z0-9.]+)?", surefoot.__version__)
    try:
        installed = version("surefoot")
    except PackageNotFoundError:
        pytest.skip("surefoot is not installed here")
    assert surefoot.__version__ == installed
