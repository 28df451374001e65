"""What is published says the same thing everywhere, and the workflows can be read."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TEMPLATES = ROOT / ".github" / "ISSUE_TEMPLATE"
FILES = sorted([
    *(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff",
])  # fmt: skip


def read(path):
    return yaml.safe_load(path.read_text())


def workflow(name):
    return read(ROOT / ".github" / "workflows" / f"{name}.yml")


def classified():
    """Python versions that the classifiers name."""
    found = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", c) for c in PROJECT["classifiers"]
    )
    return [match[1] for match in found if match]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_yaml_file_is_a_mapping(path):
    assert isinstance(read(path), dict)


@pytest.mark.parametrize("name", ["lint", "tests", "docs", "release", "benchmarks"])
def test_every_job_has_a_system_and_steps_that_do_something(name):
    jobs = workflow(name)["jobs"]
    assert jobs
    for job in jobs.values():
        assert job["runs-on"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])


def test_workflows_run_what_is_classified_on_three_systems():
    matrix = workflow("tests")["jobs"]["newest"]["strategy"]["matrix"]
    assert matrix["python"] == classified()
    assert len(matrix["system"]) == len({system.split("-")[0] for system in matrix["system"]}) == 3
    assert PROJECT["requires-python"] == f">={classified()[0]}"


def test_oldest_dependencies_run_on_the_oldest_python():
    steps = workflow("tests")["jobs"]["oldest"]["steps"]
    assert [
        step["with"]["python-version"] for step in steps if "python-version" in step.get("with", {})
    ] == [classified()[0]]


def test_the_oldest_dependencies_are_the_lower_bounds():
    bounds = runpy.run_path(str(ROOT / ".github" / "oldest.py"))["lower_bounds"]
    assert bounds({"dependencies": ["numpy>=1.26", "polars[all]>=1.0"]}, []) == [
        "numpy==1.26",
        "polars==1.0",
    ]
    with pytest.raises(SystemExit, match="must read name>=bound, got 'scipy'"):
        bounds({"dependencies": ["scipy"]}, [])
    pinned = bounds(PROJECT, ["exact", "cli"])
    assert len(pinned) > len(PROJECT["dependencies"])


def test_a_release_stores_no_password():
    publish = workflow("release")["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text()


@pytest.mark.parametrize("name", ["lint", "docs"])
def test_workflows_call_targets_that_exist(name):
    makefile = (ROOT / "Makefile").read_text()
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
    for target in re.findall(r"make (\w+)", text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_benchmarks_of_the_week_exist():
    text = (ROOT / ".github" / "workflows" / "benchmarks.yml").read_text()
    parts = re.search(r"for part in ([\w ]+);", text)[1].split()
    assert parts
    for part in parts:
        assert 'if __name__ == "__main__"' in (ROOT / "benchmarks" / f"{part}.py").read_text()


def test_links_of_the_project_have_one_home():
    source = PROJECT["urls"]["Source"]
    assert read(ROOT / "CITATION.cff")["repository-code"] == source
    for page in (ROOT / "SECURITY.md", ROOT / "CODE_OF_CONDUCT.md", TEMPLATES / "config.yml"):
        assert f"{source}/security/advisories/new" in page.read_text()


def test_the_citation_names_the_licence_of_the_package():
    assert read(ROOT / "CITATION.cff")["license"] == PROJECT["license"]
