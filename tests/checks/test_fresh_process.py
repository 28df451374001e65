"""A right part is right in a process of its own, too, where nothing has been loaded before it."""

import subprocess
import sys

import pytest

RIGHT = """
import numpy as np
from dataclasses import dataclass
from surefoot.checks import check
from surefoot.costs import Cost

@dataclass(frozen=True)
class Right(Cost):
    def evaluate(self, z, y, xp=np):
        return xp.maximum(3 * (y - z), z - y).sum(-1)

check(Right())
"""


def test_jax_that_moves_global_generators_when_it_is_loaded_is_no_fault_of_a_part():
    pytest.importorskip("jax")
    done = subprocess.run([sys.executable, "-c", RIGHT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
