"""Measure ``depyf report`` on large logs of torch's trace, beside tlparse: CPU seconds and the largest resident memory.

    python benchmarks/logs.py --tlparse PROGRAM            # every row, three runs of each way, alternating
    python benchmarks/logs.py --rows bert,distinct --copies 36 --before CHECKOUT
    python benchmarks/logs.py --log FILE                   # a log of one's own instead of those made here

The log of a training step of BERT (6 layers) is recorded here, and repeated with other numbers of frames: in ``bert``
graphs and guards come again, as in recompilations; in ``distinct`` half the names in graphs and all modules in guards
differ in each copy. ``small`` is ``tests/report/logs/torch_2_13.log.gz``, many small functions. ``plain`` is
``depyf report`` without what ``depyf[fast]`` installs.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

ROOT = Path(__file__).resolve().parent.parent
SMALL = ROOT / "tests" / "report" / "logs" / "torch_2_13.log.gz"
_FRAME = re.compile(r'("frame_id": )(\d+)')
_NODE = re.compile(r"\b([a-z]+(?:_[a-z]+)*_\d+)\b")


def recorded(folder: Path) -> str:
    """Return the text of the log of a training step of BERT, compiled for ``aot_eager``."""
    program = "import cost_programs; cost_programs.bert('aot_eager')"
    environment = {**os.environ, "TORCH_TRACE": str(folder), "PYTHONPATH": str(ROOT / "benchmarks")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True)
    return next(folder.glob("*.log")).read_text(encoding="utf-8")


def copies(log: str, number: int, *, distinct: bool) -> Iterator[str]:
    """Yield the log again and again, each time with other frames, and with ``distinct`` with other names."""
    records = [record.partition("\n") for record in re.split(r"^(?=V)", log, flags=re.MULTILINE) if record]
    for copy in range(number):
        for head, _, payload in records:
            head = _FRAME.sub(lambda match, more=10 * copy: f"{match[1]}{int(match[2]) + more}", head)
            if distinct and copy and payload:
                payload = "".join(renamed(line, copy) for line in payload.splitlines(keepends=True))
                text = "\n".join(line[1:] for line in payload.splitlines())
                digest = hashlib.md5(text.encode("utf-8")).hexdigest()
                head = re.sub(r'"has_payload": "\w+"', f'"has_payload": "{digest}"', head)
            yield f"{head}\n{payload}"


def renamed(line: str, copy: int) -> str:
    """Return a line of a payload with other modules, and half of the lines with other nodes of graphs."""
    line = line.replace("_modules'", f"_modules{copy}'")
    return _NODE.sub(rf"\1_r{copy}", line) if len(line) % 2 else line


def measured(command: List[str], path: str, out: str) -> Tuple[float, float]:
    """Return the CPU seconds of a run on a log, and its largest resident memory in MiB."""
    shutil.rmtree(out, ignore_errors=True)
    # A process of its own for each run: RUSAGE_CHILDREN has the largest of all children.
    program = (
        "import resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
        "of = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(of.ru_utime + of.ru_stime, of.ru_maxrss / 1024)"
    )
    argv = [sys.executable, "-c", program, *(each.format(log=path, out=out) for each in command)]
    seconds, mebibytes = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(mebibytes)


def ways(arguments: argparse.Namespace, scratch: Path) -> Dict[str, List[str]]:
    """Return the commands that are compared, by their names."""
    hidden = scratch / "hidden"  # modules that can't be imported, in front of those that are installed
    hidden.mkdir()
    for name in ("isal", "msgspec"):
        (hidden / f"{name}.py").write_text("raise ImportError\n", encoding="utf-8")

    def depyf(*path: object) -> List[str]:
        joined = os.pathsep.join(map(str, path))
        return ["env", f"PYTHONPATH={joined}", sys.executable, "-m", "depyf", "report", "{log}", "-o", "{out}"]

    found = {"depyf[fast]": depyf(ROOT / "src"), "depyf": depyf(hidden, ROOT / "src")}
    if arguments.before:
        found["before"] = depyf(arguments.before / "src")
    if arguments.tlparse:
        found["tlparse"] = [arguments.tlparse, "{log}", "-o", "{out}", "--no-browser"]
    return found


def logs(arguments: argparse.Namespace, scratch: Path) -> Iterator[Tuple[str, Path]]:
    """Yield the name and the path of each log."""
    if arguments.log:
        yield arguments.log.name, arguments.log
        return
    rows = arguments.rows.split(",")
    bert = recorded(scratch) if {"bert", "distinct"} & {*rows} else ""
    small = gzip.decompress(SMALL.read_bytes()).decode("utf-8")
    for row in rows:
        path = scratch / f"{row}.repeated.log"
        text, number = (small, 64) if row == "small" else (bert, arguments.copies)
        with path.open("w", encoding="utf-8") as file:
            file.writelines(copies(text, number, distinct=row == "distinct"))
        yield row, path
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="bert,distinct,small", help="which logs (bert,distinct,small)")
    parser.add_argument("--log", type=Path, help="a log instead of the rows")
    parser.add_argument("--copies", type=int, default=36, help="of the log of BERT (36: 62 MB)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="another checkout of depyf")
    parser.add_argument("--tlparse", metavar="PROGRAM")
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; CPU seconds: median (lowest to highest); the most memory\n")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        compared = ways(arguments, scratch)
        for name, path in logs(arguments, scratch):
            print(f"{name}, {path.stat().st_size / 1e6:.1f} MB", flush=True)
            found: Dict[str, List[Tuple[float, float]]] = {way: [] for way in compared}
            for repeat in range(arguments.repeats + 1):
                for way, command in compared.items():
                    once = measured(command, str(path), f"{folder}/out")
                    if repeat:  # the first one may compile bytecode
                        found[way].append(once)
            for way, runs in found.items():
                seconds = [each[0] for each in runs]
                times = f"{statistics.median(seconds):6.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
                print(f"  {way:12} {times}, {max(each[1] for each in runs):6.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
