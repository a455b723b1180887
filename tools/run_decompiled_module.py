"""Run a module's own tests on its decompiled form: an independent check that shares nothing with the verifier.

    python tools/run_decompiled_module.py textwrap                       # test.test_textwrap and the doctests
    python tools/run_decompiled_module.py json --test test.test_json     # a package with all its modules
    python tools/run_decompiled_module.py heapq --form functions         # only functions, one by one
    python tools/run_decompiled_module.py bisect --decompile-tests       # the test module is decompiled, too

The tests run twice, each time in a fresh interpreter: with the originals, and with an import hook that decompiles what
is imported under the module's name. Every test must end the same way. Exit status 0 when it does, else 1.

Two forms: ``source`` decompiles the whole module and runs that text; ``functions`` keeps the module's and the classes'
own code and puts the compiled form of each decompiled function in its place (a refused one stays as it was).
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib
import importlib.machinery
import inspect
import io
import json
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from depyf.decompiler import decompile_code
from depyf.result import DecompilationError

Outcomes = Dict[str, str]


class DecompilingLoader(importlib.machinery.SourceFileLoader):
    """Loads a module as usual, but from code that was decompiled. ``counts`` collects how many code objects were."""

    def __init__(self, fullname: str, path: str, form: str, counts: Dict[str, int]) -> None:
        super().__init__(fullname, path)
        self._form = form
        self._counts = counts

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            original = compile(self.get_data(path), path, "exec", dont_inherit=True)
        if self._form == "functions":
            return self._with_functions_replaced(original)
        answer = decompile_code(original)
        if not answer.verdict.proved:
            raise DecompilationError(f"{fullname}: {answer.verdict.value}: {answer.reason}")
        self._counts["decompiled"] += 1
        return compile(answer.source, path, "exec", dont_inherit=True)

    def _with_functions_replaced(self, code: types.CodeType) -> types.CodeType:
        """``code`` itself, with every function in it replaced as far inwards as it takes to find one not refused."""
        constants = tuple(
            self._replaced(constant) if isinstance(constant, types.CodeType) else constant
            for constant in code.co_consts
        )
        return code.replace(co_consts=constants)

    def _replaced(self, code: types.CodeType) -> types.CodeType:
        if code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<"):
            try:
                answer = decompile_code(code)
                if answer.verdict.proved:
                    self._counts["decompiled"] += 1
                    return answer.compile_like(code, code.co_filename)
            except DecompilationError:
                pass  # counted below; what is inside it may still be decompiled
            self._counts["kept"] += 1
        return self._with_functions_replaced(code)


class DecompilingFinder(importlib.machinery.PathFinder):
    """Finds the modules whose names are, or are below, one of ``names``."""

    names: Tuple[str, ...] = ()
    form = "source"
    counts: Dict[str, int] = {"decompiled": 0, "kept": 0}  # noqa: RUF012  one import hook a process, set once

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> Optional[importlib.machinery.ModuleSpec]:
        if not any(fullname == name or fullname.startswith(name + ".") for name in cls.names):
            return None
        spec = super().find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader) and spec.origin:
            spec.loader = DecompilingLoader(fullname, spec.origin, cls.form, cls.counts)
            spec.cached = None
        return spec


def install_hook(names: Sequence[str], form: str) -> None:
    """From now on ``names`` are imported decompiled; those that are imported already are forgotten."""
    DecompilingFinder.names = tuple(names)
    DecompilingFinder.form = form
    sys.meta_path.insert(0, DecompilingFinder)
    for loaded in list(sys.modules):
        if any(loaded == name or loaded.startswith(name + ".") for name in names):
            del sys.modules[loaded]
    importlib.invalidate_caches()


class _Recorder(unittest.TestResult):
    """The outcome of every test by its id."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: Outcomes = {}

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.outcomes.setdefault(test.id(), "passed")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.outcomes[test.id()] = f"failed: {err[0].__name__}: {err[1]}"[:500]

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self.outcomes[test.id()] = f"error: {err[0].__name__}: {err[1]}"[:500]

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.outcomes[test.id()] = "skipped"

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.outcomes[test.id()] = "expected failure"

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self.outcomes[test.id()] = "unexpected success"

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self.outcomes[subtest.id()] = f"failed: {err[0].__name__}: {err[1]}"[:500]


def run_tests(module: str, test: Optional[str]) -> Outcomes:
    """Run the doctests of ``module`` and the unit tests of ``test`` in this process."""
    recorder = _Recorder()
    suite = unittest.TestSuite()
    imported = importlib.import_module(module)
    with contextlib.suppress(ValueError):  # it has no doctests
        suite.addTests(doctest.DocTestSuite(imported, optionflags=doctest.ELLIPSIS))
    if test is not None:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromName(test))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        suite.run(recorder)
    return recorder.outcomes


def run_apart(module: str, test: Optional[str], form: Optional[str], also: Sequence[str], timeout: float) -> Any:
    """``run_tests`` in a fresh interpreter; ``form`` is ``None`` for the originals. Returns its JSON, or raises."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        command = [sys.executable, __file__, module, "--child", str(file)]
        command += ["--test", test] if test else ["--no-test"]
        command += ["--form", form, *(f"--also={name}" for name in also)] if form else ["--form", "original"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode or not file.exists():
            raise RuntimeError(f"{module} ({form or 'original'}): {done.stderr[-3000:]}")
        return json.loads(file.read_text())


def compare(module: str, test: Optional[str], form: str, also: Sequence[str] = (), timeout: float = 600.0) -> List[str]:
    """Run both ways; returns what differs (nothing, when the decompiled form behaves alike), and prints the counts."""
    before = run_apart(module, test, None, (), timeout)
    after = run_apart(module, test, form, also, timeout)
    names = sorted(set(before["outcomes"]) | set(after["outcomes"]))
    differences = [
        f"{name}: {before['outcomes'].get(name, 'not run')} before, {after['outcomes'].get(name, 'not run')} after"
        for name in names
        if before["outcomes"].get(name, "").split(":")[0] != after["outcomes"].get(name, "").split(":")[0]
    ]
    kinds = [outcome.split(":")[0] for outcome in after["outcomes"].values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    unit = {"source": "modules", "functions": "functions"}[form]
    kept = f" ({after['counts']['kept']} kept as they were)" if after["counts"]["kept"] else ""
    print(f"{module}: {after['counts']['decompiled']} {unit} decompiled{kept}; {counts}; {len(differences)} differ")
    if not after["counts"]["decompiled"]:
        differences.append("nothing was decompiled")
    return differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--test", help="the test module (test.test_MODULE)")
    parser.add_argument("--no-test", action="store_true", help="doctests only")
    parser.add_argument("--form", choices=["source", "functions", "original"], default="source")
    parser.add_argument("--decompile-tests", action="store_true", help="decompile the test module, too")
    parser.add_argument("--also", action="append", default=[], help="decompile this module, too")
    parser.add_argument("--timeout", type=float, default=600.0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    test = None if options.no_test else options.test or f"test.test_{options.module.replace('.', '_')}"
    if options.child:
        if options.form != "original":
            install_hook([options.module, *options.also], options.form)
        outcomes = run_tests(options.module, test)
        Path(options.child).write_text(json.dumps({"outcomes": outcomes, "counts": DecompilingFinder.counts}))
        return 0
    also = [*options.also, *([test] if options.decompile_tests and test else [])]
    differences = compare(options.module, test, options.form, also, options.timeout)
    for line in differences:
        print(" ", line)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
