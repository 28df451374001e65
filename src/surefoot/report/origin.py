"""Where the rows of a report come from, for whoever is to find them again."""

from dataclasses import dataclass

from surefoot.estimators.guarantees import Guarantee
from surefoot.typing import IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Origin:
    """What is known about a file beyond the rows that were read from it.

    Attributes
    ----------
    source, checksum
        The file's name and its SHA-256.
    lines, unit
        For each row the line (or the row of the sheet) that it came from, and which of them it is.
    notes
        What reading it gave reason to say.
    command
        What was typed, to be repeated.
    economics
        What a unit short and a unit left over cost, in the words of whoever sells it.
    guarantee, fingerprint
        Of a model from a file, which does not hold the rows of its fit: what was stated then, and the
        checksum of those rows.
    """

    source: str = ""
    checksum: str = ""
    lines: IntArray | None = None
    unit: str = "line"
    notes: tuple[str, ...] = ()
    command: str = ""
    economics: str = ""
    guarantee: Guarantee | None = None
    fingerprint: str = ""

    def place(self, row: int) -> str:
        """Return where a row stands.

        >>> Origin().place(3)
        'row 3'
        """
        return f"row {row}" if self.lines is None else f"{self.unit} {self.lines[row]}"
