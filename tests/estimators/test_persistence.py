import hashlib
import io
import json
import math
import os
import re
import zipfile

import numpy as np
import pytest

from surefoot import DASGD, Box, ConvexProgram, Exact, WassersteinBall
from surefoot.ambiguity import ball
from surefoot.costs import Newsvendor
from surefoot.estimators import persistence
from surefoot.estimators.persistence import decode, encode, read_file, write_file
from surefoot.exceptions import ModelFileError
from surefoot.policies import Linear
from surefoot.version import __version__

ARRAYS = {
    "numbers": np.array([[0.1, -np.inf], [np.nan, 1e-310]]),
    "flags": np.array([True, False]),
    "single": np.array(3.5),
}
HEADER = {"estimator": "Nothing", "list": [1, 2.5, None, True, "ü"]}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "m.surefoot"
    write_file(path, HEADER, ARRAYS)
    return path


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, parts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def forge(path, parts, **changes):
    """Write parts with a header changed and every checksum made to match."""
    header = json.loads(parts["model.json"])
    header.update(changes)
    header["arrays"] = {
        name: hashlib.sha256(data).hexdigest() for name, data in parts.items() if name.endswith(".npy")
    }
    text = json.dumps(header).encode()
    digest = hashlib.sha256(text).hexdigest().encode()
    rewrite(path, {**parts, "model.json": text, "sha256": digest})


def refused(path, message):
    with pytest.raises(ModelFileError, match=message) as caught:
        read_file(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 0.1, -1e-310, "text", math.inf, -math.inf, (), (1, 2.5, "a"), ((1,), (2,)),
        Box(-1, (1.0, math.inf), outcome=(0, 5)),
        WassersteinBall("auto", order=1, outcome_cost=2.0, frozen=("a", 3), scale=False),
        WassersteinBall(0.1, support=Box(0, 1)),
        Newsvendor((1.0, 2.0), 0.2, smoothing=0.1),
        Linear(intercept=False),
        DASGD(gap_tol=0.1, memory=False, minibatch=4),
        DASGD.literal(alpha=0.1, beta=0.1, eta=0.1, K=3, epsilon=0.0, steps=5),
        Exact(max_steps=7),
        ConvexProgram(),
    ],
    ids=str,
)  # fmt: skip
def test_values_come_back_equal_through_json(value):
    text = json.dumps(encode("it", value), allow_nan=False)
    again = decode(json.loads(text))
    assert again == value
    assert type(again) is type(value)


def test_numpy_and_lists_come_back_as_plain_numbers_and_tuples():
    for value, expected in (
        (np.float64(0.1), 0.1),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array([1.0, 2.0]), (1.0, 2.0)),
        (np.array(["a", "b"]), ("a", "b")),
        ([1, [2]], (1, (2,))),
    ):
        again = decode(json.loads(json.dumps(encode("it", value))))
        assert again == expected
        assert type(again) is type(expected)
    assert math.isnan(decode(json.loads(json.dumps(encode("it", np.nan)))))


@pytest.mark.parametrize(
    "value",
    [print, lambda x: x, object(), {"a": 1}, 1j, b"x", {1}, Linear],
    ids=["print", "lambda", "object", "dict", "complex", "bytes", "set", "class"],
)
def test_what_json_cannot_hold_is_refused_by_name(value):
    message = "callback must be made of numbers, text and Surefoot's own classes to be saved, got "
    with pytest.raises(ModelFileError, match=re.escape(message)):
        encode("callback", value)


def test_a_part_inside_a_part_is_refused_by_its_own_name():
    with pytest.raises(ModelFileError, match="^features must be made of numbers"):
        encode("policy", Linear(features=lambda X: X))
    with pytest.raises(ModelFileError, match="^callback must be made of numbers"):
        encode("solver", DASGD(callback=print))


def test_a_class_of_the_same_name_is_not_ours():
    class Box(ball.Box):
        pass

    with pytest.raises(ModelFileError, match="support must be made of numbers"):
        encode("support", Box(0, 1))


@pytest.mark.parametrize(
    "value",
    [
        {"class": "Popen", "fields": {"args": ["true"]}},
        {"class": "os.system", "fields": {}},
        {"float": "1.0"},
        {"float": "__import__('os')"},
        {"class": "Box"},
        {"class": "Box", "fields": {}, "more": 1},
        {},
    ],
    ids=str,
)
def test_only_known_classes_are_built(value):
    with pytest.raises(ModelFileError, match="The model file must hold Surefoot's own classes, got"):
        decode(value)
    with pytest.raises(ModelFileError, match="The model file must hold Surefoot's own classes, got"):
        decode([{"class": "Linear", "fields": {"features": value}}])


# ---------------------------------------------------------------- files


def test_file_comes_back_bit_for_bit(path):
    header, arrays = read_file(path)
    assert {name: header[name] for name in HEADER} == HEADER
    assert header["format"] == "surefoot-model"
    assert header["format_version"] == 1
    assert header["surefoot_version"] == __version__
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes()


def test_file_is_plain_json_and_arrays(path):
    parts = members(path)
    assert set(parts) == {"model.json", "sha256", "numbers.npy", "flags.npy", "single.npy"}
    assert json.loads(parts["model.json"])["list"] == HEADER["list"]
    for name in ("numbers", "flags"):
        array = np.load(io.BytesIO(parts[f"{name}.npy"]), allow_pickle=False)
        np.testing.assert_array_equal(array, ARRAYS[name])


def test_writing_the_same_again_gives_the_same_content(path, tmp_path):
    write_file(tmp_path / "again", HEADER, ARRAYS)
    assert members(tmp_path / "again") == members(path)


def test_text_paths_work(tmp_path):
    write_file(str(tmp_path / "m"), HEADER, ARRAYS)
    assert read_file(str(tmp_path / "m"))[0]["estimator"] == "Nothing"


def test_missing_file(tmp_path):
    message = refused(tmp_path / "none", "There is no model file at ")
    assert message.endswith("none.")
    refused(tmp_path, "There is no model file at ")  # a directory is none


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99, "last byte"])
def test_truncated_file(path, share):
    data = path.read_bytes()
    path.write_bytes(data[:-1] if share == "last byte" else data[: int(share * len(data))])
    refused(path, r"must be a Surefoot model, got a damaged file or another format \(.+\)\.$")


def test_any_damaged_byte_is_found_or_harmless(path):
    """Whichever byte of the file is hit: a clear error, or the same content."""
    data, (header, arrays) = path.read_bytes(), read_file(path)
    found = 0
    for at in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        try:
            again, more = read_file(path)
        except ModelFileError as error:
            assert str(path) in str(error)
            found += 1
            continue
        assert again == header
        assert all(more[name].tobytes() == arrays[name].tobytes() for name in arrays)
    assert found > 0.4 * len(data) / 3


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x04K\x01.", b"{}" * 1000])
def test_not_a_zip_file(path, content):
    path.write_bytes(content)
    refused(path, "must be a Surefoot model, got a damaged file or another format")


def test_foreign_zip_files(path):
    rewrite(path, {"readme.txt": b"hello"})
    refused(path, r"must be a Surefoot model, got another kind of zip file\.$")
    np.savez(path.with_suffix(".npz"), a=np.ones(3))
    refused(path.with_suffix(".npz"), r"must be a Surefoot model, got another kind of zip file\.$")
    for header in (b'{"format": "other-model"}', b"[1, 2]", b"3"):
        rewrite(path, {"model.json": header, "sha256": hashlib.sha256(header).hexdigest()})
        refused(path, r"must be a Surefoot model, got another kind of zip file\.$")


def test_newer_format_version(path):
    forge(path, members(path), format_version=2, surefoot_version="9.9")
    message = r"must have format version <= 1, got 2 \(written by Surefoot 9\.9\): upgrade Surefoot\.$"
    refused(path, message)
    forge(path, members(path), format_version="1")
    refused(path, r"must have format version <= 1, got 1 ")


def test_edited_header(path):
    parts = members(path)
    parts["model.json"] = parts["model.json"].replace(b"Nothing", b"Anything")
    rewrite(path, parts)
    refused(path, r"was changed after it was saved: its checksum does not match\.$")
    parts["model.json"] = parts["model.json"][:-1]
    rewrite(path, parts)
    refused(path, "was changed after it was saved: .*line")


def test_edited_array(path):
    parts = members(path)
    parts["flags.npy"] = parts["flags.npy"][:-1] + b"\x01"
    rewrite(path, parts)
    refused(path, r"was changed after it was saved: flags\.npy does not match\.$")


def test_extra_and_missing_members(path):
    parts = members(path)
    rewrite(path, {**parts, "extra.npy": parts["flags.npy"]})
    refused(path, r"was changed after it was saved: its arrays differ\.$")
    rewrite(path, {**parts, "script.py": b"print()"})
    refused(path, r"was changed after it was saved: its arrays differ\.$")
    rewrite(path, {name: data for name, data in parts.items() if name != "flags.npy"})
    refused(path, r"was changed after it was saved: its arrays differ\.$")
    for name in ("sha256", "model.json"):
        rewrite(path, {key: data for key, data in parts.items() if key != name})
        refused(path, r"must be a Surefoot model, got another kind of zip file\.$")


def test_header_without_its_list_of_arrays(path):
    parts = members(path)
    header = json.loads(parts["model.json"])
    del header["arrays"]
    text = json.dumps(header).encode()
    rewrite(path, {**parts, "model.json": text, "sha256": hashlib.sha256(text).hexdigest()})
    refused(path, r"was changed after it was saved: its arrays differ\.$")


class Bomb:
    """Leaves a trace when unpickled."""

    def __init__(self, trace):
        self.trace = str(trace)

    def __reduce__(self):
        return os.mkdir, (self.trace,)


def test_pickled_arrays_are_refused_and_not_executed(path, tmp_path):
    trace = tmp_path / "executed"
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([Bomb(trace)], dtype=object), allow_pickle=True)
    np.load(io.BytesIO(buffer.getvalue()), allow_pickle=True)
    assert trace.exists()  # the bomb is live
    trace.rmdir()
    forge(path, {**members(path), "flags.npy": buffer.getvalue()})
    refused(path, r"holds an unreadable array flags\.npy: Object arrays cannot be loaded")
    assert not trace.exists()


def test_a_pickle_in_place_of_an_array_is_refused(path):
    forge(path, {**members(path), "flags.npy": b"\x80\x04K\x01."})
    refused(path, r"holds an unreadable array flags\.npy: ")


def test_objects_are_never_written(tmp_path):
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write_file(tmp_path / "m", HEADER, {"bad": np.array([object()])})
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- writing


@pytest.mark.parametrize("place", ["missing directory", "under a file", "a directory"])
def test_a_place_that_cannot_be_written_to(tmp_path, place):
    (tmp_path / "file").write_text("text")
    target = {
        "missing directory": tmp_path / "none" / "m",
        "under a file": tmp_path / "file" / "m",
        "a directory": tmp_path,
    }[place]
    with pytest.raises(ModelFileError, match=f"The model file cannot be written to {target}: "):
        write_file(target, HEADER, ARRAYS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert not list(tmp_path.parent.glob("*.part"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ModelFileError, match="cannot be written to .*Permission denied"):
        write_file(tmp_path / "m", HEADER, ARRAYS)


def test_a_directory_that_refuses_with_permission_denied(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(persistence.zipfile, "ZipFile", denied)
    with pytest.raises(ModelFileError, match="cannot be written to .*Permission denied"):
        write_file(tmp_path / "m", HEADER, ARRAYS)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_failed_save_leaves_the_old_file(path, monkeypatch, after):
    before, write, count = path.read_bytes(), zipfile.ZipFile.writestr, [0]

    def full(archive, name, data):
        count[0] += 1
        if count[0] > after:
            raise OSError(28, "No space left on device")
        write(archive, name, data)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(ModelFileError, match="cannot be written to .*No space left on device"):
        write_file(path, {"estimator": "Other"}, ARRAYS)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_new_file_appears_whole(path, monkeypatch):
    """Until the last byte is written the old file is in place."""
    before, write, seen = path.read_bytes(), zipfile.ZipFile.writestr, []

    def watch(archive, name, data):
        seen.append(path.read_bytes())
        write(archive, name, data)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", watch)
    write_file(path, {"estimator": "Other"}, ARRAYS)
    assert set(seen) == {before}
    assert read_file(path)[0]["estimator"] == "Other"
