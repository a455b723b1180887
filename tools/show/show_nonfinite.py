"""Print what ``find_nonfinite`` finds in each program of tests/programs/nonfinite_programs.py, and whether it is right.

python tools/show/show_nonfinite.py [backend ...]      # default: aot_eager inductor
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "programs")]

import nonfinite_programs as programs  # noqa: E402
import torch  # noqa: E402

import depyf  # noqa: E402


def run(program: Any, backend: str, directory: str) -> Any:
    torch._dynamo.reset()
    with depyf.find_nonfinite(directory, stream=io.StringIO()) as found:
        program(lambda function, **options: torch.compile(function, backend=backend, **options))
    return found.first


def is_right(name: str, found: Any) -> Tuple[bool, bool]:
    """Return whether operation, line and direction are the planted ones, and whether the replay reproduces it."""
    planted = programs.PLANTED[name]
    if found is None or found.line is None or found.replay is None:
        return False, False
    right = (
        [found.line.line] == programs.lines_of(planted.program)
        and re.search(planted.operation, f"{found.operation} {found.called}") is not None
        and found.backward == planted.backward
    )
    return right, subprocess.run([sys.executable, found.replay], capture_output=True).returncode == 0


def main() -> None:
    for backend in sys.argv[1:] or ["aot_eager", "inductor"]:
        with tempfile.TemporaryDirectory() as directory:
            rights = []
            for name, planted in programs.PLANTED.items():
                found = run(planted.program, backend, directory)
                rights.append(is_right(name, found))
                line = "" if found is None or found.line is None else found.line.line
                words = "nothing" if found is None else f"{found.kind} {found.operation} line {line}"
                print(f"{'right' if all(rights[-1]) else 'WRONG':<6}{name:<42}{words}", flush=True)
            alarms = []
            for name, program in programs.CLEAN.items():
                found = run(program, backend, directory)
                alarms.append(found is not None)
                print(f"{'ALARM' if found else 'silent':<7}{name}" + (f"\n{found}" if found else ""), flush=True)
        print(
            f"{backend}: operation and line right in {sum(a for a, _ in rights)} of {len(rights)}, replay shows it in "
            f"{sum(b for _, b in rights)}; {sum(alarms)} reports on {len(alarms)} clean programs"
        )


if __name__ == "__main__":
    main()
