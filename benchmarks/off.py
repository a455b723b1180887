"""Measure what depyf costs a program that does not use it: installed, and with ``depyf install-hook`` and no variable.

    python benchmarks/off.py             # 300 starts of each way
    python benchmarks/off.py --other     # where another package has a .pth file, as in most environments

Each way has a virtual environment of its own: without depyf, with it, and with its hook. Starts of ``python -c pass``
alternate, and their CPU time counts. ``modules`` and ``hooks`` are what the start adds to ``sys.modules``, and to the
finders, signal handlers, trace functions, exit handlers and display hooks of the interpreter. The line of the hook's
``.pth`` file, which Python runs at its start, is timed alone, too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import timeit
import venv
from pathlib import Path
from typing import Dict, List

from depyf.running.start_hook import FILES, VARIABLES

WAYS = ("plain", "installed", "hook")
PACKAGE = Path(__file__).resolve().parents[1] / "src" / "depyf"

PROBE = """
import atexit, json, signal, sys
handlers = [n for n in signal.valid_signals() if callable(signal.getsignal(n))]
print(json.dumps([sorted(sys.modules), [repr(type(each)) for each in sys.meta_path] + handlers
    + [repr(sys.gettrace()), repr(sys.getprofile()), atexit._ncallbacks(), sys.excepthook is sys.__excepthook__]]))
"""


def environment() -> Dict[str, str]:
    """Return the environment of the starts: without depyf's variables and paths to it."""
    return {name: value for name, value in os.environ.items() if name not in (*VARIABLES, "PYTHONPATH")}


def python_of(way: str, root: Path, *, other: bool) -> str:
    """Make the virtual environment of a way; return its Python. ``other``: there is another ``.pth`` file."""
    venv.create(root / way, with_pip=False)
    python = str(root / way / "bin" / "python")
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.check_output(asked, text=True).strip())
    if other:
        (packages / "another.pth").write_text("# of another package\n")
    if way != "plain":
        (packages / "depyf").symlink_to(PACKAGE)
    if way == "hook":
        for name, text in FILES.items():
            (packages / name).write_text(text)
    return python


def cpu_seconds(command: List[str]) -> float:
    """Run a program; return its user and system time, which other processes change less than they change the time."""
    process = os.posix_spawn(command[0], command, environment())
    _, status, usage = os.wait4(process, 0)
    assert status == 0
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=300)
    parser.add_argument("--other", action="store_true", help="each environment has a .pth file of another package")
    options = parser.parse_args()
    starts = options.starts
    with tempfile.TemporaryDirectory() as root:
        pythons = {way: python_of(way, Path(root), other=options.other) for way in WAYS}
        seconds: Dict[str, List[float]] = {way: [] for way in WAYS}
        for _ in range(starts + 1):
            for way, python in pythons.items():
                seconds[way].append(cpu_seconds([python, "-c", "pass"]))
        probed = {
            way: json.loads(subprocess.check_output([python, "-c", PROBE], env=environment()))
            for way, python in pythons.items()
        }
    print("| way | CPU of a start, median | best | more than plain, median of pairs | modules | hooks |")
    print("|---|---|---|---|---|---|")
    for way in WAYS:
        own = seconds[way][1:]
        more = statistics.median(one - other for one, other in zip(own, seconds["plain"][1:])) * 1e6
        added = sorted(set(probed[way][0]) - set(probed["plain"][0]))
        modules = f"{len(added)}{': ' if added else ''}{', '.join(added)}"
        hooks = 0 if probed[way][1] == probed["plain"][1] else 1
        middle, best = statistics.median(own) * 1e3, min(own) * 1e3
        print(f"| {way} | {middle:.2f} ms | {best:.2f} ms | {more:+.0f} µs | {modules} | {hooks} |")
    line = FILES["depyf_hook.pth"].splitlines()[-1]
    scope: Dict[str, object] = {}
    for name in VARIABLES:
        os.environ.pop(name, None)
    alone = min(timeit.repeat(lambda: exec(line, scope), number=100, repeat=50)) / 100
    print(f"\nThe line of the .pth file alone: {alone * 1e6:.0f} µs. {sys.version.split()[0]}, {starts} starts of each")


if __name__ == "__main__":
    main()
