"""Kernels are cached under a name that changes with any line of any kernel."""

from pathlib import Path

import numpy as np
import pytest
from numba import config

from surefoot.engines import compiling


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text("WIDTH = 1\n")
    (tmp_path / "two.py").write_text("from one import WIDTH\n")
    monkeypatch.setattr(compiling, "_FOLDER", tmp_path)
    return tmp_path


def test_the_name_changes_with_any_file(folder):
    before = compiling._digest()
    assert compiling._digest() == before
    (folder / "one.py").write_text("WIDTH = 2\n")  # the same size: Numba's own cache would not notice
    assert compiling._digest() != before


def test_the_name_changes_with_the_version(folder, monkeypatch):
    before = compiling._digest()
    monkeypatch.setattr(compiling, "__version__", "99.0")
    assert compiling._digest() != before


def test_kernels_live_where_numba_was_told_else_beside_the_source_else_with_the_user(
    folder, monkeypatch
):
    monkeypatch.setattr(config, "CACHE_DIR", "/some/where")
    assert compiling._home() == Path("/some/where")
    monkeypatch.setattr(config, "CACHE_DIR", "")
    assert compiling._home() == folder / "__pycache__"
    monkeypatch.setattr(compiling.os, "access", lambda path, mode: False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/a/cache")
    assert compiling._home() == Path("/a/cache/surefoot")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert compiling._home() == Path.home() / ".cache" / "surefoot"


def test_numbas_own_setting_is_left_as_it_was(monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", "/some/where")

    @compiling.kernel()
    def double(x):
        return 2 * x

    cache = double.compiled._cache.cache_path
    assert config.CACHE_DIR == "/some/where"
    assert str(compiling.kernel_folder()) in cache


@compiling.kernel()
def two():
    return 2.0


@compiling.kernel()
def doubled(values):
    return sum([two() * value for value in values])


def test_a_kernel_and_those_that_it_calls_are_compiled_when_it_is_first_called():
    assert not doubled.loaded
    assert doubled(np.arange(3.0)) == 6.0
    assert doubled.loaded
    assert doubled.compiled.overloads
    assert doubled.__name__ == "doubled"


def test_where_numba_is_switched_off_kernels_are_plain_functions(monkeypatch):
    monkeypatch.setattr(config, "DISABLE_JIT", True)
    plain = compiling.Kernel(doubled._function)
    assert not plain.loaded
    assert plain([1.0, 2.0]) == 6.0
    assert plain.loaded


def test_kernels_meet_arrays_of_one_kind():
    plain = np.arange(12.0).reshape(3, 4)
    assert compiling.as_compiled(plain) is plain
    held = plain.copy()
    held.flags.writeable = False
    for other in (held, plain[:, 1:3], plain[::2], plain.T):
        found = compiling.as_compiled(other)
        np.testing.assert_array_equal(found, other)
        assert found.flags.c_contiguous
        assert found.flags.writeable
