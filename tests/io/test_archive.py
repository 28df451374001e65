"""Files: whole or not at all, and refused if they are damaged, foreign or made to do harm."""

import hashlib
import io
import json
import os
import tracemalloc
import zipfile

import numpy as np
import pytest

from surefoot.exceptions import ModelFileError
from surefoot.io import archive, read_archive, write_archive
from surefoot.version import __version__
from tests.io import forging
from tests.io.forging import claimed, forge, members, rewrite

ARRAYS = {
    "numbers": np.array([[0.1, -np.inf], [np.nan, 1e-310]]),
    "flags": np.array([True, False]),
    "single": np.array(3.5),
}
HEADER = {"estimator": "Nothing", "list": [1, 2.5, None, True, "ü"]}


@pytest.fixture(params=[2, 3])
def version(request):
    """Of the format: files of the former one are read as before."""
    return request.param


@pytest.fixture
def path(tmp_path, version):
    path = tmp_path / "m.surefoot"
    {2: forging.write_version_2, 3: write_archive}[version](path, HEADER, ARRAYS)
    return path


@pytest.fixture
def flags(version):
    """The member that holds flags."""
    return {2: "flags.npy", 3: "block_1.npy"}[version]


def refused(path, message):
    told = forging.refused(read_archive, path, message)
    assert str(path) in told
    return told


# ---------------------------------------------------------------- files


def test_file_comes_back_bit_for_bit(path, version):
    header, arrays = read_archive(path)
    assert {name: header[name] for name in HEADER} == HEADER
    assert header["format"] == "surefoot-model"
    assert header["format_version"] == version
    assert header["surefoot_version"] == {2: "0.9", 3: __version__}[version]
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes()


def test_file_is_plain_json_and_arrays(tmp_path):
    write_archive(tmp_path / "m", HEADER, ARRAYS)
    parts = members(tmp_path / "m")
    assert set(parts) == {"model.json", "sha256", "block_0.npy", "block_1.npy"}
    assert json.loads(parts["model.json"])["list"] == HEADER["list"]
    numbers, flags = (
        np.load(io.BytesIO(parts[f"block_{k}.npy"]), allow_pickle=False) for k in range(2)
    )
    np.testing.assert_array_equal(numbers, [*ARRAYS["numbers"].ravel(), ARRAYS["single"]])
    np.testing.assert_array_equal(flags, ARRAYS["flags"])


def test_writing_the_same_again_gives_the_same_content(tmp_path):
    for name in ("once", "again"):
        write_archive(tmp_path / name, HEADER, ARRAYS)
    assert members(tmp_path / "again") == members(tmp_path / "once")


def test_text_paths_work(tmp_path):
    write_archive(str(tmp_path / "m"), HEADER, ARRAYS)
    assert read_archive(str(tmp_path / "m"))[0]["estimator"] == "Nothing"


def test_missing_file(tmp_path):
    message = refused(tmp_path / "none", "There is no model file at ")
    assert message.endswith("none.")
    refused(tmp_path, "The model must be a file, got the folder ")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99, "last byte"])
def test_truncated_file(path, share):
    data = path.read_bytes()
    path.write_bytes(data[:-1] if share == "last byte" else data[: int(share * len(data))])
    refused(path, r"must be a Surefoot model, got a damaged file or another format \(.+\)\.$")


def test_any_damaged_byte_is_found_or_harmless(path):
    """Whichever byte of the file is hit: a clear error, or the same content."""
    data, (header, arrays) = path.read_bytes(), read_archive(path)
    found = 0
    for at in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        try:
            again, more = read_archive(path)
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
    got = "another kind of file." if content else "a damaged file or another format"
    refused(path, f"must be a Surefoot model, got {got}")


def test_foreign_zip_files(path):
    rewrite(path, {"readme.txt": b"hello"})
    refused(path, r"must be a Surefoot model, got another kind of zip file\.$")
    np.savez(path.with_suffix(".npz"), a=np.ones(3))
    refused(path.with_suffix(".npz"), r"must be a Surefoot model, got another kind of zip file\.$")
    for header in (b'{"format": "other-model"}', b"[1, 2]", b"3"):
        rewrite(path, {"model.json": header, "sha256": hashlib.sha256(header).hexdigest()})
        refused(path, r"must be a Surefoot model, got another kind of zip file\.$")


@pytest.mark.parametrize("other", [4, 1, 0, -2, "2", None, 2.0, [2]])
def test_another_format_version(path, other):
    forge(path, members(path), format_version=other, surefoot_version="9.9")
    told = refused(
        path, r"must have format version 2 or 3, got .* \(written by Surefoot 9\.9\): fit and save"
    )
    assert f"got {other} (" in told


def test_edited_header(path):
    parts = members(path)
    parts["model.json"] = parts["model.json"].replace(b"Nothing", b"Anything")
    rewrite(path, parts)
    refused(path, r"was changed after it was saved: its checksum does not match\.$")
    parts["model.json"] = parts["model.json"][:-1]
    rewrite(path, parts)
    refused(path, "was changed after it was saved: .*line")


def test_edited_array(path, flags):
    parts = members(path)
    parts[flags] = parts[flags][:-1] + b"\x01"
    rewrite(path, parts)
    refused(path, r"was changed after it was saved: (flags|block_1)\.npy does not match\.$")


def test_extra_and_missing_members(path, flags):
    parts = members(path)
    rewrite(path, {**parts, "extra.npy": parts[flags]})
    refused(path, r"was changed after it was saved: its arrays differ\.$")
    rewrite(path, {**parts, "script.py": b"print()"})
    refused(path, r"was changed after it was saved: its arrays differ\.$")
    rewrite(path, {name: data for name, data in parts.items() if name != flags})
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


def test_pickled_arrays_are_refused_and_not_executed(path, tmp_path, flags):
    trace = tmp_path / "executed"
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([Bomb(trace)], dtype=object), allow_pickle=True)
    np.load(io.BytesIO(buffer.getvalue()), allow_pickle=True)
    assert trace.exists()  # the bomb is live
    trace.rmdir()
    forge(path, {**members(path), flags: buffer.getvalue()})
    refused(path, r"holds an unreadable array (flags|block_1)\.npy: .*object")
    assert not trace.exists()


def test_a_pickle_in_place_of_an_array_is_refused(path, flags):
    forge(path, {**members(path), flags: b"\x80\x04K\x01."})
    refused(path, r"holds an unreadable array (flags|block_1)\.npy: ")


def test_objects_are_never_written(tmp_path):
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write_archive(tmp_path / "m", HEADER, {"bad": np.array([object()])})
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
        write_archive(target, HEADER, ARRAYS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert not list(tmp_path.parent.glob(f".{tmp_path.stem}.*"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ModelFileError, match="cannot be written to .*Permission denied"):
        write_archive(tmp_path / "m", HEADER, ARRAYS)


def test_a_directory_that_refuses_with_permission_denied(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(archive.zipfile, "ZipFile", denied)
    with pytest.raises(ModelFileError, match="cannot be written to .*Permission denied"):
        write_archive(tmp_path / "m", HEADER, ARRAYS)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_failed_save_leaves_the_old_file(path, monkeypatch, after):
    before, write, count = path.read_bytes(), zipfile.ZipFile.writestr, [0]

    def full(archive, name, data, **options):
        count[0] += 1
        if count[0] > after:
            raise OSError(28, "No space left on device")
        write(archive, name, data, **options)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(ModelFileError, match="cannot be written to .*No space left on device"):
        write_archive(path, {"estimator": "Other"}, ARRAYS)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_the_new_file_appears_whole(path, monkeypatch):
    """Until the last byte is written the old file is in place."""
    before, write, seen = path.read_bytes(), zipfile.ZipFile.writestr, []

    def watch(archive, name, data, **options):
        seen.append(path.read_bytes())
        write(archive, name, data, **options)

    monkeypatch.setattr(zipfile.ZipFile, "writestr", watch)
    write_archive(path, {"estimator": "Other"}, ARRAYS)
    assert set(seen) == {before}
    assert read_archive(path)[0]["estimator"] == "Other"


# ---------------------------------------------------------------- made to do harm


def test_a_member_that_grows_a_thousand_times_is_refused_before_it_is_read(path, flags):
    zeros = forging.npy(np.zeros(10**7))
    forge(path, {**members(path), flags: zeros}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    told = refused(
        path, r"must hold members that grow at most 200 times on reading, got (flags|block_1)\.npy"
    )
    assert "80,000,128 bytes" in told


def patched(path, name, **fields):
    """Overwrite numbers of a member in the table at the end of a zip file."""
    data = bytearray(path.read_bytes())
    places = {"flags": (8, 2), "method": (10, 2), "compressed": (20, 4), "size": (24, 4)}
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(name.encode()))
    for field, value in fields.items():
        first, length = places[field]
        data[at + first : at + first + length] = value.to_bytes(length, "little")
    path.write_bytes(data)


@pytest.mark.parametrize("claim", [{"size": 1000}, {"size": 10, "compressed": 10}])
def test_a_size_below_the_real_one_is_refused(path, claim, flags):
    forge(path, {**members(path), flags: forging.npy(np.zeros(10**6))}, zipfile.ZIP_DEFLATED)
    patched(path, flags, **claim)
    refused(path, "must be a Surefoot model, got a damaged file or another format")


def bomb(path, name, pieces):
    """Write a file anew with a member made of pieces, deflated; return the size of the member."""
    parts, size = members(path), 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for other, data in parts.items():
            if other != name:
                file.writestr(other, data)
        with file.open(name, "w") as member:
            for piece in pieces:
                size += member.write(piece)
    return size


def refused_lightly(path, message, limit=100 * 2**20):
    """Check that a file is refused, and that memory stays below a limit until then."""
    tracemalloc.start()
    try:
        told = refused(path, message)
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()
    return told


@pytest.mark.parametrize("name", [None, "model.json", "sha256"])
def test_a_member_that_hides_its_size_is_not_unpacked_whole(path, name, flags):
    name = name or flags
    size = bomb(path, name, [b"0" * 2**24] * 16)
    assert size > 2 * 100 * 2**20
    patched(path, name, size=1000)
    refused_lightly(path, "must be a Surefoot model|unreadable array|was changed", limit=10 * 2**20)


def test_a_small_file_that_owns_up_to_a_large_size_is_refused_before_it_is_read(
    path, monkeypatch, flags
):
    """Each member grows less than is allowed: together they are too large for the file."""
    rng = np.random.default_rng(0)
    pieces = [rng.bytes(2**16) + bytes(2**23)] * 30
    size = bomb(path, flags, [claimed((30 * (2**16 + 2**23),), "|u1"), *pieces])
    assert size > 200 * 2**20 > 50 * path.stat().st_size
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    refused_lightly(path, f"must hold at most 33,554,432 bytes, got {size // 1000 // 1000}")


def test_an_array_that_does_not_fit_its_member_is_refused_before_any_is_unpacked(path, monkeypatch):
    monkeypatch.setattr(archive, "_read_arrays", None)
    forge(path, {**members(path), "last.npy": claimed((10,), "<f8", bytes(79))})
    refused(path, r"unreadable array last\.npy: a shape of \(10,\) for 79 bytes")


@pytest.mark.parametrize("value", [b"[],", b"{},", b'{"":0},', b"0,"])
def test_a_header_of_too_many_values_is_refused_before_it_is_made(path, value):
    parts = members(path)
    many = value * (2**22 // len(value))
    text = parts["model.json"].replace(b'"list": [', b'"list": [' + many)
    digest = hashlib.sha256(text).hexdigest().encode()
    rewrite(path, {**parts, "model.json": text, "sha256": digest})
    refused_lightly(path, "its header must have at most 400,000 values", limit=20 * 2**20)


def test_a_header_that_is_too_long_is_refused_before_it_is_read(path):
    bomb(path, "model.json", [b" " * 2**20, np.random.default_rng(0).bytes(2**20)] * 5)
    refused_lightly(path, "must have a header of at most 8,388,608 bytes", limit=2**21)


def test_a_header_that_could_not_be_read_is_not_written(tmp_path):
    for header in ({"list": [0] * 400_000}, {"text": "x" * 2**23}):
        with pytest.raises(ModelFileError, match="cannot be written: its header must have at most"):
            write_archive(tmp_path / "m", header, {})
    assert not list(tmp_path.iterdir())


def test_a_header_that_would_grow_too_much_is_written_without_packing(tmp_path):
    """What is written must be readable."""
    write_archive(tmp_path / "m", {"text": " " * 2**21}, {})
    assert read_archive(tmp_path / "m")[0]["text"] == " " * 2**21


def test_a_packed_size_beyond_the_file_is_refused_before_it_is_read(path, monkeypatch, flags):
    """Growth is measured by what the file says of itself: 2 GB may hide in a file of 1.5 MB."""

    def unpacks(*_):
        raise AssertionError("something was unpacked")

    forge(path, {**members(path), flags: forging.npy(np.zeros(10**7))}, zipfile.ZIP_DEFLATED)
    patched(path, flags, compressed=10**6)
    monkeypatch.setattr(zipfile.ZipFile, "open", unpacks)
    refused(path, "must ")


def test_a_file_that_is_too_large_in_all_is_refused(path, monkeypatch):
    monkeypatch.setattr(archive, "LARGEST_FILE", 100)
    refused(path, "must hold at most 100 bytes, got")


def test_a_member_twice_is_refused(path, flags):
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr(flags, b"another")
    refused(path, "must hold every member once, got one twice")


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((10**15,), "<f8"),
        ((2**40, 2**40), "<f8"),
        ((-1,), "<f8"),
        ((3,), "<f8"),
        ((10**12,), "<U0"),
        ((10**12,), "|V0"),
        ((1,), "|O"),
        ((True,), "|b1"),
        ((1.0,), "|b1"),
        (("1",), "|b1"),
        ((1,), "no type"),
        ((1,), [("a", "|O")]),
    ],
    ids=str,
)
def test_an_array_that_claims_what_it_is_not_is_refused(path, shape, dtype, flags):
    forge(path, {**members(path), flags: claimed(shape, dtype, b"\x01")})
    refused(path, r"holds an unreadable array (flags|block_1)\.npy: ")
    forge(path, {**members(path), flags: claimed(shape, dtype)})
    refused(path, r"holds an unreadable array (flags|block_1)\.npy: ")


@pytest.mark.parametrize(
    "data",
    [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{}", b"\x93NUMPY\x02\x00" + b"\x00" * 40,
     b"\x93NUMPY\x01\x00\x10\x00__import__('os')", b"\x93NUMPY\x01\x00\x08\x00" + b"(" * 8],
)  # fmt: skip
def test_a_broken_array_is_refused(path, data, flags):
    forge(path, {**members(path), flags: data})
    refused(path, r"holds an unreadable array (flags|block_1)\.npy: ")


def test_json_nested_beyond_measure_is_refused(path):
    parts = members(path)
    for depth in (100_000, 390_000):
        text = parts["model.json"].replace(
            b'"list": [', b'"list": [' + b"[" * depth + b"]" * depth + b","
        )
        digest = hashlib.sha256(text).hexdigest().encode()
        rewrite(path, {**parts, "model.json": text, "sha256": digest})
        refused(path, "was changed after it was saved: ")


def test_a_number_with_too_many_digits_is_refused(path):
    parts = members(path)
    text = parts["model.json"].replace(b"2.5", b"9" * 100_000)
    rewrite(path, {**parts, "model.json": text, "sha256": hashlib.sha256(text).hexdigest()})
    refused(path, "was changed after it was saved: ")


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_damage_in_other_kinds_of_compression_is_found(path, compression, flags):
    forge(path, {**members(path), flags: os.urandom(400)}, compression)
    data = bytearray(path.read_bytes())
    for at in range(60, 400, 20):
        data[at] ^= 0xFF
    path.write_bytes(data)
    refused(path, "must hold stored or deflated members")


def test_a_name_of_a_member_that_is_no_text_is_refused(path, flags):
    data = path.read_bytes()
    patched(path, flags, flags=0x800)  # names are in UTF-8
    at = data.rindex(flags.encode())
    path.write_bytes(path.read_bytes()[:at] + b"\xff\xfe" + data[at + 2 :])
    refused(path, "must be a Surefoot model")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"flags": 1}, "must be a Surefoot model, got a damaged file or another format"),
        ({"method": 99}, "must hold stored or deflated members, got another kind"),
        ({"method": 9}, "must hold stored or deflated members, got another kind"),
    ],
)
def test_members_that_cannot_be_opened_are_refused(path, fields, message):
    patched(path, "model.json", **fields)
    refused(path, message)


def test_large_arrays_of_equal_numbers_come_back(tmp_path):
    """What is written must be readable, however well it packs: a policy that does not react is zero."""
    arrays = {"theta": np.zeros((1000, 300)), "ones": np.ones(400_000)}
    write_archive(tmp_path / "m", HEADER, arrays)
    found = read_archive(tmp_path / "m")[1]
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i8"])
def test_whole_numbers_have_as_few_bytes_as_they_need(tmp_path, kind):
    dtype = np.dtype(kind)
    most = min(np.iinfo(dtype).max, 2**40)
    arrays = {
        "small": np.arange(6, dtype=dtype).reshape(2, 3), "large": np.array([0, most], dtype=dtype),
        "below": (-np.arange(2)).astype(dtype), "none": np.zeros((0, 3), dtype=dtype),
        "again": np.arange(4, dtype=dtype)[::-2],
    }  # fmt: skip
    write_archive(tmp_path / "m", {}, arrays)
    again = read_archive(tmp_path / "m")[1]
    for name, array in arrays.items():
        assert again[name].dtype == dtype
        np.testing.assert_array_equal(again[name], array)
    listed = json.loads(members(tmp_path / "m")["model.json"])["arrays"]
    assert sum("small" in one["holds"] for one in listed.values()) == 1
    if kind == "i8":
        written = {key: name for name, one in listed.items() for key in one["holds"]}
        parts = members(tmp_path / "m")
        assert np.load(io.BytesIO(parts[written["small"]])).dtype == np.uint8
        assert np.load(io.BytesIO(parts[written["large"]])).dtype == np.uint64


def relisted(path, change):
    """Change what the header says of the members with arrays, and make checksums match."""
    parts = members(path)
    header = json.loads(parts["model.json"])
    change(header["arrays"])
    text = json.dumps(header).encode()
    digest = hashlib.sha256(text).hexdigest().encode()
    rewrite(path, {**parts, "model.json": text, "sha256": digest})


@pytest.mark.parametrize(
    "holds",
    [
        {"numbers": [2, 2], "single": [], "more": [1]}, {"numbers": [2, 2]}, {"numbers": [4]},
        {"numbers": [2, 2], "single": [1, -1]}, {"numbers": [-2, -2], "single": []},
        {"numbers": [2.0, 2.0], "single": []}, {"numbers": [True, 4], "single": []},
        {"numbers": ["2", 2], "single": []}, {"numbers": None, "single": []}, {"numbers": 4},
        {"numbers": [2, 2, *[1] * 40], "single": []}, {"numbers": [2**40, 0], "single": [5]},
        {"numbers": [10**300] * 1000, "single": []}, {"numbers": [2, 2], "single": {}},
        {"numbers": None},
    ],
    ids=str,
)  # fmt: skip
def test_arrays_that_do_not_fill_their_member_are_refused(tmp_path, holds, monkeypatch):
    path = tmp_path / "m"
    write_archive(path, HEADER, ARRAYS)
    relisted(path, lambda listed: listed["block_0.npy"].update(holds=holds))
    monkeypatch.setattr(archive, "_read_arrays", None)
    refused(path, "holds an unreadable array block_0.npy: its numbers|must list its arrays")


@pytest.mark.parametrize("entry", [None, 3, "text", [], {"sha256": "0"}, {"holds": {}, "kind": None}])
def test_a_list_of_arrays_of_another_kind_is_refused(tmp_path, entry):
    path = tmp_path / "m"
    write_archive(path, HEADER, ARRAYS)
    relisted(path, lambda listed: listed.update({"block_0.npy": entry}))
    refused(path, "must list its arrays and their shapes, got another kind of list")


def test_many_arrays_of_nothing_take_a_few_calls_each(tmp_path):
    path = tmp_path / "m"
    write_archive(path, HEADER, {"a": np.zeros(0)})
    many = {str(k): [0] for k in range(190_000)}
    relisted(path, lambda listed: listed["block_0.npy"].update(holds=many))
    with forging.ending(), forging.calls() as made:
        arrays = read_archive(path)[1]
    assert len(arrays) == len(many)
    assert made() < 12 * len(many)


def test_an_array_listed_twice_is_refused(tmp_path):
    path = tmp_path / "m"
    write_archive(path, HEADER, ARRAYS)
    relisted(path, lambda listed: listed["block_1.npy"].update(holds={"single": [2]}))
    refused(path, "must hold every array once, got one twice")


@pytest.mark.parametrize("kind", ["|O", "<f8", "<U9999999", "no type", 3, [["a", "|O"]]])
def test_whole_numbers_of_another_kind_are_refused(tmp_path, kind):
    path = tmp_path / "m"
    write_archive(path, HEADER, {"places": np.arange(5)})
    relisted(path, lambda listed: listed["block_0.npy"].update(kind=kind))
    refused(path, "holds an unreadable array block_0.npy: its numbers")
    write_archive(path, HEADER, ARRAYS)  # numbers with fractions are as they are
    relisted(path, lambda listed: listed["block_0.npy"].update(kind="<i8"))
    refused(path, "holds an unreadable array block_0.npy: its numbers")


def test_whole_numbers_that_would_take_too_many_bytes_are_refused_before_they_are_read(tmp_path):
    """A deflated block of zeros, within the limit as it is, would have eight times as many bytes."""
    path, rng = tmp_path / "m", np.random.default_rng(0)
    write_archive(path, HEADER, {"places": np.zeros(2**20, dtype=int)})
    size = 2**24
    filled = np.zeros(size, dtype=np.uint8)
    filled[: size // 150] = rng.integers(0, 200, size // 150)
    relisted(path, lambda listed: listed["block_0.npy"].update(holds={"places": [size]}))
    forge(path, {**members(path), "block_0.npy": forging.npy(filled)}, zipfile.ZIP_DEFLATED)
    refused_lightly(path, r"must hold at most 33,554,432 bytes, got 134,217,728\.$", 20 * 2**20)


def test_bytes_are_those_of_a_file(tmp_path):
    write_archive(tmp_path / "m", HEADER, ARRAYS)
    (tmp_path / "again").write_bytes(archive.archive_bytes(HEADER, ARRAYS))
    assert members(tmp_path / "again") == members(tmp_path / "m")
