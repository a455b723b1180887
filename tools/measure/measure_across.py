"""Count how much of the standard library is proved when code of one Python is decompiled on another.

    python tools/measure/measure_across.py [--from 3.13] [--on 3.14] [--modules json/decoder ...] [--reasons] [-j 2]
    python tools/measure/measure_across.py --packages .venv/lib/python3.11/site-packages/{jinja2,numpy} [--most 12]

Compiles modules of each Python's library with that Python, decompiles them on each one that is not older, and prints a
table in Markdown: modules that are proved / unverified with text / with stubs / refused. ``--packages``: of folders
instead, ``--most`` of each, evenly spread; what a Python can't compile is left out. ``--exact``: the Python of the file
compiles the text, also that of a newer one; else the one that decompiles. ``--reasons`` lists what is not proved.
``.ci/pythons`` finds the Pythons; the variable PYTHONS names more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = [f"3.{minor}" for minor in range(8, 16)]
MODULES = [
    "abc",
    "argparse",
    "ast",
    "bisect",
    "calendar",
    "codecs",
    "collections/__init__",
    "configparser",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "difflib",
    "dis",
    "enum",
    "fnmatch",
    "fractions",
    "ftplib",
    "functools",
    "getopt",
    "glob",
    "gzip",
    "heapq",
    "inspect",
    "io",
    "json/decoder",
    "json/encoder",
    "keyword",
    "linecache",
    "logging/__init__",
    "numbers",
    "operator",
    "optparse",
    "pickle",
    "platform",
    "pprint",
    "queue",
    "random",
    "reprlib",
    "sched",
    "shlex",
    "string",
    "tempfile",
    "textwrap",
]
OUTCOMES = ("proved", "unverified", "stubs", "refused")

COMPILE_FILES = """
import os, py_compile, sys
for path in sys.argv[2:]:
    name = path.replace(os.sep, ".").strip(".")
    try:
        py_compile.compile(path, cfile=os.path.join(sys.argv[1], name + "c"), dfile=path, doraise=True)
    except py_compile.PyCompileError:
        pass
"""
"""Leaves out what is no text of this Python."""

COMPILE = """
import os, py_compile, sys, sysconfig
library = sysconfig.get_paths()["stdlib"]
for name in sys.argv[2:]:
    path = os.path.join(library, name + ".py")
    if os.path.exists(path):
        target = os.path.join(sys.argv[1], name.replace("/", ".") + ".pyc")
        py_compile.compile(path, cfile=target, dfile=name + ".py", doraise=True)
"""


def main() -> None:
    arguments = _arguments()
    listed = subprocess.run([str(ROOT / ".ci/pythons")], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = dict(line.split(" ", 1) for line in listed.splitlines())
    pythons = {version: found[version] for version in VERSIONS if version in found}
    for version in filter(None, (arguments.from_, arguments.on)):
        if version not in pythons:
            raise SystemExit(f"CPython {version} is not on this machine (tools/check/debian_pythons.sh, or PYTHONS)")
    with tempfile.TemporaryDirectory() as folder:
        froms = [version for version in pythons if arguments.from_ in (None, version)]
        for version in froms:
            os.mkdir(os.path.join(folder, version))
            files = spread(arguments.packages, arguments.most) if arguments.packages else []
            program, names = (COMPILE_FILES, files) if files else (COMPILE, arguments.modules)
            subprocess.run([pythons[version], "-c", program, os.path.join(folder, version), *names], check=True)
        rows: Dict[Tuple[str, str], List[List[str]]] = {}
        for version in froms:
            for on in pythons:
                older = VERSIONS.index(on) < VERSIONS.index(version)
                if arguments.on in (None, on) and (arguments.exact or not older):
                    compiler = pythons[version] if arguments.exact and on != version else "none"
                    rows[version, on] = _judged(pythons[on], os.path.join(folder, version), arguments.jobs, compiler)
    for line in table(rows):
        print(line)
    for (version, on), results in rows.items() if arguments.reasons else ():
        for name, outcome, reason in results:
            if outcome != "proved":
                print(f"{version} on {on}: {name}: {outcome}: {reason}")


def table(rows: Dict[Tuple[str, str], List[List[str]]]) -> List[str]:
    """Return the lines of the table: a row for each Python that compiled, a column for each that decompiled."""
    columns = [version for version in VERSIONS if any(on == version for _, on in rows)]
    lines = ["| From | " + " | ".join(f"on {on}" for on in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for version in VERSIONS:
        if any(source == version for source, _ in rows):
            cells = [_cell(rows.get((version, on))) for on in columns]
            lines.append(f"| {version} | " + " | ".join(cells) + " |")
    return lines


def _cell(found: Optional[List[List[str]]]) -> str:
    if found is None:
        return ""
    outcomes = [outcome for _, outcome, _ in found]
    return " / ".join(str(outcomes.count(outcome)) for outcome in OUTCOMES)


def spread(folders: Sequence[str], most: int) -> List[str]:
    """Return ``most`` source files of each folder, evenly spread, without tests."""
    found: List[str] = []
    for folder in folders:
        paths = sorted(map(str, Path(folder).rglob("*.py")))
        paths = [path for path in paths if "test" not in path.replace(folder, "") and os.path.getsize(path) > 500]
        step = max(1, len(paths) // most)
        found += paths[step // 2 :: step][:most]
    return found


def _judged(python: str, folder: str, jobs: int, compiler: str) -> List[List[str]]:
    """Return (module, outcome, reason) for the files of ``folder``, decompiled by ``python`` in ``jobs`` processes.
    ``compiler``: the interpreter that compiles the text, or ``none``."""
    names = sorted(os.listdir(folder))
    started = []
    for part in (names[number::jobs] for number in range(jobs)):
        command = [python, __file__, "--judge", compiler, folder, *part]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment))
    rows: List[List[str]] = []
    for process in started:
        output, _ = process.communicate()
        if process.returncode:
            raise SystemExit(f"{python} failed with status {process.returncode}")
        rows += json.loads(output)
    return sorted(rows)


def judge(compiler: str, folder: str, names: Sequence[str]) -> List[List[str]]:
    """Decompile files; runs on the Python that is measured."""
    from depyf.decompiler import DecompilationError, decompile_pyc

    rows = []
    for name in names:
        try:
            answer = decompile_pyc(os.path.join(folder, name), python=compiler)
        except DecompilationError as error:
            rows.append([name, "refused", str(error)])
            continue
        outcome = "stubs" if answer.missing else "proved" if answer.verdict.code_proved else "unverified"
        rows.append([name, outcome, answer.reason])
    return rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="from_", metavar="VERSION")
    parser.add_argument("--on", metavar="VERSION")
    parser.add_argument("--modules", nargs="+", default=MODULES)
    parser.add_argument("--packages", nargs="+", metavar="FOLDER")
    parser.add_argument("--most", type=int, default=12, metavar="N")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--judge"]:
        print(json.dumps(judge(sys.argv[2], sys.argv[3], sys.argv[4:])))
    else:
        main()
