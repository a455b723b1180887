"""Run the torch tests on every pair of a Python and a PyTorch, one after the other.

Writes docs/compatibility.md and the table of the README.

    python tools/check/run_matrix.py [PAIR...] [--work DIR] [--keep] [--jobs N] [--list]
    python tools/check/run_matrix.py PAIR --venv DIR [--failed | --results FILE]

A pair is written ``3.12+2.9.1``; without any, all of ``PAIRS`` run. Each gets its own virtual environment below
``--work`` (3 to 5 GB), which is removed before the next one; ``--venv`` names an existing one. Pairs without a Python
are reported as such. The results of pairs that were not run stay in the page: they are stored in
docs/compatibility.json. ``--failed`` runs only the test files with failures in the last run, and new ones, and keeps
the results of the others. ``--results`` runs nothing: it reads the file that pytest has written (``--junitxml``) in a
run with that environment, such as that of ``make test``.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
DATA = ROOT / "docs" / "compatibility.json"
README = ROOT / "README.md"
SUPPORT = re.compile(r"(<!-- support: [^\n]*-->\n).*?(<!-- end of support -->)", re.DOTALL)

PAIRS = (
    "3.8+2.2.2",
    "3.9+2.4.1",
    "3.10+2.7.1",
    "3.11+2.13.0",
    "3.12+2.9.1",
    "3.12+2.11.0",
    "3.12+2.14.1",
    "3.12+2.15.0",
    "3.13+2.15.0",
    "3.14+2.15.0",
)
EXTRAS = ("dill", "pytest", "pytest-xdist", "hypothesis", "debugpy", "ipykernel", "jupyter_client", "jinja2", "rich")
TESTS = ("tests/dynamo", "tests/dropin")
SAY_VERSIONS = 'import platform, torch; print("CPython", platform.python_version(), "with torch", torch.__version__)'
TIMEOUT = 3 * 3600
NAMED = re.compile(r"(\w*(?:\[.*\])?): (.*)", re.DOTALL)
"""A test, possibly with its parameters, and its outcome."""


class Unavailable(Exception):
    """Raised when a pair could not be run; names the reason."""


def python_of(version: str) -> str:
    """Return the path of a Python on this machine."""
    found = subprocess.run([str(ROOT / ".ci/pythons"), version], capture_output=True, text=True, check=False)
    if found.returncode:
        raise Unavailable(found.stderr.strip())
    return found.stdout.strip()


def run(*command: str, log: Path) -> int:
    """Run ``command`` in the repository, with its output in ``log``; return the exit status."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/src"}
    with log.open("a") as file:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT, timeout=TIMEOUT, check=False
        )
    return done.returncode


def run_pair(pair: str, arguments: argparse.Namespace, before: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """Return the results of one pair; with ``before``, its last results, only failed and new tests are run."""
    tests = TESTS if before is None else tuple(files_to_repeat(before))
    folder: Path = arguments.venv or arguments.work / pair
    log: Path = arguments.work / f"{pair}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    try:
        if arguments.venv is None:
            shutil.rmtree(folder, ignore_errors=True)
            install(pair, folder, log)
        binary, results = f"{folder}/bin/python", arguments.results
        if results is None:
            results = folder / "results.xml"
            results.unlink(missing_ok=True)
            pytest = [binary, "-m", "pytest", "-n", str(arguments.jobs), "-q", f"--junitxml={results}"]
            run(*pytest, *tests, log=log)
        found = read_results(results)
        run(binary, "-c", SAY_VERSIONS, log=log)
        found["versions"] = log.read_text().strip().splitlines()[-1]
    finally:
        if not arguments.keep and arguments.venv is None:
            shutil.rmtree(folder, ignore_errors=True)
    if before is not None:
        found = {**found, **with_those_of(before, found)}
    found["date"] = datetime.date.today().isoformat()
    return found


def files_to_repeat(found: Dict[str, Any]) -> List[str]:
    """Return the test files with failures, and those without results."""
    areas = found.get("areas", {})
    files = sorted(path for folder in TESTS for path in (ROOT / folder).rglob("test_*.py"))
    return [
        str(path.relative_to(ROOT)) for path in files if path.stem not in areas or areas[path.stem].get("failed", 0) > 0
    ]


def with_those_of(before: Dict[str, Any], found: Dict[str, Any]) -> Dict[str, Any]:
    """Return the areas and reasons of both; for an area that has been run again, those of ``found``."""
    again = set(found["areas"])
    kept = {where: reported for where, reported in before["reasons"].items() if where.split(" ", 1)[1] not in again}
    return {"areas": {**before["areas"], **found["areas"]}, "reasons": {**kept, **found["reasons"]}}


def install(pair: str, folder: Path, log: Path) -> None:
    """Make a virtual environment in ``folder``, with torch and the packages that the tests need."""
    python, torch = pair.split("+")
    before_2_3 = tuple(map(int, torch.split(".")[:2])) < (2, 3)
    # Later versions of these two don't work with, or can't be compiled by, such a torch.
    fitting = ["numpy<2", "transformers<4.40"] if before_2_3 else ["numpy", "transformers"]
    if run(python_of(python), "-m", "venv", str(folder), log=log):
        raise Unavailable("no virtual environment could be made")
    pip = [f"{folder}/bin/python", "-m", "pip", "install", "-q", f"torch=={torch}", *fitting, *EXTRAS]
    if run(*pip, log=log):
        raise Unavailable(f"pip can't install torch {torch} for CPython {python} (see {log})")


def read_results(path: Path) -> Dict[str, Any]:
    """Return counts and reasons by test file from pytest's report."""
    if not path.exists():
        raise Unavailable("pytest wrote no report")
    areas: Dict[str, Counter[str]] = {}
    reasons: Dict[str, List[str]] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        where = case.get("classname") or case.get("name", "")  # a file that is skipped as a whole has only a name
        if not where.startswith(tuple(folder.replace("/", ".") for folder in TESTS)):
            continue
        area = where.split(".")[-1]
        outcome, reason = "passed", None
        for kind, name in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
            node = case.find(kind)
            if node is not None:
                outcome = name
                reason = f"{case.get('name')}: {(node.get('message') or '').splitlines()[0][:200]}"
        areas.setdefault(area, Counter())[outcome] += 1
        if reason is not None:
            reasons.setdefault(f"{outcome} {area}", []).append(reason)
    return {"areas": {area: dict(counts) for area, counts in areas.items()}, "reasons": reasons}


def cell(found: Dict[str, Any], area: str) -> str:
    if "unavailable" in found:
        return "-"
    counts = found["areas"].get(area)
    if counts is None:
        return "not collected"
    text = f"{counts.get('passed', 0)}"
    if counts.get("failed"):
        text = f"**{counts['failed']} failed**, {text}"
    return text + (f" ({counts['skipped']} skipped)" if counts.get("skipped") else "")


def subject(area: str) -> str:
    """Return the subject of the tests of ``area``: the first sentence of their file."""
    for folder in TESTS:
        for path in (ROOT / folder).rglob(f"{area}.py"):
            summary = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or area).split())
            return re.split(r"[.;] |[.]$", summary)[0].replace("``", "`").replace("|", "/")
    return area


def page(data: Dict[str, Dict[str, Any]]) -> str:
    """Return the text of docs/compatibility.md."""
    pairs = [pair for pair in PAIRS if pair in data] + sorted(set(data) - set(PAIRS))
    areas = {area for pair in pairs for area in data[pair].get("areas", {})}
    lines = [
        "# Which Pythons with which PyTorch",
        "",
        "Written by `make matrix` (`tools/check/run_matrix.py`); don't edit. Cells count the tests that passed.",
        "Below the table stands why the others did not: what that PyTorch can't give, or what is still wrong.",
        "No machine with a GPU was used; what was tried on one is in [systems](systems.md#gpus).",
        "",
        "| | " + " | ".join(pairs) + " |",
        "|---|" + "---|" * len(pairs),
    ]
    for area in sorted(areas, key=lambda area: (area != "test_pair", area)):
        lines.append(f"| {subject(area)} (`{area}`) | " + " | ".join(cell(data[pair], area) for pair in pairs) + " |")
    lines += ["", "## Each pair", ""]
    for pair in pairs:
        found = data[pair]
        if "unavailable" in found:
            lines.append(f"- **{pair}** ({found['date']}): not run. {found['unavailable']}.")
            continue
        lines.append(f"- **{pair}**: {found['versions']}, run on {found['date']}.")
        lines += reasons_reported(found["reasons"])
    return "\n".join(lines) + "\n"


def support(data: Dict[str, Dict[str, Any]]) -> str:
    """Return the table of the README: each pair with its last results."""
    lines = ["| CPython | PyTorch | Tests that passed | skipped | failed | last run |", "|---|---|---:|---:|---:|---|"]
    for pair in [pair for pair in PAIRS if pair in data] + sorted(set(data) - set(PAIRS)):
        found, (python, torch) = data[pair], pair.split("+")
        counts = Counter()  # type: Counter[str]
        for area in found.get("areas", {}).values():
            counts.update(area)
        numbers = [f"{counts[outcome]:,}" for outcome in ("passed", "skipped", "failed")]
        cells = ["-", "-", "-"] if "unavailable" in found else numbers
        lines.append("| " + " | ".join([python, torch, *cells, found["date"]]) + " |")
    return "\n".join(lines) + "\n"


def with_support(readme: str, data: Dict[str, Dict[str, Any]]) -> str:
    """Return the README with the table of ``data``."""
    return SUPPORT.sub(lambda match: f"{match[1]}\n{support(data)}\n{match[2]}", readme)


def reasons_reported(reasons: Dict[str, List[str]]) -> Iterator[str]:
    """Yield each failure by its name; each reason for skipping with the number of tests and the files."""
    skipped: Dict[str, Counter[str]] = {}
    for where, reported in sorted(reasons.items()):
        outcome, area = where.split(" ", 1)
        for each in reported:
            match = NAMED.fullmatch(each)
            name, reason = match.groups() if match is not None else ("", each)
            if outcome == "skipped":
                skipped.setdefault(reason, Counter())[area] += 1
            else:
                yield f"  - **failed**: `{area}`, `{name}`: `{reason.replace('`', chr(39))}`"
    for reason, areas in sorted(skipped.items()):
        yield f"  - skipped: {reason} (" + ", ".join(f"{count} in `{area}`" for area, count in areas.items()) + ")"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", metavar="PAIR")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "depyf_matrix")
    parser.add_argument("--keep", action="store_true", help="leave the virtual environments")
    parser.add_argument("--venv", type=Path, help="run the one pair in this virtual environment, and leave it there")
    parser.add_argument("--jobs", type=int, default=2, help="tests at the same time (default: 2)")
    parser.add_argument("--failed", action="store_true", help="run only files that failed or are new")
    parser.add_argument("--results", type=Path, metavar="FILE", help="run nothing, take what pytest wrote")
    parser.add_argument("--list", action="store_true", help="print the pairs and stop")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(PAIRS))
        return 0
    if arguments.results is not None and arguments.venv is None:
        parser.error("--results goes with the --venv that it comes from")
    if arguments.venv is not None and len(arguments.pairs) != 1:
        parser.error("--venv goes with one pair")
    failed = 0
    for pair in arguments.pairs or PAIRS:
        print(f"{pair} ...", flush=True)
        data = json.loads(DATA.read_text()) if DATA.exists() else {}
        try:
            before = data.get(pair) if arguments.failed else None
            if before is not None and not files_to_repeat(before):
                print(f"{pair}: nothing failed the last time")
                continue
            data[pair] = run_pair(pair, arguments, before)
        except Unavailable as error:
            data[pair] = {"unavailable": str(error), "date": datetime.date.today().isoformat()}
            print(f"{pair}: {error}")
        counts = Counter()  # type: Counter[str]
        for area in data[pair].get("areas", {}).values():
            counts.update(area)
        failed += counts["failed"]
        print(f"{pair}: " + (", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "not run"))
        DATA.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")
        PAGE.write_text(page(data))
        README.write_text(with_support(README.read_text(encoding="utf-8"), data), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
