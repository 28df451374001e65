"""``python -m reproduction streams``: progressive validation of online learning, and its page."""

import argparse
import dataclasses
import datetime
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reproduction.figures import require_matplotlib
from reproduction.runner import clock
from reproduction.stream_figures import stream_figures
from reproduction.stream_methods import StreamMethod
from reproduction.stream_page import write_stream_page
from reproduction.stream_results import merge_table, read_findings, write_settings, write_table
from reproduction.stream_study import (
    LOOKS,
    Plan,
    full_plan,
    quick_plan,
    restaurant_methods,
    run_regret,
    run_restaurant,
    run_streams,
    stream_methods,
)
from reproduction.stream_summary import LABELS, stream_claims
from surefoot.exceptions import InvalidInputError
from surefoot.version import __version__

PARTS = ("regret", "streams", "restaurant")


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add ``streams`` and its options."""
    parser = commands.add_parser(
        "streams",
        help="compare online learning with refitting and others on streams",
        description="Progressive validation on synthetic streams and on the restaurant in date order.",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("stream-results"), metavar="DIR",
        help="tables, figures and settings (default: stream-results)",
    )  # fmt: skip
    parser.add_argument(
        "--quick", action="store_true", help="short streams and few seeds: about a minute"
    )
    parser.add_argument(
        "--only", choices=PARTS, nargs="+", default=PARTS, metavar="PART",
        help="run these parts alone: " + ", ".join(PARTS),
    )  # fmt: skip
    parser.add_argument(
        "--methods", nargs="+", default=[], metavar="NAME",
        help="compare these alone, and keep what is known of others: " + ", ".join(LABELS),
    )  # fmt: skip
    parser.add_argument("--report-only", action="store_true", help="run nothing, write the report anew")
    parser.add_argument(
        "--docs", type=Path, metavar="DIR", help="write streams.md and its figures here"
    )
    parser.set_defaults(run=run_stream_study)


def run_stream_study(options: argparse.Namespace) -> None:
    """Run the parts that were asked for, then write figures and verdicts."""
    require_matplotlib()
    if not options.report_only:
        _prepare(options.out)
        plan = quick_plan() if options.quick else full_plan()
        plan = dataclasses.replace(plan, methods=tuple(options.methods))
        write_settings(options.out, _settings(plan))
        for part in PARTS:
            if part in options.only:
                _PARTS[part](plan, options.out)
        _show("")
    findings = read_findings(options.out)
    figures = stream_figures(findings)
    for figure in figures:
        (options.out / f"{figure.name}.png").write_bytes(figure.png)
    for claim in stream_claims(findings):
        print(f"{claim.verdict:6} {claim.sentence}", *claim.readings, sep="\n       ")
    if options.docs is not None:
        print(f"Page: {write_stream_page(findings, figures, options.docs)}")
    else:
        print(f"Tables and figures: {options.out}")


def _run_regret(plan: Plan, folder: Path) -> None:
    write_table(folder, "regret", run_regret(plan, _reporter()))


def _run_streams(plan: Plan, folder: Path) -> None:
    results, curves = run_streams(plan, _reporter())
    _write(plan, folder, "results", results)
    _write(plan, folder, "curves", curves)


def _run_restaurant(plan: Plan, folder: Path) -> None:
    _write(plan, folder, "restaurant", run_restaurant(plan, _reporter()))


def _write(plan: Plan, folder: Path, name: str, rows: Sequence[Any]) -> None:
    """Write a table; where only some methods were run, the others keep their rows."""
    (merge_table if plan.methods else write_table)(folder, name, rows)


_PARTS: dict[str, Callable[[Plan, Path], None]] = {
    "regret": _run_regret,
    "streams": _run_streams,
    "restaurant": _run_restaurant,
}


def _prepare(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"--out must be a folder, got the file {folder}.")
    if not folder.parent.is_dir():
        raise InvalidInputError(f"--out must lie in an existing folder, got {folder}.")
    folder.mkdir(exist_ok=True)


def _settings(plan: Plan) -> dict[str, Any]:
    methods, restaurant = stream_methods(plan.day), restaurant_methods(plan.first)
    skipped = [f"{name}: {reason}" for name, reason in _unable(methods)]
    for line in skipped:
        print(f"Skipped {line}.")
    return {
        "columns": plan.columns,
        "first": plan.first,
        "looks": LOOKS,
        "skipped": f"Skipped {'; '.join(skipped)}." if skipped else "",
        "methods": {name: method.described() for name, method in methods.items()},
        "restaurant_methods": {name: method.described() for name, method in restaurant.items()},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": ", ".join([f"surefoot {__version__}", *_versions("numpy", "numba", "river")]),
    }


def _unable(methods: dict[str, StreamMethod]) -> list[tuple[str, str]]:
    reasons = ((name, method.why_not()) for name, method in methods.items())
    return [(name, reason) for name, reason in reasons if reason is not None]


def _versions(*packages: str) -> list[str]:
    known = {one.metadata["Name"].lower(): one.version for one in importlib.metadata.distributions()}
    return [f"{name} {known[name]}" for name in packages if name in known]


def _reporter() -> Callable[[str], None]:
    began = time.monotonic()
    return lambda line: _show(f"{clock(time.monotonic() - began)}  {line}")


def _show(line: str) -> None:
    """Rewrite the line of progress; say nothing where no one watches."""
    if sys.stderr.isatty():
        print(f"\r{line:78.78}", end="" if line else "\r", file=sys.stderr, flush=True)
