"""``surefoot learn``: decisions as the library makes them, bad lines by number, and no harm from a kill."""

import contextlib
import errno
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from surefoot import RobustNewsvendor
from surefoot.ambiguity import WassersteinBall
from surefoot.cli import learn
from surefoot.cli.following import Answers, Checkpoint, Follower
from surefoot.cli.main import main
from surefoot.costs import Newsvendor
from surefoot.datasets import synthetic
from surefoot.online import OnlinePolicy, Restart
from surefoot.online.lines import PipeLines
from surefoot.online.messages import Fields, JsonLines
from surefoot.online.session import Session

PRICES = ["--backorder", "1", "--holding", "0.2", "--outcome", "demand", "--id", "day"]
SOURCE = str(Path(__file__).parents[2] / "src")


def dialogue(days, seed=0):
    """Lines of a shop: each morning a context, each evening (or days later) an outcome."""
    rng = np.random.default_rng(seed)
    lines, open_days = [], []
    for day in range(days):
        heat, rain = rng.normal(size=2).tolist()
        if day % 7 == 3:
            lines.append({"heat": heat, "rain": rain, "demand": 5 + 2 * heat})
        else:
            context = {"heat": heat} if day % 11 == 5 else {"heat": heat, "rain": rain}
            lines.append({"day": f"d{day}", **context})
            open_days.append((f"d{day}", 5 + 2 * heat - rain + rng.normal()))
        while len(open_days) > rng.integers(4):
            name, demand = open_days.pop(int(rng.integers(len(open_days))))
            lines.append({"day": name, "demand": demand})
    return lines


def as_text(lines):
    return "".join(json.dumps(line) + "\n" for line in lines)


def by_library(lines):
    """The same dialogue through the library alone."""
    policy = OnlinePolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1))
    known, decisions = {}, {}
    for line in lines:
        context = {k: v for k, v in line.items() if k not in ("day", "demand")}
        if "demand" not in line:
            decisions[line["day"]], known[line["day"]] = policy.decide_one(context, tracked=True)
        elif "day" in line:
            policy.learn_one(y=line["demand"], id=known[line["day"]])
        else:
            policy.learn_one(context, line["demand"])
    return decisions


def decisions_of(text):
    answers = [json.loads(line) for line in text.splitlines()]
    found = {}
    for answer in answers:
        assert set(answer) == {"id", "decision"}
        assert found.setdefault(answer["id"], answer["decision"]) == answer["decision"]
    return found


def test_decisions_are_those_of_the_library(tmp_path, capsys):
    lines = dialogue(80)
    path = tmp_path / "shop.jsonl"
    path.write_text(as_text(lines))
    assert main(["learn", str(path), *PRICES]) == 0
    captured = capsys.readouterr()
    assert decisions_of(captured.out) == by_library(lines)
    questions = sum("demand" not in line for line in lines)
    learned = len(lines) - questions
    assert captured.err == (
        f"surefoot: {len(lines)} lines, {questions} decisions, {learned} learned.\n"
    )


def test_a_table_says_the_same_as_json_lines(tmp_path, capsys):
    lines = dialogue(60)
    names = ("day", "note", "heat", "rain", "demand")
    rows = [",".join(str(line.get(name, "")) for name in names) for line in lines]
    (tmp_path / "shop.csv").write_text("\n".join([",".join(names), *rows]))
    assert main(["learn", str(tmp_path / "shop.csv"), *PRICES, "--ignore", "note"]) == 0
    assert decisions_of(capsys.readouterr().out) == by_library(lines)


def test_standard_input_is_read_until_it_is_closed(monkeypatch, capsys):
    lines = dialogue(30)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(as_text(lines).encode())))
    assert main(["learn", *PRICES, "--follow"]) == 0
    assert decisions_of(capsys.readouterr().out) == by_library(lines)


def test_lines_without_an_id_are_named_by_their_number(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1, "demand": 2}\n{"x": 1}\n{"day": 2, "demand": 3}\n{"x": 2}\n')
    assert main(["learn", str(path), *PRICES]) == 0
    assert list(decisions_of(capsys.readouterr().out)) == [2, 4]


def test_options_reach_the_policy(monkeypatch, tmp_path):
    seen = {}

    class Spy(OnlinePolicy):
        def __init__(self, cost, **options):
            seen.update(options, cost=cost)
            super().__init__(cost, **options)

    monkeypatch.setattr(learn, "OnlinePolicy", Spy)
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 1, "city": "Rome", "demand": 2}\n')
    options = ["--radius", "0.5", "--decay", "--restart", "--text", "city"]
    assert main(["learn", str(path), *PRICES, *options]) == 0
    assert seen["cost"] == Newsvendor(1.0, 0.2)
    assert seen["ball"] == WassersteinBall(0.5)
    assert seen["radius"] is not None
    assert isinstance(seen["drift"], Restart)
    assert main(["learn", str(path), *PRICES, "--window", "70", "--text", "city"]) == 0
    assert seen["drift"].rows == 70
    assert seen["radius"] is None


def test_a_saved_model_is_gone_on_from(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(60, 2)), columns=["heat", "rain"])
    model = RobustNewsvendor(1.0, 0.2, radius=0.1).fit(frame, 5 + 2 * frame["heat"])
    model.save(tmp_path / "m.surefoot")
    path = tmp_path / "a.jsonl"
    path.write_text('{"heat": 0.5, "rain": -1}\n')
    names = ["--outcome", "demand", "--model", str(tmp_path / "m.surefoot")]
    assert main(["learn", str(path), *names]) == 0
    (decision,) = decisions_of(capsys.readouterr().out).values()
    asked = pandas.DataFrame({"heat": [0.5], "rain": [-1.0]})
    assert decision == pytest.approx(model.predict(asked)[0], rel=1e-12)
    assert main(["learn", str(path), *names, "--radius", "0.2"]) == 2
    assert "--radius must be that of the model, got both" in capsys.readouterr().err


def test_prices_are_asked_for(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text("")
    arguments = ["learn", str(tmp_path / "a.jsonl"), "--outcome", "y", "--backorder", "1"]
    assert main(arguments) == 2
    assert "--backorder and --holding, or --price and --cost" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "text"), [("a.csv", ""), ("b.csv", "x,demand\n"), ("c.jsonl", "\n")])
def test_nothing_to_learn_from_is_a_mistake(name, text, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    given = ["learn", str(tmp_path / name), "--outcome", "demand", *PRICES[:4]]
    assert main([*given, "--out", str(tmp_path / "out.jsonl")]) == 2
    assert f"{name} must have lines to learn from" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


BAD = [
    ('{"x": "a", "demand": 1}', "line 3: x must be a number, got 'a'."),
    ("not json", "line 3: must be one JSON object, got 'not json'"),
    ('{"demand": 1}', "line 3: an outcome must come with a context or an id, got neither."),
    ('{"day": "z"}', "line 3: a line must have a context or an outcome, got neither."),
    (
        '{"day": "z", "demand": 1}',
        "line 3: id must be that of a decision whose outcome has not come, got 'z'.",
    ),
    ('{"day": "m", "x": 1}', "line 3: id must be new until its outcome came, got 'm' again."),
    ('{"x": 1e200, "demand": 1}', "line 3: x['x'] must be finite and within"),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_a_bad_line_is_named_and_nothing_is_learned_from_it(bad, message, tmp_path, capsys):
    good = ['{"x": 1, "demand": 2}', '{"day": "m", "x": 1}', '{"day": "m", "demand": 3}', '{"x": 2}']
    (tmp_path / "good.jsonl").write_text("\n".join(good))
    (tmp_path / "bad.jsonl").write_text("\n".join([*good[:2], bad, *good[2:]]))
    assert main(["learn", str(tmp_path / "good.jsonl"), *PRICES]) == 0
    clean = [answer["decision"] for answer in map(json.loads, capsys.readouterr().out.splitlines())]
    assert main(["learn", str(tmp_path / "bad.jsonl"), *PRICES]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"surefoot: {message}")
    assert captured.err.count("\n") == 1
    assert main(["learn", str(tmp_path / "bad.jsonl"), *PRICES, "--on-error", "skip"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith(f"surefoot: {message}")
    assert "Skipped.\nsurefoot: 5 lines, 2 decisions, 2 learned, 1 skipped.\n" in captured.err
    skipped = [answer["decision"] for answer in map(json.loads, captured.out.splitlines())]
    assert skipped == clean


def test_a_bad_header_is_never_skipped(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n")
    assert main(["learn", str(path), *PRICES, "--on-error", "skip"]) == 2
    assert "line 1: the header must have the column 'demand', got x, y." in capsys.readouterr().err


def test_a_line_that_was_refused_can_be_mended(tmp_path, capsys):
    lines = [json.dumps(line) for line in dialogue(30)]
    path, kept = tmp_path / "a.jsonl", ["--checkpoint", str(tmp_path / "a.checkpoint")]
    path.write_text("\n".join([*lines[:20], "oops", *lines[20:]]))
    assert main(["learn", str(path), *PRICES, *kept]) == 2
    first = capsys.readouterr().out
    path.write_text("\n".join(lines))
    assert main(["learn", str(path), *PRICES, *kept]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("surefoot: going on after line 20.\n")
    assert decisions_of(first + captured.out) == by_library(map(json.loads, lines))


def test_a_table_that_grew_is_gone_on_with_under_its_header(tmp_path, capsys):
    lines = dialogue(60)
    names = ("day", "heat", "rain", "demand")
    rows = [",".join(names), *(",".join(str(x.get(n, "")) for n in names) for x in lines)]
    path, kept = tmp_path / "a.csv", ["--checkpoint", str(tmp_path / "a.checkpoint")]
    answers = ""
    for cut in (1, 25, 26, len(rows)):
        path.write_text("\n".join(rows[:cut]) + "\n")
        assert main(["learn", str(path), *PRICES, *kept]) == 0
        answers += capsys.readouterr().out
    assert decisions_of(answers) == by_library(lines)
    assert answers.count("\n") == len(by_library(lines))


def _refused(tmp_path, capsys, arguments):
    assert main(["learn", *arguments, "--checkpoint", str(tmp_path / "a.checkpoint")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_another_stream_configuration_or_file_is_refused(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text(as_text(dialogue(30)))
    arguments = [str(path), *PRICES]
    assert main(["learn", *arguments, "--checkpoint", str(tmp_path / "a.checkpoint")]) == 0
    capsys.readouterr()
    before = (tmp_path / "a.checkpoint").read_bytes()
    other = [str(path), *PRICES[:4], "--outcome", "sales", "--id", "day"]
    assert "--outcome must be 'demand' as in the checkpoint, got 'sales'." in _refused(
        tmp_path, capsys, other
    )
    assert "must come from the same ball" in _refused(tmp_path, capsys, [*arguments, "--radius", "0.3"])
    out = ["--out", str(tmp_path / "out.jsonl")]
    assert "--out must be 'standard output' as in" in _refused(tmp_path, capsys, [*arguments, *out])
    path.write_text(as_text(dialogue(31, seed=1)))
    assert "must be the stream of the checkpoint, got another one" in _refused(
        tmp_path, capsys, arguments
    )
    assert (tmp_path / "a.checkpoint").read_bytes() == before
    (tmp_path / "a.checkpoint").write_bytes(before[:100])
    assert "must be a Surefoot model, got a damaged file" in _refused(tmp_path, capsys, arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["none.jsonl"],
            "The input must be a file or - for standard input, got 'none.jsonl', which is not there.",
        ),
        (["--radius", "-1"], "radius must be >= 0, got -1.0."),
        (["--every", "0"], "--every must be >= 1, got 0."),
        (["--window", "0"], "rows must be >= 16, got 0."),
        (["--checkpoint", "no/where"], "--checkpoint must lie in an existing folder, got no"),
        (["--checkpoint", "."], "--checkpoint must be a file, got the folder '.'."),
        (["--out", "no/where"], "--out must lie in an existing folder, got no"),
        (["--ignore", "demand"], "outcome, id, ignore and text must name different columns, got"),
    ],
)
def test_mistakes_are_one_line(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["learn", *PRICES, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"surefoot: {message}")
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


class Killed(BaseException):
    """What SIGKILL is to a process: nothing after it runs."""


class KilledLines(PipeLines):
    """Lines that are cut off by a kill before a given one."""

    def __init__(self, text, until):
        super().__init__(io.BytesIO(text.encode()))
        self.until = until

    def next(self):
        if self.position.line >= self.until:
            raise Killed
        return super().next()


def _follower(text, out, path, until, every=7):
    session = Session(OnlinePolicy(Newsvendor(1.0, 0.2), ball=WassersteinBall(0.1), drift=Restart()))
    form = JsonLines(Fields("demand", id="day"))
    return Follower(
        session, KilledLines(text, until), form, Answers(out, file=False),
        checkpoint=Checkpoint(path, every, {}), skip=False,
    )  # fmt: skip


def test_killed_at_a_hundred_random_points_nothing_differs(tmp_path):
    text = as_text(dialogue(120))
    count = text.count("\n")
    whole = io.StringIO()
    _follower(text, whole, tmp_path / "whole", count + 1).run()
    rng = random.Random(0)
    kills = sorted(rng.sample(range(1, count), 100))
    out, path = io.StringIO(), tmp_path / "cut"
    for until in kills:
        follower = _follower(text, out, path, until, every=rng.randint(1, 9))
        follower.resume()
        with pytest.raises(Killed):
            follower.run()
    last = _follower(text, out, path, count + 1)
    last.resume()
    last.run()
    assert decisions_of(out.getvalue()) == decisions_of(whole.getvalue())
    assert last.session.learned + last.session.decided == count


@pytest.fixture
def start():
    """Start commands; whatever still runs after the test is ended."""
    with contextlib.ExitStack() as stack:

        def begin(arguments, **pipes):
            environment = {**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"}
            command = [sys.executable, "-m", "surefoot.cli.main", "learn", *arguments]
            process = subprocess.Popen(
                command, env=environment, stderr=subprocess.PIPE, text=True, **pipes
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield begin


def _wait_for(path, more_than):
    """Wait until a file has grown, without reading it."""
    _until(lambda: path.exists() and path.stat().st_size > more_than)


def _until(true):
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < 60
        time.sleep(0.01)


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_process_killed_at_random_points_goes_on_as_if_nothing_was(tmp_path, start):
    lines = dialogue(400)
    path, out = tmp_path / "shop.jsonl", tmp_path / "decisions.jsonl"
    text = as_text(lines)
    path.write_text("")
    arguments = [
        str(path), *PRICES, "--follow", "--out", str(out), "--every", "5",
        "--checkpoint", str(tmp_path / "shop.checkpoint"),
    ]  # fmt: skip
    rng = random.Random(1)
    cuts = [*sorted(rng.sample(range(len(text)), 3)), len(text)]
    written = 0
    for cut in cuts:
        process = start(arguments)
        with path.open("a") as file:  # in pieces that end inside of lines
            file.write(text[written:cut])
        written, before = cut, out.stat().st_size if out.exists() else 0
        _wait_for(out, before)
        time.sleep(0.05 * rng.random())
        if cut < len(text):
            process.kill()
            _, error = process.communicate()
            assert process.returncode == -signal.SIGKILL, error
    last = max(k for k, line in enumerate(lines) if "demand" not in line)
    _until(lambda: f'"{lines[last]["day"]}"' in out.read_text())
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert error.count("\n") == 2
    assert "surefoot: stopped; " in error
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    ids = [answer["id"] for answer in answers]
    assert len(ids) == len(set(ids))  # the file has every decision once
    assert decisions_of(out.read_text()) == by_library(lines)


def test_decisions_come_at_once_and_ctrl_c_ends_with_a_checkpoint(tmp_path, start):
    kept = tmp_path / "a.checkpoint"
    process = start(
        [*PRICES, "--checkpoint", str(kept), "--every", "1000"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    process.stdin.write('{"x": 1, "demand": 4}\n{"day": "m", "x": 2}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline()) == {"id": "m", "decision": 4.0}
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert error == (f"surefoot: stopped; 2 lines, 1 decisions, 1 learned. Checkpoint: {kept}.\n")
    again = start([*PRICES, "--checkpoint", str(kept)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    sent = '{"x": 1, "demand": 4}\n{"day": "m", "x": 2}\n{"day": "m", "demand": 6}\n{"x": 1}\n'
    answers, error = again.communicate(sent, timeout=60)
    assert again.returncode == 0, error
    assert error.startswith("surefoot: going on after line 2.\n")
    assert decisions_of(answers) == {4: 6.0}


def test_a_reader_that_left_is_one_line(tmp_path, start):
    path = tmp_path / "a.jsonl"
    path.write_text(as_text(dialogue(200)))
    read, write = os.pipe()
    os.close(read)
    process = start([str(path), *PRICES], stdout=write)
    os.close(write)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    assert error == "surefoot: standard output must stay open, got a closed pipe.\n"


def test_a_full_disk_is_one_line_and_nothing_is_lost(tmp_path, capsys, monkeypatch):
    lines = dialogue(60)
    path, out = tmp_path / "shop.jsonl", tmp_path / "out.jsonl"
    path.write_text(as_text(lines))
    command = ["learn", str(path), *PRICES, "--out", str(out), "--every", "7",
               "--checkpoint", str(tmp_path / "stream.checkpoint")]  # fmt: skip
    whole, room = os.write, [1_000]

    def nearly_full(number, data):
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = whole(number, data[: room[0]])
        room[0] -= taken
        return taken

    monkeypatch.setattr("surefoot.cli.following.os.write", nearly_full)
    assert main(command) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "the decision cannot be written: No space left on device" in message
    assert "goes on from its last checkpoint" in message
    assert out.read_text().endswith("}\n")  # no half a line
    assert 0 < len(decisions_of(out.read_text())) < len(by_library(lines))
    room[0] = 10**9
    assert main(command) == 0
    assert decisions_of(out.read_text()) == by_library(lines)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_full_device_behind_standard_output_is_one_line(tmp_path, start):
    path = tmp_path / "a.jsonl"
    path.write_text(as_text(dialogue(20)))
    with open("/dev/full", "w") as full:
        process = start([str(path), *PRICES], stdout=full)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert error.startswith(
        "surefoot: line 1: the decision cannot be written: No space left on device."
    )
    assert error.count("\n") == 1


def test_a_model_keeps_its_radius(tmp_path, capsys):
    data = synthetic(n=40, s=2, seed=0)
    RobustNewsvendor(radius=0.5).fit(data.X, data.y).save(tmp_path / "m.surefoot")
    (tmp_path / "in.jsonl").write_text("")
    model = str(tmp_path / "m.surefoot")
    arguments = ["learn", str(tmp_path / "in.jsonl"), "--outcome", "y", "--model", model, "--decay"]
    assert main(arguments) == 2
    assert "--decay must come without --model" in capsys.readouterr().err


def test_a_table_with_semicolons_and_decimal_commas_says_the_same(tmp_path, capsys):
    lines = dialogue(60)
    names = ("day", "heat", "rain", "demand")
    rows = [";".join(str(line.get(name, "")).replace(".", ",") for name in names) for line in lines]
    (tmp_path / "shop.csv").write_text("\n".join([";".join(names), *rows]))
    assert main(["learn", str(tmp_path / "shop.csv"), *PRICES]) == 0
    assert decisions_of(capsys.readouterr().out) == by_library(lines)
