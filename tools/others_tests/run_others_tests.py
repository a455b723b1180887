"""Run other projects' tests on decompiled code, and print a table.

The tests are those of CPython for standard library modules, and those of third-party packages.

    python tools/others_tests/run_others_tests.py                            # all of them (make others)
    python tools/others_tests/run_others_tests.py json attrs textwrap -j 2
    python tools/others_tests/run_others_tests.py --python ~/3.12/bin/python --stdlib
    python tools/others_tests/run_others_tests.py --list

Each module is compiled, decompiled from its code object, and written to a folder that goes first on the path; then its
tests run with the originals and with that folder, in separate interpreters. ``proved`` is the share of the code objects
(without comprehensions) that the verifier proved: the tests do not depend on it. Exit status 0 when every test ends the
same way on both. The third-party packages are fetched with pip, into build/others.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from decompiled_copies import FORMS, Copied
from run_decompiled_module import Report, check_module
from third_party import CACHE, PACKAGES, check_package


@dataclass(frozen=True)
class Module:
    """A standard library module or package, the modules that go with it, and the tests (``test.test_NAME``)."""

    name: str
    tests: Tuple[str, ...] = ()
    also: Tuple[str, ...] = ()


def _m(name: str, *tests: str, also: Sequence[str] = ()) -> Module:
    return Module(name, tuple(tests) or (f"test_{name.replace('.', '_')}",), tuple(also))


# What some Pythons lack (a module written in C there, a test under another name) is omitted there.
STDLIB = {
    module.name: module
    for module in [
        _m("abc", also=["_py_abc"]),
        _m("argparse"),
        _m("ast", "test_ast", "test_unparse"),
        _m("asyncio", *(f"test_asyncio.test_{name}" for name in ("locks", "queues", "futures", "streams", "timeouts"))),
        _m("base64"),
        _m("bisect"),
        _m("calendar"),
        _m("cmd"),
        _m("codecs"),
        _m("collections", also=["_collections_abc"]),
        _m("colorsys"),
        _m("configparser"),
        _m("contextlib", "test_contextlib", "test_contextlib_async"),
        _m("copy"),
        _m("csv"),
        _m("dataclasses"),
        _m("datetime", also=["_pydatetime"]),
        _m("decimal", also=["_pydecimal"]),
        _m("difflib"),
        _m("dis"),
        _m("email", "test_email"),
        _m("enum"),
        _m("fnmatch"),
        _m("fractions"),
        _m("functools"),
        _m("gettext"),
        _m("glob"),
        _m("graphlib"),
        _m("heapq"),
        _m("html", "test_html", "test_htmlparser"),
        _m("http.cookies"),
        _m("inspect"),
        _m("ipaddress"),
        _m("json"),
        _m("logging"),
        _m("operator"),
        _m("optparse"),
        _m("pathlib"),
        _m("pickle", "test_pickle"),
        _m("pickletools"),
        _m("plistlib"),
        _m("pprint"),
        _m("queue"),
        _m("random"),
        _m("reprlib"),
        _m("sched"),
        _m("shlex"),
        _m("shutil"),
        _m("statistics"),
        _m("string"),
        _m("tarfile"),
        _m("tempfile"),
        _m("textwrap"),
        _m("threading"),
        _m("tokenize"),
        _m("traceback"),
        _m("types"),
        _m("typing"),
        _m("unittest", "test_unittest"),
        _m("urllib.parse", "test_urlparse"),
        _m("uuid"),
        _m("weakref", also=["_weakrefset"]),
        _m("xml.etree", "test_xml_etree"),
        _m("zipfile"),
    ]
}


def exists(module: str) -> bool:
    """Return whether this Python has it, written in Python."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return False
    return spec is not None and spec.origin is not None and spec.origin.endswith(".py")


def check(name: str, form: str, timeout: float, cache: Path) -> Report:
    """Return the report of one name, a module's or a package's."""
    if name in PACKAGES:
        return check_package(PACKAGES[name], form, timeout, cache)
    module = STDLIB.get(name, _m(name))
    tests = [f"test.{test}" for test in module.tests if exists(f"test.{test}")]
    if not tests:
        return Report(name, differences=[f"this Python has no {' or '.join(module.tests)}"])
    return check_module(module.name, tests, form, [also for also in module.also if exists(also)], timeout)


def check_apart(name: str, options: argparse.Namespace) -> Report:
    """Run ``check`` in a separate process, so that decompiling a module does not affect the next."""
    command = [sys.executable, __file__, name, "--child", "--form", options.form, "--timeout", str(options.timeout)]
    done = subprocess.run([*command, "--cache", str(options.cache)], capture_output=True, text=True, check=False)
    if done.returncode:
        return Report(name, differences=[f"the check itself failed: {done.stderr[-2000:]}"])
    facts: Dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    facts["copies"] = [Copied(**copy) for copy in facts["copies"]]
    return Report(**facts)


HEADER = f"{'':<22}{'files':>6}{'objects':>9}{'proved':>8}  {'tests':>6}{'passed':>16}{'not passed':>13}{'skipped':>12}"


def row(report: Report) -> str:
    """Return the numbers before and after, for counts of the tests of the originals and of the decompiled form."""

    def both(*kinds: str) -> str:
        pair = [sum(counts.get(each, 0) for each in kinds) for counts in (report.before, report.after)]
        return f"{pair[0]} -> {pair[1]}"

    share = f"{100 * report.proved / report.objects:.1f}%" if report.objects else "-"
    verdict = f"{len(report.differences)} differ" if report.differences else "same"
    kept = sum(1 for copy in report.copies if copy.form == "functions")
    remarks = [f"{kept} files function by function"] if kept else []
    remarks += [f"{report.unsteady} unsteady"] if report.unsteady else []
    return (
        f"{report.name:<22}{len(report.copies):>6}{report.objects:>9}{share:>8}  {sum(report.before.values()):>6}"
        f"{both('passed'):>16}{both('failed', 'error', 'failure', 'expected failure', 'unexpected success'):>13}"
        f"{both('skipped'):>12}  {verdict}, {report.seconds:.0f} s{''.join(', ' + remark for remark in remarks)}"
    )


def details(report: Report) -> Iterator[str]:
    for copy in report.copies:
        if copy.reason:
            yield f"    {copy.file}: {copy.proved} of {copy.objects} proved: {copy.reason}"
    yield from (f"    {difference}" for difference in report.differences)


def run(names: List[str], options: argparse.Namespace) -> List[Report]:
    """Print the table, a row at a time."""
    print(f"CPython {platform.python_version()}; before -> after: with the originals -> with decompiled code")
    print(HEADER)
    reports: List[Report] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for report in pool.map(lambda name: check_apart(name, options), names):
            reports.append(report)
            print(row(report), flush=True)
            for line in details(report):
                print(line, flush=True)
    return reports


def totals(reports: Sequence[Report], seconds: float) -> str:
    tests = sum(sum(report.before.values()) for report in reports)
    same = sum(not report.differences for report in reports)
    objects, proved = sum(report.objects for report in reports), sum(report.proved for report in reports)
    share = f" ({100 * proved / objects:.2f}%)" if objects else ""
    return (
        f"{same} of {len(reports)} pass and fail as the originals do; {tests} tests; {proved} of {objects} code objects"
        f"{share} proved; {seconds:.0f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="modules and packages (default: all of --list)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--stdlib", action="store_true", help="without the third-party packages")
    parser.add_argument("--python", type=Path, help="the Python whose bytecode, library and tests are used (this one)")
    parser.add_argument("--form", choices=FORMS, default="source")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one run of one module's tests")
    parser.add_argument("--cache", type=Path, default=CACHE, help="for what is fetched (build/others)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was found there")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.python is not None:
        return _with_other_python(options.python)
    if options.child:
        print(json.dumps(asdict(check(options.names[0], options.form, options.timeout, options.cache))))
        return 0
    available = [
        module.name
        for module in STDLIB.values()
        if exists(module.name) and any(exists(f"test.{test}") for test in module.tests)
    ]
    names = options.names or [*available, *([] if options.stdlib else PACKAGES)]
    if options.list:
        print("\n".join(names))
        return 0
    start = time.perf_counter()
    reports = run(names, options)
    print(totals(reports, time.perf_counter() - start))
    if options.json:
        options.json.write_text(json.dumps([asdict(report) for report in reports], indent=1))
    return 1 if any(report.differences for report in reports) else 0


def _with_other_python(python: Path) -> int:
    """Run the same command with ``python`` (which needs nothing installed)."""
    arguments: List[str] = []
    skip = False
    for argument in sys.argv[1:]:
        if not skip and argument != "--python" and not argument.startswith("--python="):
            arguments.append(argument)
        skip = argument == "--python"
    path = [str(Path(__file__).resolve().parents[2] / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.call([str(python), __file__, *arguments], env={**os.environ, "PYTHONPATH": os.pathsep.join(path)})


if __name__ == "__main__":
    sys.exit(main())
