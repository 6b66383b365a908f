"""Where in the Metal text a failure is."""

import shutil
import subprocess
from pathlib import Path

from .build import SOURCE_NAME


class SourceLines:
    """The lines of a text, and of the machine code made of it.

    Parameters
    ----------
    source : MSL.
    library : what was compiled of it; only instrumented builds know their lines.
    """

    def __init__(self, source: str, library: Path) -> None:
        self._lines = source.splitlines()
        self._library = library

    def describe(self, where: int) -> str:
        """What follows ``in``: minus a line, or an address in the library."""
        line = -where if where < 0 else self._line_of(where)
        if not 0 < line <= len(self._lines):
            return ""
        return f" at line {line}: {self._lines[line - 1].strip()}"

    def _line_of(self, address: int) -> int:
        """0 where nobody knows: addr2line comes with the GNU compiler only."""
        tool = shutil.which("addr2line")
        if tool is None or address == 0:
            return 0
        command = [tool, "-i", "-e", str(self._library), hex(address)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for place in done.stdout.splitlines():  # from the inside of inlined functions out
            file, _, line = place.partition(":")
            if Path(file).name == SOURCE_NAME and line.split()[0].isdigit():
                return int(line.split()[0])
        return 0
