"""``python -m reproduction paper``: the experiments, resumed where a run stopped, and their report."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from reproduction import (
    METHODS,
    Outcome,
    Progress,
    ResultStore,
    Suite,
    chosen_methods,
    paper_suite,
    quick_suite,
    run_suite,
)
from reproduction.claims import DEPENDS, FAILS, HOLDS, UNTESTED
from reproduction.figures import require_matplotlib
from reproduction.outputs import Findings, read_folder, write_tables
from reproduction.page import write_page
from reproduction.report import render
from reproduction.runner import BACKENDS, clock, run_one_line
from reproduction.suite import COLUMNS, REPETITIONS, SIZES
from reproduction.timing import measure
from surefoot.exceptions import InvalidInputError

# Repetitions of each size of run; --repetitions overrides them.
_REPETITIONS = {"quick": 2, "default": 5, "full": REPETITIONS}
_QUICK_SIZES = (10, 100)


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``reproduce`` and its options."""
    parser = commands.add_parser(
        "paper",
        help="run the paper's experiments and report, claim by claim, what holds",
        description="Run the paper's experiments. An interrupted run goes on where it stopped when the "
        "same command is given again.",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="a small grid, 2 repetitions: about a minute on 2 cores"
    )
    size.add_argument(
        "--full", action="store_true", help="the paper's grid, 20 repetitions: hours (default: 5)"
    )
    parser.add_argument("--repetitions", type=int, metavar="N", help="draw every data set N times")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cells at a time (default: 1)")
    parser.add_argument(
        "--backend", choices=BACKENDS, default="loky", help="where cells run (default: loky, processes)"
    )
    parser.add_argument("--contexts", choices=("uniform", "gaussian"), default="uniform")
    parser.add_argument("--coefficients", choices=("positive", "mixed"), default="positive")
    parser.add_argument(
        "--methods", nargs="+", metavar="NAME",
        help="only these: " + ", ".join(method.name for method in METHODS),
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, default=Path("paper-results"), metavar="DIR",
        help="results, figures and report.html (default: paper-results)",
    )  # fmt: skip
    parser.add_argument("--retry-failed", action="store_true", help="run cells that failed once more")
    parser.add_argument("--report-only", action="store_true", help="run nothing, write the report anew")
    parser.add_argument("--docs", type=Path, metavar="DIR", help=argparse.SUPPRESS)
    parser.set_defaults(run=run_reproduce)


def run_reproduce(options: argparse.Namespace) -> None:
    """Run what is missing, then write everything."""
    require_matplotlib()
    if not options.report_only:
        _prepare(options.out)
        suite = _suite(options)
        with ResultStore(options.out / "results.sqlite") as store:
            outcome = _run(suite, store, options)
            if options.methods is None:
                _measure(store, quick=options.quick)
        _show("")
        print(_ran(outcome))
    findings = read_folder(options.out)
    _write(findings, options)


def _prepare(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"--out must be a folder, got the file {folder}.")
    if not folder.parent.is_dir():
        raise InvalidInputError(f"--out must lie in an existing folder, got {folder}.")
    folder.mkdir(exist_ok=True)


def _suite(options: argparse.Namespace) -> Suite:
    kind = "quick" if options.quick else "full" if options.full else "default"
    repetitions = _REPETITIONS[kind] if options.repetitions is None else options.repetitions
    make = quick_suite if options.quick else paper_suite
    return make(
        chosen_methods(options.methods), repetitions,
        coefficients=options.coefficients, contexts=options.contexts,
    )  # fmt: skip


def _run(suite: Suite, store: ResultStore, options: argparse.Namespace) -> Outcome:
    return run_suite(
        suite, store, jobs=options.jobs, backend=options.backend,
        retry_failed=options.retry_failed, on_progress=_reporter(),
    )  # fmt: skip


def _measure(store: ResultStore, *, quick: bool) -> None:
    """Take the times of Table 1, one after another."""
    sizes, repetitions = (_QUICK_SIZES, 1) if quick else (SIZES, REPETITIONS)
    for name in measure(store, sizes=sizes, columns=COLUMNS, repetitions=repetitions):
        _show(f"timing: {name}")


def _reporter() -> Callable[[Progress], None]:
    began = time.monotonic()
    return lambda progress: _show(run_one_line(progress, began))


def _show(line: str) -> None:
    """Rewrite the line of progress; say nothing where no one watches."""
    if sys.stderr.isatty():
        print(f"\r{line:78.78}", end="" if line else "\r", file=sys.stderr, flush=True)


def _ran(outcome: Outcome) -> str:
    refused = f", {outcome.refused} refused with a reason" if outcome.refused else ""
    failed = f", {outcome.failed} FAILED (see report.html)" if outcome.failed else ""
    return f"{outcome.ran:,} cells run now{refused}{failed}."


def _write(findings: Findings, options: argparse.Namespace) -> None:
    began = time.monotonic()
    figures = findings.figures()
    write_tables(findings, options.out)
    if options.docs is not None:
        write_page(findings, figures, options.docs)
        print(f"Page: {options.docs / 'reproduction.md'}")
        return
    for figure in figures:
        figure.write(options.out)
    page = options.out / "report.html"
    page.write_text(render(findings, figures), encoding="utf-8")
    for variant in findings.variants()[:1]:
        print(_verdicts(findings, variant))
    print(f"Report: {page} ({clock(time.monotonic() - began)})")


def _verdicts(findings: Findings, variant: tuple[str, str]) -> str:
    tested = [one for one in findings.claims[variant] if one.verdict != UNTESTED]
    width = max(len(verdict) for verdict in (HOLDS, FAILS, DEPENDS)) + 2
    lines = [f"{one.verdict:{width}}{one.sentence}" for one in tested]
    return "\n".join(lines) or "No sentence of the paper can be tested on these cells alone."
