"""Everything a run leaves behind: tables as CSV and JSON, figures, and one page."""

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from reproduction.claims import Claim
from reproduction.figures import Figure, cost_figure, restaurant_figure, variance_figure
from reproduction.result import COLUMNS, Result, read_result
from reproduction.sentences import all_claims
from reproduction.store import ResultStore
from reproduction.summary import Summary, TimeRow, summarise, table1
from reproduction.timing import PassTimes, pass_times, row_times
from surefoot.exceptions import InvalidInputError

Variant = tuple[str, str]  # contexts, coefficients
PAPER: Variant = ("uniform", "positive")


@dataclass(frozen=True)
class Findings:
    """All that the results say.

    Attributes
    ----------
    results, settings, timings
        As they were stored.
    summaries, times, passes
        Over repetitions; Table 1; passes over the whole grid.
    claims
        By context law and kind of coefficients; those of the paper first.
    """

    results: tuple[Result, ...]
    settings: dict[str, dict[str, Any]]
    timings: dict[str, dict[str, Any]]
    summaries: tuple[Summary, ...]
    times: tuple[TimeRow, ...]
    passes: tuple[PassTimes, ...]
    claims: dict[Variant, list[Claim]]

    def variants(self) -> list[Variant]:
        """Return the context laws and kinds of coefficients that were run."""
        return list(self.claims)

    def synthetic(self, variant: Variant) -> list[Summary]:
        """Return the summaries of one variant."""
        return [one for one in self.summaries if (one.contexts, one.coefficients) == variant]

    def figures(self) -> list[Figure]:
        """Draw everything there is to draw."""
        drawn: list[Figure | None] = []
        for variant in self.variants():
            plain = variant == PAPER
            suffix = "" if plain else "-" + "-".join(variant)
            what = "" if plain else f", {variant[0]} contexts, {variant[1]} coefficients"
            part = self.synthetic(variant)
            drawn += [cost_figure(part, f"figure1{suffix}", what)]
            drawn += [variance_figure(part, f"figure2{suffix}", what)]
        drawn.append(restaurant_figure(self.summaries))
        return [figure for figure in drawn if figure is not None]


def find(
    results: Sequence[Result], settings: dict[str, dict[str, Any]], timings: dict[str, dict[str, Any]]
) -> Findings:
    """Work out everything from results, settings and measurements."""
    if not results:
        raise InvalidInputError("results must be at least one cell, got none: run it first.")
    summaries = summarise(results)
    times = table1(row_times(timings))
    run = {(str(one.contexts), str(one.coefficients)) for one in results if one.kind == "synthetic"}
    variants = sorted(run, key=lambda variant: (variant != PAPER, variant))
    claims = {
        variant: all_claims(
            summaries, times if variant == PAPER else (), contexts=variant[0], coefficients=variant[1]
        )
        for variant in variants
    }
    passes = tuple(pass_times(timings))
    return Findings(tuple(results), settings, timings, tuple(summaries), tuple(times), passes, claims)


def read_folder(folder: Path) -> Findings:
    """Read a folder: its store if there is one, else the CSV and JSON files written from one."""
    database, table = folder / "results.sqlite", folder / "results.csv"
    if database.exists():
        with ResultStore(database) as store:
            return find(store.results(), store.settings(), store.timings())
    if not table.exists():
        raise InvalidInputError(
            f"--out must be a folder with results.sqlite or results.csv, got {folder}."
        )
    with table.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InvalidInputError(
                f"{table} must have the columns {', '.join(COLUMNS)}, got {reader.fieldnames}."
            )
        results = [read_result(row) for row in reader]
    parts = [folder / "settings.json", folder / "timings.json"]
    settings, timings = (json.loads(p.read_text()) if p.exists() else {} for p in parts)
    return find(results, settings, timings)


def write_tables(findings: Findings, folder: Path) -> list[Path]:
    """Write every table; return the files."""
    claims = [row for variant in findings.variants() for row in _claim_rows(findings, variant)]
    written = [
        _write_csv(folder / "results.csv", Result, findings.results),
        _write_csv(folder / "summary.csv", Summary, findings.summaries),
        _write_csv(folder / "table1.csv", TimeRow, findings.times),
        folder / "claims.csv",
        _write_json(folder / "claims.json", _claims_json(findings)),
        _write_json(folder / "settings.json", findings.settings),
        _write_json(folder / "timings.json", findings.timings),
    ]
    with (folder / "claims.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(_CLAIM_COLUMNS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(claims)
    return written


_CLAIM_COLUMNS = (
    "contexts", "coefficients", "claim", "sentence", "measure", "verdict", "depends_on",
    "reading", "value", "reading_verdict", "detail",
)  # fmt: skip


def _claim_rows(findings: Findings, variant: Variant) -> list[dict[str, Any]]:
    return [
        {
            "contexts": variant[0], "coefficients": variant[1], "claim": one.name,
            "sentence": one.sentence, "measure": one.measure, "verdict": one.verdict,
            "depends_on": one.depends_on, "reading": reading.label,
            "value": f"{reading.value:.4g}", "reading_verdict": reading.verdict,
            "detail": reading.detail,
        }
        for one in findings.claims[variant]
        for reading in one.readings
    ]  # fmt: skip


def _claims_json(findings: Findings) -> list[dict[str, Any]]:
    return [
        {
            "contexts": variant[0], "coefficients": variant[1], **asdict(one),
            "verdict": one.verdict, "depends_on": one.depends_on,
        }
        for variant in findings.variants()
        for one in findings.claims[variant]
    ]  # fmt: skip


def _write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def _write_csv(path: Path, kind: Any, rows: Sequence[Any]) -> Path:
    names = [field.name for field in fields(kind)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        # Floats are written so that they read back as they were, and None as nothing.
        writer.writerows([getattr(row, name) for name in names] for row in rows)
    return path
