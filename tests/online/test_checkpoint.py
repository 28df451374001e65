"""Checkpoints: exact, whole or absent, and never taken for something else."""

import math

import numpy as np
import pytest

from surefoot import RobustNewsvendor, load
from surefoot.exceptions import ModelFileError
from surefoot.online.checkpoint import load_state, save_state

STATE = {
    "theta": np.array([0.1, math.nan, -math.inf, 5e-324]),
    "counts": np.arange(3),
    "mask": np.array([True, False]),
    "names": ["heat", "regen über"],
    "pending": {7: {"x": 0.1 + 0.2}, "7": (1, None)},
    "empty": {},
    "inf": math.inf,
    "nan": math.nan,
    "zero": -0.0,
    "big": 2**70,
    "__array__": "not a mark",
}


def same(a, b):
    assert type(a) is type(b), (a, b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            same(one, other)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()
    else:
        assert repr(a) == repr(b)


def test_what_is_saved_comes_back_to_the_last_bit(tmp_path):
    path = tmp_path / "a.checkpoint"
    save_state(path, STATE, line=3, offset=2**40)
    state, position = load_state(path)
    same(state, STATE)
    assert position == {"line": 3, "offset": 2**40}


def test_numpy_scalars_become_numbers(tmp_path):
    save_state(tmp_path / "a", {"x": np.float64(0.1), "n": np.int64(3), "f": np.bool_(True)})
    same(load_state(tmp_path / "a")[0], {"x": 0.1, "n": 3, "f": True})


def test_the_older_file_stays_until_the_newer_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "a"
    save_state(path, {"n": 1})
    before = path.read_bytes()
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(ModelFileError, match="cannot be written"):
        save_state(path, {"n": 2})
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_every_damaged_byte_is_found(tmp_path):
    path = tmp_path / "a"
    save_state(path, STATE, line=3)
    whole = path.read_bytes()
    for at in range(0, len(whole), 37):
        hurt = bytearray(whole)
        hurt[at] ^= 0x55
        path.write_bytes(bytes(hurt))
        try:
            state, position = load_state(path)
        except ModelFileError:
            continue
        same(state, STATE)  # a byte that says nothing (a date) may change
        assert position == {"line": 3}
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError):
        load_state(path)


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(ModelFileError, match="There is no model file at"):
        load_state(path)
    path.write_text("my thesis")
    with pytest.raises(ModelFileError, match="must be a Surefoot model, got another kind of file"):
        load_state(path)
    rng = np.random.default_rng(0)
    model = RobustNewsvendor(radius=0.1).fit(rng.normal(size=(20, 2)), rng.normal(size=20))
    model.save(path)
    with pytest.raises(
        ModelFileError, match="must be a checkpoint of OnlinePolicy, got a model of RobustNewsvendor"
    ):
        load_state(path)
    save_state(path, {"n": 1})
    with pytest.raises(ModelFileError, match="got 'OnlinePolicy'"):
        load(path)


@pytest.mark.parametrize("value", [{1, 2}, object(), np.array([object()]), b"bytes"])
def test_what_is_no_data_is_not_saved(tmp_path, value):
    with pytest.raises(ModelFileError, match="state.bad must be"):
        save_state(tmp_path / "a", {"bad": value})
    assert not (tmp_path / "a").exists()
