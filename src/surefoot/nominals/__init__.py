"""Nominals: the distribution at the centre of the ball."""

from surefoot.nominals.base import Nominal
from surefoot.nominals.bootstrap import SmoothedBootstrap
from surefoot.nominals.empirical import Empirical
from surefoot.nominals.gaussian import Gaussian
from surefoot.nominals.mixture import Mixture
from surefoot.nominals.parquet import ParquetRows
from surefoot.nominals.row_batches import RowBatches
from surefoot.nominals.sampler import Joint, Sampler

__all__ = [
    "Empirical",
    "Gaussian",
    "Joint",
    "Mixture",
    "Nominal",
    "ParquetRows",
    "RowBatches",
    "Sampler",
    "SmoothedBootstrap",
]
