"""Screens of the command line for how-to pages, as vector pictures: commands are run, not typed off.

python docs/screens.py [FOLDER]
"""

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).parent
WIDTH = 92
THEME = TerminalTheme(
    (250, 250, 247), (33, 37, 41),
    [(33, 37, 41), (179, 58, 30), (11, 110, 114), (138, 109, 20),
     (29, 78, 137), (125, 60, 115), (11, 110, 114), (90, 90, 90)],
)  # fmt: skip
SALES = "day,price,sold\n" + "".join(
    f"2024-01-{k + 1:02d},{2 + k % 3 / 4:.2f},{9 - k % 3}\n" for k in range(20)
)
WORD = SALES.replace("2024-01-07,2.00", "2024-01-07,sold out")
TOTALS = SALES + f"Total,,{sum(9 - k % 3 for k in range(20))}\n"
LEARNED = [
    '{"heat": 19, "rain": 0, "demand": 41}',
    '{"heat": 24, "rain": 1, "demand": 44}',
    '{"day": "mon", "heat": 21, "rain": 1}',
    '{"day": "tue", "heat": 24, "rain": 0}',
]
LATER = ['{"day": "mon", "demand": 38}', '{"day": "wed", "heat": 21, "rain": 1}']
LEARN = (
    "surefoot learn sales.jsonl --backorder 1 --holding 0.2 --outcome demand --id day "
    "--checkpoint sales.checkpoint"
)
FIT = "--outcome sold -o model.surefoot"
TITLES = {
    "mistakes": "mistakes, before anything is written",
    "stream": "a stream, stopped and gone on with",
}
# What is in the folder before, and what is typed.
SCREENS = {
    "mistakes": (
        {"sales.csv": SALES, "word.csv": WORD, "totals.csv": TOTALS},
        [
            "surefoot fit sales.csv --outcome slod --price 5 --cost 2 -o model.surefoot",
            f"surefoot fit word.csv {FIT} --price 5 --cost 2",
            f"surefoot fit totals.csv {FIT} --price 5 --cost 2",
            f"surefoot fit sales.csv {FIT} --price 5 --cost 8",
            f"surefoot fit sales.csv {FIT} --backorder 3",
        ],
    ),
    "stream": (
        {"sales.jsonl": "\n".join(LEARNED) + "\n", "later.jsonl": "\n".join(LATER) + "\n"},
        ["cat sales.jsonl", LEARN, "cat later.jsonl", "cat later.jsonl >> sales.jsonl", LEARN],
    ),
}


def typed(command: str, folder: Path) -> str:
    """Return what a command writes to a terminal; ``surefoot`` is the one of this interpreter."""
    own = f"{shlex.quote(sys.executable)} -m surefoot.cli.main"
    done = subprocess.run(
        re.sub(r"^surefoot\b", own, command), shell=True, cwd=folder, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1"},
    )  # fmt: skip
    return done.stdout


def screen(name: str) -> list[tuple[str, str]]:
    """Return the commands of a screen, each with its output."""
    files, commands = SCREENS[name]
    with tempfile.TemporaryDirectory() as folder:
        for file, text in files.items():
            (Path(folder) / file).write_text(text)
        return [(command, typed(command, Path(folder))) for command in commands]


def picture(name: str) -> str:
    """Return a screen as SVG that asks no other machine for fonts."""
    console = Console(width=WIDTH, record=True, file=io.StringIO())
    for command, output in screen(name):
        console.print(Text.assemble(("$ ", "bold cyan"), (command, "bold")))
        console.print(Text.from_ansi(output))
    drawn = console.export_svg(title=TITLES[name], theme=THEME, unique_id=name)
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def main() -> None:
    """Write all screens."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "images" / "screens"
    for name in SCREENS:
        (folder / f"{name}.svg").write_text(picture(name), encoding="utf-8")


if __name__ == "__main__":
    main()
