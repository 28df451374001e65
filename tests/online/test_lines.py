"""Lines with a position: whole lines only, and no other stream taken for the same."""

import contextlib
import io

import pytest

from surefoot.exceptions import InvalidInputError
from surefoot.online.lines import FileLines, PipeLines, Position

TEXT = b"x,y\n1,2\n\n3,4\n5,6\n"


@pytest.fixture
def opened():
    """Open files that are closed after the test."""
    with contextlib.ExitStack() as files:
        yield lambda path, **options: FileLines(files.enter_context(path.open("rb")), **options)


def rest(lines):
    return list(iter(lines.next, None))


def test_a_file_and_a_pipe_give_the_same_lines_and_positions(tmp_path, opened):
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT)
    file, pipe = opened(path), PipeLines(io.BytesIO(TEXT))
    for _ in range(5):
        assert file.next() == pipe.next()
        assert file.position == pipe.position
    assert file.next() is None
    assert pipe.next() is None
    assert file.position.line == 5
    assert file.position.offset == len(TEXT)


@pytest.mark.parametrize("seen", range(6))
def test_resuming_anywhere_gives_the_rest(tmp_path, seen, opened):
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT)
    first = opened(path)
    for _ in range(seen):
        first.next()
    expected = TEXT.splitlines(keepends=True)[seen:]
    for again in (opened(path), PipeLines(io.BytesIO(TEXT))):
        again.resume(first.position)
        assert again.position.line == seen
        assert rest(again) == expected


def test_another_stream_is_refused(tmp_path, opened):
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT)
    first = opened(path)
    for _ in range(4):
        first.next()
    path.write_bytes(TEXT.replace(b"3,4", b"3,5"))
    with pytest.raises(InvalidInputError, match="must be the stream of the checkpoint"):
        opened(path).resume(first.position)
    with pytest.raises(InvalidInputError, match="standard input must be the stream of the checkpoint"):
        PipeLines(io.BytesIO(TEXT.replace(b"3,4", b"3,5"))).resume(first.position)
    path.write_bytes(TEXT[:6])
    with pytest.raises(InvalidInputError, match="line 4 is not what it was"):
        opened(path).resume(first.position)
    with pytest.raises(InvalidInputError, match="the 4 lines already seen, got 2"):
        PipeLines(io.BytesIO(TEXT[:6])).resume(first.position)


def test_following_waits_for_whole_lines_and_sees_them_grow(tmp_path, opened):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n1,")
    additions = [b"", b"2", b"\n3,4\n", b"5"]

    def wait(_):
        if not additions:
            raise TimeoutError
        with path.open("ab") as file:
            file.write(additions.pop(0))

    lines = opened(path, follow=True, wait=wait)
    assert [lines.next() for _ in range(3)] == [b"x,y\n", b"1,2\n", b"3,4\n"]
    with pytest.raises(TimeoutError):
        lines.next()
    assert lines.position.line == 3  # the half line "5" was not taken


def test_a_followed_file_must_only_grow(tmp_path, opened):
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT)
    lines = opened(path, follow=True, wait=lambda _: None)
    for _ in range(5):
        lines.next()
    path.write_bytes(b"x\n")
    with pytest.raises(InvalidInputError, match="must only grow"):
        lines.next()


def test_a_last_line_without_a_break_must_not_have_grown(tmp_path, opened):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x\n1")
    lines = opened(path)
    assert rest(lines) == [b"x\n", b"1"]
    path.write_bytes(b"x\n12\n")
    with pytest.raises(
        InvalidInputError, match="line 2 of .* must be as it was read, got a longer one"
    ):
        opened(path).resume(lines.position)
    path.write_bytes(b"x\n1\n2\n")
    again = opened(path)
    again.resume(lines.position)
    assert rest(again) == [b"2\n"]
    path.write_bytes(b"x\n1")
    again = opened(path)
    again.resume(lines.position)
    assert rest(again) == []


def test_the_start_is_a_position():
    assert Position() == Position(0, 0, 0, "", True)
