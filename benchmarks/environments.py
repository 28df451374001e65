"""Environments of their own for peers that are not dependencies."""

import subprocess
import sys
from pathlib import Path

PLACE = Path(__file__).parent.parent / ".bench"


def environment(name, packages):
    """Return the interpreter of an environment with these packages, made on first use."""
    python = PLACE / name / "bin" / "python"
    done = PLACE / name / "installed.txt"
    wanted = "\n".join(packages)
    if not done.exists() or done.read_text() != wanted:
        print(f"installing {', '.join(packages)} into {PLACE / name}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", PLACE / name], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        done.write_text(wanted)
    return python
