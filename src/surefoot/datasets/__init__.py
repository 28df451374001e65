"""Data to learn on: a restaurant's daily demand, and the paper's linear demand model."""

from surefoot.datasets.synthetic import SyntheticData, synthetic
from surefoot.datasets.yaz import YazData, load_yaz

__all__ = ["SyntheticData", "YazData", "load_yaz", "synthetic"]
