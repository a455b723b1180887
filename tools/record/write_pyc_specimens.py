"""Compile tests/bytecode/specimen.py with the running Python, for the tests of the .pyc reader.

python3.8 tools/record/write_pyc_specimens.py       # writes tests/bytecode/pycs/cp38.pyc
"""

from __future__ import annotations

import py_compile
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "bytecode"


def main() -> None:
    target = FOLDER / "pycs" / f"cp{sys.version_info[0]}{sys.version_info[1]}.pyc"
    # By hash, so that the file is the same whenever it is written.
    py_compile.compile(
        str(FOLDER / "specimen.py"),
        str(target),
        "specimen.py",
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    print(target)


if __name__ == "__main__":
    main()
