"""The paper's experiments: data set x method x repetition, resumable, on cores or a cluster."""

from reproduction.cell_run import run_cell
from reproduction.data import DataSet, Sample, SyntheticSet, YazSet
from reproduction.methods import METHODS, Method
from reproduction.result import Result
from reproduction.runner import Outcome, Progress, run_suite
from reproduction.store import ResultStore, ResultStoreError
from reproduction.suite import (
    Cell,
    Suite,
    chosen_methods,
    grid,
    paper_suite,
    quick_suite,
    restaurant,
    variant_suite,
)

__all__ = [
    "METHODS",
    "Cell",
    "DataSet",
    "Method",
    "Outcome",
    "Progress",
    "Result",
    "ResultStore",
    "ResultStoreError",
    "Sample",
    "Suite",
    "SyntheticSet",
    "YazSet",
    "chosen_methods",
    "grid",
    "paper_suite",
    "quick_suite",
    "restaurant",
    "run_cell",
    "run_suite",
    "variant_suite",
]
