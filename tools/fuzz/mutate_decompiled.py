"""Mutation test of the verifier: a decompiled source with one change of meaning must not be proved.

    python tools/fuzz/mutate_decompiled.py                      # 5,000 mutants of functions of the standard library
    python tools/fuzz/mutate_decompiled.py json -n 300 -j 2     # of one module
    python tools/fuzz/mutate_decompiled.py --mutators swap_operands,drop_statement
    python tools/fuzz/mutate_decompiled.py --reached            # only in code that runs

Code objects from other projects are decompiled, their sources changed in one place (``tests/support/mutators``),
compiled as in the pipeline, and compared with the original. A change that leaves the bytecode the same does not count
as a mutant. Prints a table and every survivor; the exit status is 1 if there is one.

A change in unreachable code (after ``while True``, in a handler of code that can't raise) has no effect, and the
verifier may prove that. ``--reached`` takes modules that CPython has tests for (``REACHED``, or those that are named,
with ``test.test_NAME``), runs their tests first (``tools/others_tests/record_lines.py``), and changes only code from
lines that ran.
"""

from __future__ import annotations

import argparse
import json
import marshal
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from mutation import Fate, Mutant, Subject, Wanted, plan
from mutators import MUTATORS

from depyf.sweep.targets import find_files, read_module, targets_of

MODULES = (
    "_collections_abc", "_pydecimal", "abc", "argparse", "ast", "asyncio.base_events", "asyncio.locks",
    "asyncio.queues", "asyncio.runners", "asyncio.staggered", "asyncio.streams", "asyncio.subprocess",
    "asyncio.taskgroups", "asyncio.tasks", "asyncio.timeouts", "bdb", "bisect", "calendar", "cmd", "code", "codecs",
    "collections", "concurrent.futures", "configparser", "contextlib", "contextvars", "copy", "csv", "ctypes.util",
    "dataclasses", "datetime", "dbm.dumb", "difflib", "dis", "doctest", "email._header_value_parser", "email.message",
    "email.generator", "enum", "fileinput", "fractions", "ftplib", "functools", "getopt", "gettext", "glob", "gzip",
    "heapq", "html.parser", "http.client", "http.cookiejar", "http.server", "imaplib", "importlib._bootstrap",
    "importlib.metadata", "inspect", "ipaddress", "json", "linecache", "locale", "logging", "mailbox", "mimetypes",
    "multiprocessing.pool", "ntpath", "numbers", "optparse", "os", "pathlib", "pdb", "pickle", "pickletools",
    "platform", "plistlib", "poplib", "pprint", "profile", "pydoc", "queue", "quopri", "random", "re", "reprlib",
    "sched", "selectors", "shelve", "shlex", "shutil", "smtplib", "socket", "socketserver", "sqlite3.dump", "ssl",
    "statistics", "string", "subprocess", "symtable", "sysconfig", "tarfile", "tempfile", "textwrap", "threading",
    "timeit", "tokenize", "trace", "traceback", "types", "typing", "unittest.async_case", "unittest.mock", "urllib",
    "uuid", "warnings", "wave", "weakref", "webbrowser", "wsgiref", "xml.dom.minidom", "xml.etree.ElementTree",
    "xmlrpc.client", "zipfile",
)  # fmt: skip
"""Modules of common code that use most of the language."""

TESTS = (
    "test.test_asyncgen", "test.test_augassign", "test.test_class", "test.test_compile", "test.test_contextlib_async",
    "test.test_coroutines", "test.test_decorators", "test.test_descr", "test.test_dictcomps", "test.test_except_star",
    "test.test_exceptions", "test.test_extcall", "test.test_fstring", "test.test_generators", "test.test_genexps",
    "test.test_grammar", "test.test_keywordonlyarg", "test.test_listcomps", "test.test_named_expressions",
    "test.test_opcodes", "test.test_patma", "test.test_positional_only_arg", "test.test_raise", "test.test_scope",
    "test.test_setcomps", "test.test_syntax", "test.test_sys_settrace", "test.test_type_params", "test.test_unpack_ex",
    "test.test_with", "test.test_yield_from",
)  # fmt: skip
"""CPython's own tests of features that are rare in the others: ``except*``, ``match``, async comprehensions ..."""

REACHED = (
    "argparse", "ast", "base64", "bisect", "calendar", "cmd", "codecs", "colorsys", "configparser", "contextlib",
    "copy", "csv", "dataclasses", "difflib", "enum", "fnmatch", "fractions", "functools", "gettext", "glob",
    "graphlib", "heapq", "inspect", "ipaddress", "json", "linecache", "locale", "mimetypes", "ntpath", "optparse",
    "pathlib", "pickletools", "plistlib", "posixpath", "pprint", "quopri", "random", "reprlib", "sched", "shelve",
    "shlex", "shutil", "statistics", "string", "symtable", "tempfile", "textwrap", "tokenize", "traceback", "types",
    "typing", "uuid", "weakref",
)  # fmt: skip
"""Modules whose tests (``test.test_NAME``) are short, also while every line is recorded."""

LARGEST = 1500
"""The limit on instructions of a code object with its nested ones; larger ones would take most of the time."""


class Object(NamedTuple):
    """A code object as it is sent to another process, and its origin."""

    label: str
    marshalled: bytes
    reached: Optional[FrozenSet[int]]

    def prepared(self) -> Optional[Subject]:
        return Subject.prepare(self.label, marshal.loads(self.marshalled), self.reached)


class File(NamedTuple):
    """A source file to take code objects from; ``reached``: its lines that have run, if only these are used."""

    module: str
    path: str
    largest: int
    reached: Optional[FrozenSet[int]]


def _objects(file: File) -> List[Object]:
    label = f"{file.module}/{os.path.basename(file.path)}"
    return [
        Object(f"{label}:{target.line} {target.qualname}", marshal.dumps(target.code), file.reached)
        for target in targets_of(read_module(file.path), file.path)
        if target.size <= file.largest
    ]


def _sites(found: Object) -> Dict[str, Sequence[int]]:
    subject = found.prepared()
    return {} if subject is None else subject.sites()


def _mutants(job: Tuple[Object, List[Wanted]]) -> List[Mutant]:
    found, wanted = job
    subject = found.prepared()
    assert subject is not None, f"{found.label} was proved a moment ago"
    return [subject.mutant(each.mutator, each.number) for each in wanted]


def files_of(modules: List[str]) -> Iterator[Tuple[str, str]]:
    for module in modules:
        try:
            yield from ((module, path) for path in find_files([module]))
        except FileNotFoundError as error:  # Pythons differ in their modules, and some modules have no tests
            print(f"left out: {error}", file=sys.stderr)


def lines_reached(modules: List[str]) -> Dict[str, FrozenSet[int]]:
    """Run the tests of ``modules`` in a process of its own; return the lines of their files that ran, by path."""
    recorder = Path(__file__).resolve().parents[1] / "others_tests" / "record_lines.py"
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "lines.json")
        subprocess.run([sys.executable, str(recorder), output, *modules], check=True, stdout=subprocess.DEVNULL)
        found = json.loads(Path(output).read_text())
    return {path: frozenset(lines) for path, lines in found.items()}


def run(options: argparse.Namespace, processes: Any) -> List[Mutant]:
    """Return the mutants, the same ones in the same order whatever the number of processes."""
    modules = options.modules or [*(REACHED if options.reached else (*MODULES, *TESTS))]
    lines = lines_reached(modules) if options.reached else None
    files = [
        File(module, path, options.largest, None if lines is None else lines.get(path, frozenset()))
        for module, path in files_of(modules)
    ]
    objects = [found for file in processes.imap(_objects, files) for found in file]
    chooser = random.Random(options.seed)
    chosen = sorted(chooser.sample(range(len(objects)), min(options.objects, len(objects))))
    objects = [objects[number] for number in chosen]
    numbers = dict(enumerate(processes.imap(_sites, objects, chunksize=8)))
    # Some changes are compiled away: more are planned, so that the requested number is left.
    planned = plan(numbers, options.n + options.n // 10, options.seed)
    jobs = [(objects[number], wanted) for number, wanted in planned.items()]
    return [mutant for mutants in processes.imap(_mutants, jobs, chunksize=8) for mutant in mutants]


def table(mutants: List[Mutant]) -> Iterator[str]:
    counts = Counter((mutant.mutator, mutant.fate) for mutant in mutants)
    yield f"{'mutator':30} {'mutants':>8} {'different':>10} {'unverified':>11} {'refused':>8} {'survivors':>10}"
    fates = (Fate.DIFFERENT, Fate.UNVERIFIED, Fate.REFUSED, Fate.SURVIVED)
    names = [*MUTATORS, "all"]
    for fate in Fate:
        counts["all", fate] = sum(counts[name, fate] for name in MUTATORS)
    for name in names:
        numbers = [counts[name, fate] for fate in fates]
        if sum(numbers):
            yield f"{name:30} {sum(numbers):8} {numbers[0]:10} {numbers[1]:11} {numbers[2]:8} {numbers[3]:10}"
    same, invalid = counts["all", Fate.SAME_BYTECODE], counts["all", Fate.NO_PROGRAM]
    objects = len({mutant.label for mutant in mutants})
    yield f"{objects} code objects; no mutants: {same} changes that leave the bytecode as it is, {invalid} not compiled"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="modules, packages, files (default: a wide sample)")
    parser.add_argument("-n", type=int, default=5000, metavar="MUTANTS", help="how many, about (5000)")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, metavar="PROCESSES")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--objects", type=int, default=2500, help="code objects to choose from (2500)")
    parser.add_argument("--reached", action="store_true", help="change only what runs when a module's tests do")
    parser.add_argument("--mutators", default="", help="only these, with commas between them")
    parser.add_argument("--largest", type=int, default=LARGEST, metavar="INSTRUCTIONS")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    started = time.monotonic()
    if options.mutators:
        wanted = options.mutators.split(",")
        unknown = sorted(set(wanted) - set(MUTATORS))
        if unknown:
            print(f"no such mutators: {', '.join(unknown)}", file=sys.stderr)
            return 2
        for name in set(MUTATORS) - set(wanted):
            del MUTATORS[name]
    with multiprocessing.Pool(options.j) as processes:
        mutants = run(options, processes)
    made = sum(mutant.fate.is_mutant for mutant in mutants)
    print("\n".join(table(mutants)))
    survivors = [mutant for mutant in mutants if mutant.fate is Fate.SURVIVED]
    for mutant in survivors:
        print(f"\nSURVIVED: {mutant.mutator} {mutant.number} in {mutant.label}")
        print("\n".join(mutant.difference))
    print(f"{made} mutants, {len(survivors)} survivors, {time.monotonic() - started:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
