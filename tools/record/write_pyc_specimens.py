"""Compile the specimens of tests/decompiler/bytecode/ with the running Python, for the tests of other Pythons.

python3.8 tools/record/write_pyc_specimens.py       # writes cp38.pyc in pycs/ and in pycs_of_changes/
"""

from __future__ import annotations

import py_compile
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "decompiler" / "bytecode"


def main() -> None:
    for source, folder in (("specimen.py", "pycs"), ("changes.py", "pycs_of_changes")):
        target = FOLDER / folder / f"cp{sys.version_info[0]}{sys.version_info[1]}.pyc"
        # By hash, so that the file is the same whenever it is written.
        py_compile.compile(
            str(FOLDER / source),
            str(target),
            source,
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        print(target)


if __name__ == "__main__":
    main()
