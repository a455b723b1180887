"""Run a module's own tests on its decompiled form: an independent check that shares nothing with the verifier.

    python tools/others_tests/run_decompiled_module.py textwrap                     # test.test_textwrap, the doctests
    python tools/others_tests/run_decompiled_module.py json --test test.test_json   # a package with all its modules
    python tools/others_tests/run_decompiled_module.py heapq --form functions       # only functions, one by one
    python tools/others_tests/run_decompiled_module.py bisect --decompile-tests     # the test module is decompiled, too

The tests run twice, each time in a fresh interpreter: with the originals, and with the decompiled files first on the
path (``decompiled_copies.py`` writes them). Every test must end the same way; where one does not, both run once more,
and a test that ends differently with the originals themselves is counted as unsteady, not as a difference. Exit status
0 when nothing differs, else 1. ``run_others_tests.py`` does this for many modules and makes a table of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from decompiled_copies import FORMS, Copied, copy_modules

Outcomes = Dict[str, str]

RECORDER = Path(__file__).resolve().parent / "record_outcomes.py"


@dataclass
class Report:
    """The tests of one module or package, run on the originals and on the decompiled form."""

    name: str
    copies: List[Copied] = field(default_factory=list)
    before: Dict[str, int] = field(default_factory=dict)
    after: Dict[str, int] = field(default_factory=dict)
    unsteady: int = 0
    differences: List[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def objects(self) -> int:
        return sum(copy.objects for copy in self.copies)

    @property
    def proved(self) -> int:
        return sum(copy.proved for copy in self.copies)


def kind(outcome: Optional[str]) -> str:
    """Return ``passed``, ``failed``, ``error``, ``skipped``, ... without the message."""
    return "not run" if outcome is None else outcome.split(":")[0]


def counted(outcomes: Mapping[str, str]) -> Dict[str, int]:
    kinds = [kind(outcome) for outcome in outcomes.values()]
    return {each: kinds.count(each) for each in sorted(set(kinds))}


def compare_runs(report: Report, run: Callable[[bool], Outcomes]) -> None:
    """Fill in the results of the tests; ``run`` runs them all, on the decompiled form or else on the originals."""
    before, after = run(False), run(True)
    differing = _differing(before, after)
    if differing:
        again, after_again = run(False), run(True)
        steady = {name for name in differing if kind(before.get(name)) == kind(again.get(name))}
        report.unsteady = len(differing) - len(steady)
        differing = [name for name in differing if name in steady and name in _differing(again, after_again)]
        report.unsteady += len(steady) - len(differing)
    report.before, report.after = counted(before), counted(after)
    report.differences += [
        f"{name}: {before.get(name, 'not run')} before, {after.get(name, 'not run')} after" for name in differing
    ]
    if not report.before.get("passed"):
        report.differences.append("no test passes with the originals")
    if not report.proved:
        report.differences.append("nothing was decompiled and proved")


def _differing(before: Outcomes, after: Outcomes) -> List[str]:
    return [name for name in sorted({*before, *after}) if kind(before.get(name)) != kind(after.get(name))]


def run_command(command: Sequence[str], folder: Path, path: Sequence[Path], timeout: float) -> str:
    """Run a Python in ``folder`` with ``path`` first on its path; return its output. Ends all processes that it
    started. Raises ``RuntimeError`` when it takes longer than ``timeout`` seconds."""
    (folder / "tmp").mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONHASHSEED": "0", "TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.STDOUT, errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"not done after {timeout:.0f} seconds: {' '.join(command)}") from error
    finally:
        with contextlib.suppress(ProcessLookupError):  # all of its processes have ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return output


def unit_tests(module: str, tests: Sequence[str], folder: Path, copies: Path, timeout: float, after: bool) -> Outcomes:
    """Run them in a fresh interpreter, with the files of ``copies`` instead of the originals if ``after``."""
    file = folder / "outcomes.json"
    if file.exists():
        file.unlink()
    # Modules that the interpreter itself starts with are frozen into it. Before 3.11 the option has no effect.
    command = [sys.executable, "-X", "frozen_modules=off", str(RECORDER), str(file), str(copies) if after else "-"]
    output = run_command([*command, module, *tests], folder, [copies] if after else [], timeout)
    if not file.exists():
        raise RuntimeError(output[-3000:])
    outcomes: Outcomes = json.loads(file.read_text())
    return outcomes


def check_module(
    module: str, tests: Sequence[str], form: str = "source", also: Sequence[str] = (), timeout: float = 600.0
) -> Report:
    """Decompile ``module`` and ``also``, run ``tests`` and the doctests both ways."""
    start = time.perf_counter()
    report = Report(module)
    with tempfile.TemporaryDirectory(prefix="decompiled_") as place:
        folder, copies = Path(place) / "run", Path(place) / "copies"
        folder.mkdir()
        copies.mkdir()
        report.copies = copy_modules([module, *also], copies, form)
        try:
            compare_runs(report, lambda after: unit_tests(module, tests, folder, copies, timeout, after))
        except RuntimeError as error:
            report.differences.append(str(error))
    report.seconds = time.perf_counter() - start
    return report


def described(report: Report) -> str:
    """Return one line on what was decompiled and how the tests went."""
    by_form = {form: [copy for copy in report.copies if copy.form == form] for form in FORMS}
    parts = [f"{len(by_form['source'])} modules decompiled"] if by_form["source"] else []
    if by_form["functions"]:
        replaced = sum(copy.proved for copy in by_form["functions"])
        kept = sum(copy.objects for copy in by_form["functions"]) - replaced
        parts.append(f"{replaced} functions decompiled" + (f" ({kept} kept as they were)" if kept else ""))
    parts.append(", ".join(f"{count} {each}" for each, count in report.after.items()))
    if report.unsteady:
        parts.append(f"{report.unsteady} unsteady")
    return f"{report.name}: {'; '.join(parts)}; {len(report.differences)} differ"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--test", action="append", default=[], help="a test module (test.test_MODULE)")
    parser.add_argument("--no-test", action="store_true", help="doctests only")
    parser.add_argument("--form", choices=FORMS, default="source")
    parser.add_argument("--decompile-tests", action="store_true", help="decompile the test modules, too")
    parser.add_argument("--also", action="append", default=[], help="decompile this module, too")
    parser.add_argument("--timeout", type=float, default=600.0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was found there")
    options = parser.parse_args()
    tests = options.test or [f"test.test_{options.module.replace('.', '_')}"]
    if options.no_test:
        tests = []
    also = [*options.also, *(tests if options.decompile_tests else [])]
    report = check_module(options.module, tests, options.form, also, options.timeout)
    print(described(report))
    for copy in report.copies:
        if copy.reason:
            print(f"  {copy.file}: {copy.proved} of {copy.objects} proved: {copy.reason}")
    for line in report.differences:
        print(" ", line)
    if options.json:
        options.json.write_text(json.dumps(asdict(report)))
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
