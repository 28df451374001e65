"""The paper's experiments: data set x method x repetition, resumable, on cores or a cluster."""

from surefoot.experiments.data import DataSet, Sample, SyntheticSet, YazSet
from surefoot.experiments.methods import METHODS, Method
from surefoot.experiments.result import Result
from surefoot.experiments.runner import Outcome, Progress, run_suite
from surefoot.experiments.store import ResultStore, ResultStoreError
from surefoot.experiments.suite import (
    Cell,
    Suite,
    chosen_methods,
    grid,
    paper_suite,
    quick_suite,
    restaurant,
    variant_suite,
)
from surefoot.experiments.work import run_cell

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
