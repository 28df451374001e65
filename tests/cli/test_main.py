"""The command: exit codes and one-line messages."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.cli import demo
from surefoot.cli.main import main
from surefoot.version import __version__


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"surefoot {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["fit", "--help"], ["compare", "-h"], ["learn", "-h"]]
)
def test_help_is_there_and_fits_a_narrow_screen(arguments, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "Usage: surefoot" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing command. See surefoot --help."),
        (["dmeo"], "No such command 'dmeo'. Did you mean 'demo'? See surefoot --help."),
        (
            ["demo", "--dyas", "3"],
            "No such option: --dyas (Possible options: --days). See surefoot demo",
        ),
        (["compare", "--quik"], "No such option: --quik"),
        (["fit", "a.csv"], "Missing option '--outcome'"),
        (["decide", "m.surefoot"], "Missing argument 'DATA'"),
        (["demo", "--days", "many"], "Invalid value for '--days'"),
        (["demo", "more"], "Got unexpected extra argument"),
    ],
)
def test_unknown_words_are_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("surefoot: ")
    assert message in error
    assert error.count("\n") == 1


def test_a_typed_command_loads_parts_for_fortran_and_tests_when_something_uses_them(tmp_path):
    code = (
        "import sys; from surefoot.cli.main import main\n"
        "sys.argv = ['surefoot', 'explain', 'none.surefoot']\n"
        "main()\n"
        "import sklearn.base, numpy\n"
        "absent = {'numpy.f2py.f2py2e', 'numpy.testing._private'}\n"
        "print(sorted(absent & set(sys.modules)), numpy.testing.assert_equal(1, 1))"
    )
    assert last_line(code, tmp_path) == "[] None"


def test_help_loads_nothing_slow():
    code = (
        "import sys; from surefoot.cli.main import main; main(['--help']); "
        "print(sorted({'numpy', 'polars', 'sklearn', 'scipy', 'numba'} & set(sys.modules)))"
    )
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": source}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"


def test_without_typer_the_message_names_the_install_command(monkeypatch, capsys):
    def missing(name):
        raise ModuleNotFoundError(name="typer")

    monkeypatch.setattr(importlib, "import_module", missing)
    assert main(["demo"]) == 2
    assert 'needs typer: run pip install "surefoot[cli]"' in capsys.readouterr().err


def test_without_polars_the_message_names_the_install_command():
    code = (
        "import sys; sys.modules['polars'] = None; from surefoot.cli.main import main; "
        "sys.exit(main(['datasets']) + main(['decide', 'm.surefoot', 'a.csv']))"
    )
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": source}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    assert done.stderr.count('polars: run pip install "surefoot[cli]".') == 2
    assert done.stderr.count("\n") == 2


def test_what_should_not_fail_is_one_line_and_code_1(monkeypatch, capsys):
    def fail(*args, **kwargs):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(demo, "run_demo", fail)
    assert main(["demo"]) == 1
    error = capsys.readouterr().err
    assert "RuntimeError: two lines (set SUREFOOT_TRACEBACK=1 for more)" in error
    assert error.count("\n") == 1
    monkeypatch.setenv("SUREFOOT_TRACEBACK", "1")
    assert main(["demo"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_shell_is_told_the_commands():
    environment = {
        **os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
        "_SUREFOOT_COMPLETE": "complete_bash", "COMP_WORDS": "surefoot de", "COMP_CWORD": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "surefoot.cli.main"], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["decide", "demo"]


def test_a_users_mistake_is_one_line(tmp_path, capsys):
    assert main(["demo", "--days", "3", "--out", str(tmp_path / "demo.png")]) == 2
    captured = capsys.readouterr()
    assert captured.err == "surefoot: days must be between 10 and 595, got 3.\n"
    assert "Traceback" not in captured.out


def test_a_missing_folder_is_found_before_the_work(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "nowhere" / "demo.png")]) == 2
    assert "must lie in an existing folder" in capsys.readouterr().err


def test_ctrl_c_is_one_line(monkeypatch, tmp_path, capsys):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("surefoot.cli.demo.run_demo", interrupt)
    assert main(["demo", "--out", str(tmp_path / "demo.png")]) == 130
    assert capsys.readouterr().err == "surefoot: interrupted.\n"


def test_only_a_command_that_is_typed_looks_for_garbage_less_often(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr("gc.set_threshold", asked.append)
    assert main(["--version"]) == 0
    assert not asked
    monkeypatch.setattr("sys.argv", ["surefoot", "--version"])
    assert main() == 0
    assert asked == [100_000]


def last_line(code, folder):
    """Run code in a process of its own, in a folder; return the last line that it prints."""
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": source}, capture_output=True,
        text=True, check=True, cwd=folder,
    )  # fmt: skip
    return done.stdout.splitlines()[-1]


# Whoever runs the tests in the background has told them to ignore Ctrl-C; a person's shell has not.
PRESSED = """
import os, signal, sys
from surefoot.cli.main import main

signal.signal(signal.SIGINT, signal.default_int_handler)

class Panic(BaseException):
    pass

class PressCtrlC:
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            try:
                {press}
            except KeyboardInterrupt as error:
                raise {raised}

sys.meta_path.insert(0, PressCtrlC)
sys.argv = ["surefoot", "datasets"]
sys.exit(main())
"""


@pytest.mark.parametrize("module", ["typer", "surefoot.cli.bundled"])
@pytest.mark.parametrize(
    ("press", "raised"),
    [
        ("eval('signal.raise_signal(signal.SIGINT)')", "error"),
        ("signal.raise_signal(signal.SIGINT)", "ImportError('cannot load') from error"),
        ("signal.raise_signal(signal.SIGINT)", "Panic from error"),
    ],
)
def test_ctrl_c_while_packages_load_is_an_interruption_whatever_they_make_of_it(module, raised, press):
    code = PRESSED.format(module=module, raised=raised, press=press)
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": source}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "surefoot: interrupted.\n")


def test_a_command_that_was_told_to_ignore_ctrl_c_goes_on_ignoring_it():
    code = (
        "import signal, sys; from surefoot.cli.main import main\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "sys.argv = ['surefoot', '--version']\n"
        "main(); print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    )
    assert last_line(code, None) == "True"


def test_ordinary_orders_load_no_part_of_scikit_learn_that_they_do_not_use(tmp_path):
    start = "import sys; from surefoot.cli.main import main\n"
    loaded = "print(sorted({'sklearn.tree', 'sklearn.compose', 'sklearn.metrics'} & set(sys.modules)))"
    fit = (
        "main(['datasets', 'restaurant', '-o', 'past.csv', '--later', 'new.csv'])\n"
        "main(['fit', 'past.csv', '--outcome', 'steak', '--backorder', '15', '--holding', '10', "
        "'-o', 'm.surefoot'])\n"
    )
    # Whether contexts explain far outcomes is asked of a tree, which loads metrics.
    assert last_line(start + fit + loaded, tmp_path) == "['sklearn.metrics', 'sklearn.tree']"
    decide = "main(['decide', 'm.surefoot', 'new.csv', '-o', 'orders.csv'])\n"
    assert last_line(start + decide + loaded, tmp_path) == "[]"
    assert (tmp_path / "orders.csv").is_file()


def test_typed_orders_load_neither_pandas_nor_for_decisions_a_compiler(tmp_path):
    typed = (
        "import sys; from surefoot.cli.main import main\n"
        "sys.argv = 'surefoot {}'.split()\n"
        "assert main() == 0\n"
        "found = sorted({{'pandas', 'numba'}} & set(sys.modules))\n"
        "import sklearn, pandas\n"  # who asks later finds it
        "print(found, len(pandas.DataFrame([1])))"
    )
    last_line(typed.format("datasets restaurant -o past.csv --later new.csv"), tmp_path)
    fit = "fit past.csv --outcome steak --backorder 15 --holding 10 -o m.surefoot"
    assert last_line(typed.format(fit), tmp_path) == "['numba'] 1"
    assert last_line(typed.format("decide m.surefoot new.csv"), tmp_path) == "[] 1"


def test_a_typed_command_loads_statistics_when_something_uses_them(tmp_path):
    code = (
        "import sys; from surefoot.cli.main import main\n"
        "sys.argv = ['surefoot', 'explain', 'none.surefoot']\n"
        "main()\n"
        "import sklearn.base, scipy\n"
        "print('scipy.stats._stats_py' in sys.modules, scipy.stats.norm.ppf(0.5))"
    )
    assert last_line(code, tmp_path) == "False 0.0"
