"""The reference has a page for every public name, and each name on it exists."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import surefoot
from surefoot import checks, exceptions
from surefoot.baselines import SAA

ROOT = Path(__file__).parent.parent
PAGES = re.findall(r"^   (surefoot\.[\w.]+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
PACKAGES = [
    "surefoot", "surefoot.estimators", "surefoot.estimators.preparation", "surefoot.forecasts",
    "surefoot.panels", "surefoot.comparison", "surefoot.online", "surefoot.diagnostics",
    "surefoot.baselines", "surefoot.problem", "surefoot.ambiguity", "surefoot.costs",
    "surefoot.policies", "surefoot.sets", "surefoot.nominals", "surefoot.solvers",
    "surefoot.certificates", "surefoot.io", "surefoot.datasets", "surefoot.checks", "surefoot.report",
]  # fmt: skip


def resolve(page):
    module, _, name = page.rpartition(".")
    return getattr(importlib.import_module(module), name)


DOCUMENTED = [resolve(page) for page in PAGES]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_a_page(package):
    module = importlib.import_module(package)
    values = {name: getattr(module, name) for name in module.__all__}
    missing = [
        name
        for name, value in values.items()
        if (inspect.isclass(value) or inspect.isfunction(value))
        and not any(value is page for page in DOCUMENTED)
    ]
    assert missing == []


@pytest.mark.parametrize("module", [checks, exceptions], ids=lambda module: module.__name__)
def test_modules_without_a_list_of_names_are_whole(module):
    own = [
        value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    assert [value for value in own if not any(value is page for page in DOCUMENTED)] == []


def test_no_name_has_two_pages():
    assert len(PAGES) == len(set(PAGES))
    assert len({id(value) for value in DOCUMENTED}) == len(DOCUMENTED)


def test_every_package_with_public_names_is_looked_at():
    folder = Path(surefoot.__file__).parent
    found = {
        ".".join(("surefoot", *path.parent.relative_to(folder).parts))
        for path in folder.rglob("__init__.py")
        if "__all__" in path.read_text()
    }
    assert found == set(PACKAGES)


@pytest.mark.parametrize(
    "model",
    [surefoot.RobustNewsvendor(), surefoot.PreparedPolicy(), SAA()],
    ids=lambda m: type(m).__name__,
)
def test_the_link_of_a_model_leads_to_its_page(model):
    assert Path(model._get_doc_link()).stem in PAGES
