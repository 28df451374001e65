"""Entry point of the ``surefoot`` command: runs one command, answers with an exit code."""

import gc
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import FrameType, ModuleType, TracebackType
from typing import Self

from surefoot.exceptions import SurefootError, WritingError

DONE, FAILED, MISTAKE, INTERRUPTED = 0, 1, 2, 130
_TRACEBACK = "SUREFOOT_TRACEBACK"
# A command that is typed makes thousands of objects as it loads, of which none is garbage: looking for
# some after every 700 would take a fourteenth of its time.
COLLECT_AFTER = 100_000
# Imported by scikit-learn and SciPy for functions that no command calls (the first loads a fifth of all
# modules), or by us for those that few do.
LOADED_WHEN_USED = ("scipy.stats", "scipy.optimize", "numpy.f2py", "numpy.testing")
# scikit-learn looks for it to know its frames, of which a command has none: its tables are those of
# polars. It would take a fifth of the time of ``decide``.
NOT_FOR_SCIKIT_LEARN = "pandas"


class LazyFinder:
    """Finds modules that are loaded when something of theirs is first used, not when imported."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is, with Python's own loader for modules that may never be used."""
        if name == NOT_FOR_SCIKIT_LEARN and _is_loading("sklearn"):
            raise ModuleNotFoundError(f"No module named {name!r} for scikit-learn", name=name)
        spec = PathFinder.find_spec(name, path, target) if name in LOADED_WHEN_USED else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def _is_loading(package: str) -> bool:
    """Whether a package has begun to load, and has not come to the names that it offers."""
    return package in sys.modules and "__all__" not in vars(sys.modules[package])


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, by a name of its own.

    Where ``eval`` met a plain KeyboardInterrupt, Python ends the process by a signal and not our code.
    """


class CtrlC:
    """Makes an interruption of whatever ends a typed command after Ctrl-C.

    Packages that are being loaded turn the interruption into errors of their own.
    """

    def __init__(self) -> None:
        self._pressed = False

    def listen(self) -> None:
        """Take Ctrl-C over from Python; a command that runs behind others may be deaf to it."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._pressed = True
        raise Interrupted

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pressed and error is not None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is tidied up: once more ends it at once
            raise Interrupted from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; whatever goes wrong is one line on standard error.

    0: done. 1: something failed that is not the user's doing. 2: a mistake in the command or in the
    data; nothing was written. 130: interrupted.
    """
    ctrl_c = CtrlC()
    if arguments is None:
        ctrl_c.listen()
        gc.set_threshold(COLLECT_AFTER)
        sys.meta_path.insert(0, LazyFinder)
    args = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with ctrl_c:
            typer = importlib.import_module("typer")
            command = typer.main.get_command(importlib.import_module("surefoot.cli.commands").app)
    except ImportError as error:
        _complain(f'The command line needs {error.name}: run pip install "surefoot[cli]".')
        return MISTAKE
    except KeyboardInterrupt:
        return _interrupted()
    if "_SUREFOOT_COMPLETE" in os.environ:  # the shell asks for words, not for work
        command.main(args, prog_name="surefoot")
    try:
        # What was typed goes along: a report says how to repeat it.
        with ctrl_c, command.make_context("surefoot", args, obj=("surefoot", *args)) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return int(ended.exit_code)
    except typer.TyperException as error:  # raised by the parser of options
        where = getattr(getattr(error, "ctx", None), "command_path", "surefoot")
        message = error.format_message()
        _complain(f"{message}{'' if message[-1:] in '.?' else '.'} See {where} --help.")
        return MISTAKE
    except SurefootError as error:
        _complain(str(error))
        return FAILED if isinstance(error, WritingError) or _no_room(error) else MISTAKE
    except ModuleNotFoundError as error:
        _complain(f'This needs {error.name}: run pip install "surefoot[cli]".')
        return MISTAKE
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        forget_output()
        return FAILED
    except OSError as error:
        if os.environ.get(_TRACEBACK):
            traceback.print_exc()
        forget_output()
        _complain(f"{error.filename or 'The output'} cannot be written: {error.strerror or error}.")
        return FAILED
    # Not narrower: whatever is left is a defect of ours, and a planner should not meet a traceback.
    except Exception as error:
        return _failed(error)
    return DONE


def _failed(error: Exception) -> int:
    if os.environ.get(_TRACEBACK):
        traceback.print_exc()
    kind, message = type(error).__name__, " ".join(str(error).split())
    _complain(f"Something failed that should not: {kind}: {message} (set {_TRACEBACK}=1 for more).")
    return FAILED


def _interrupted() -> int:
    _complain("interrupted.")
    return INTERRUPTED


def _no_room(error: SurefootError) -> bool:
    # Not at the top: it loads NumPy, and help needs none.
    return bool(importlib.import_module("surefoot.io.writing").is_no_room(error.__cause__))


def forget_output() -> None:
    """Drop what standard output could not take: Python flushes it at exit, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    print(f"surefoot: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
