"""Run programs in normal form, and compare with what CPython does with their bytecode.

    python tools/fuzz/interpret_programs.py random -n 1000            # random programs of each kind, four seeds each
    python tools/fuzz/interpret_programs.py corpus                    # the functions of tests/decompiler/corpus
    python tools/fuzz/interpret_programs.py tests test_grammar test_with ...      # CPython's own tests
    python tools/fuzz/interpret_programs.py random --by python3.8     # compiled by 3.8, lowered and run here

``tests/support/interpreter.py`` is the interpreter, and shares nothing with the decompiler but the operations and
lowering. A difference is a bug of the normal form, of lowering or of the interpreter; all proofs rest on the first two.
Exit status 0 when no program differs.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections import Counter
from pathlib import Path
from types import CodeType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import corpus
import random_checks
from interpreted import KINDS, differs, observations
from interpreter import Unsupported
from stand_in import stand_in

from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.bytecode.other_pythons import Interpreter

Tally = Dict[str, int]
SEEDS = 4

BASIC = (
    "test_augassign", "test_baseexception", "test_binop", "test_bool", "test_class", "test_compare",
    "test_contains", "test_contextlib", "test_coroutines", "test_asyncgen", "test_decorators", "test_dictcomps",
    "test_dynamic", "test_exception_hierarchy", "test_except_star", "test_extcall", "test_fstring",
    "test_genericclass", "test_generators", "test_genexps", "test_global", "test_grammar", "test_iter",
    "test_keywordonlyarg", "test_lambda", "test_listcomps", "test_named_expressions", "test_opcodes",
    "test_patma", "test_pow", "test_positional_only_arg", "test_raise", "test_richcmp", "test_scope",
    "test_setcomps", "test_slice", "test_string_literals", "test_subclassinit", "test_super", "test_unary",
    "test_unpack", "test_unpack_ex", "test_with", "test_yield_from", "test_pep479", "test_bisect", "test_heapq",
    "test_textwrap", "test_shlex", "test_configparser", "test_statistics", "test_dataclasses", "test_enum",
    "test_functools", "test_collections", "test_json", "test_argparse",
)  # fmt: skip

NOT_COMPARED = {
    "frames, tracebacks, lines": (
        "test_accepts_traceback", "test_attrs", "test_close_clears_frame", "test_contextmanager_traceback",
        "test_deprecated__version__", "test_exception_locations", "testExceptionLocation",
        "test_exit_exception_traceback", "test_frame_locals_outlive_generator",
        "test_frame_locals_outlive_generator_with_exec", "test_frame_outlives_generator", "test_group_prefix_chars",
        "test_group_prefix_chars_default", "test_origin_tracking", "test_origin_tracking_warning",
        "test_partial_as_method", "test_send_with_yield_from", "test_stack_in_coroutine_throw",
        "test_throw_with_yield_from",
        "test_throw_with_yield_from_custom_generator", "TestFileTypeDeprecation", "TestTracing",
    ),
    "depth of recursion, moments of signals": (
        "test_exit_called_after_interrupt", "test_fstring_nested_too_deeply", "test_lru_recursion",
    ),
    "reference counts": ("test_for_6", "test_nokeepref"),
    "bytecode": ("test_annotations_constant_fold",),
    "what a suspended object says of itself": (
        "test_async_gen_asend_close_runtime_error", "test_async_gen_athrow_close_runtime_error", "test_cr_await",
        "test_func_14", "test_generator_gi_yieldfrom", "GeneratorTest.test_name", "test_new_gen_from_gi_code",
    ),
    "how often a call merges its keywords": ("test_call_safety_against_reentrant_mutation",),
    "the message of super() without a class": ("test_obscure_super_errors",),
    "builtins replaced in the whole process": (
        "RebindBuiltinsTests", "test_lru_reentrancy_with_len", "test_reduce_mutating_builtins_iter",
    ),
}  # fmt: skip
"""Tests that see that an interpreter runs, and not CPython alone, by what they look at. They are not run."""


def compilers(by: Optional[str]) -> Callable[[str], Optional[Tuple[CodeType, Code]]]:
    """Return the function that compiles a random program, here and by the other Python."""
    other = Interpreter(by) if by else None

    def compiled(text: str) -> Optional[Tuple[CodeType, Code]]:
        try:
            mine = random_checks.code_of_program(text)
            if other is None:
                return mine, mine
            module = other.compile(text, "<program>", "exec", 0)
        except Exception:
            return None
        return mine, next(each for each in module.co_consts if getattr(each, "co_name", "") == "program")

    return compiled


def run_random(count: int, seed: int, by: Optional[str]) -> Iterator[Tuple[str, str]]:
    compiled = compilers(by)
    for kind, (make, run) in KINDS.items():
        texts = [make(random.Random(seed * 1_000_003 + number)) for number in range(count)]
        there = logs_there(by, kind, texts) if by else {}
        for text in texts:
            pair = compiled(text)
            if pair is None:
                yield f"{kind}: no program", ""
                continue
            try:
                found = differs(run, pair[0], stand_in(pair[1]), range(SEEDS))
                if found and text in there:
                    mine, theirs = without_messages(logs(run, stand_in(pair[1]))), there[text]
                    if mine == theirs:
                        yield f"{kind}: same as there, where it is compiled otherwise", ""
                        continue
                    found += f"\nthere: {theirs}\nin normal form: {mine}"
            except Unsupported as error:
                yield f"{kind}: not supported", str(error)
            except random_checks.TookTooLong:
                yield f"{kind}: took too long", ""
            else:
                yield (f"{kind}: DIFFERENT", f"{text}\n{found}") if found else (f"{kind}: same", "")


def logs(run: random_checks.Run, code: CodeType) -> str:
    with random_checks.time_limit():
        return repr([run(code, seed) for seed in range(SEEDS)])


_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")


def without_messages(log: str) -> str:
    """Return a log without the texts that have spaces: messages are those of the Python that runs it."""
    return _LITERAL.sub(lambda found: "'...'" if " " in found[0] and "'thing " not in found[0] else found[0], log)


def logs_there(by: str, kind: str, texts: List[str]) -> Dict[str, str]:
    """Return the logs of the programs that the other Python compiled and ran itself."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "programs"
        file.write_text(repr(texts), "utf-8", "surrogatepass")
        subprocess.run([by, __file__, "record", "random", kind, str(file)], check=True, stdin=subprocess.DEVNULL)
        found: Dict[str, str] = ast.literal_eval(file.read_text("utf-8", "surrogatepass"))
    return found


def record_logs(kind: str, file: Path) -> None:
    found: Dict[str, str] = {}
    for text in ast.literal_eval(file.read_text("utf-8", "surrogatepass")):
        try:
            found[text] = without_messages(logs(KINDS[kind][1], random_checks.code_of_program(text)))
        except (SyntaxError, ValueError, StopIteration, random_checks.TookTooLong):
            continue
    file.write_text(repr(found), "utf-8", "surrogatepass")


def run_corpus() -> Iterator[Tuple[str, str]]:
    for specimen in corpus.specimens():
        module = corpus.compile_corpus(specimen.file)
        try:
            mine, theirs = observations(specimen, module), observations(specimen, stand_in(module))
        except Unsupported as error:
            yield "corpus: not supported", f"{specimen.label}: {error}"
            continue
        yield ("corpus: same", "") if mine == theirs else ("corpus: DIFFERENT", f"{specimen.label}\n{mine}\n{theirs}")


# --- CPython's own tests


def record(name: str, interpreted: bool, file: str) -> None:
    """Run the tests of one module, and write how each ended."""
    import importlib.util

    spec = importlib.util.find_spec(f"test.{name}")
    if spec is None or spec.origin is None or spec.loader is None:
        Path(file).write_text("None")
        return
    ran: set[int] = set()
    kept: List[Code] = []

    def note(code: Code) -> None:
        if id(code) not in ran:
            ran.add(id(code))
            kept.append(code)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(spec.origin)
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module
        exec(stand_in(code, ran=note) if interpreted else code, vars(module))
        outcomes, suite = _Outcomes(), unittest.TestSuite()
        for test in _tests_in(unittest.defaultTestLoader.loadTestsFromModule(module)):
            path = f"{test.id()}."
            cause = next((why for why, names in NOT_COMPARED.items() if any(f".{n}." in path for n in names)), None)
            if cause is None:
                suite.addTest(test)
            else:
                outcomes.found[test.id()] = f"not compared ({cause})"
        suite.run(outcomes)
    Path(file).write_text(repr([outcomes.found, len(kept)]))


def _tests_in(suite: unittest.TestSuite) -> Iterator[Any]:
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from _tests_in(each)
        else:
            yield each


class _Outcomes(unittest.TestResult):
    def __init__(self) -> None:
        super().__init__()
        self.found: Dict[str, str] = {}

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        self.found.setdefault(test.id(), "passed")

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self.found[test.id()] = f"error: {err[0].__name__}: {err[1]}"[:300]

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self.found[test.id()] = f"failed: {err[1]}"[:300]

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            self.addFailure(test, err)

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        self.found[test.id()] = "skipped"


def run_tests(names: List[str], timeout: float) -> Iterator[Tuple[str, str]]:
    for name in names:
        found: List[Any] = []
        with tempfile.TemporaryDirectory() as folder:
            for mode in ("original", "interpreted"):
                file = Path(folder) / mode
                command = [sys.executable, __file__, "record", name, mode, str(file)]
                try:
                    done = subprocess.run(
                        command, cwd=folder, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
                    )
                    found.append(ast.literal_eval(file.read_text()) if file.exists() else done.stderr[-500:])
                except subprocess.TimeoutExpired:
                    found.append("timeout")
        before, after = found
        if before is None:
            yield "tests: no such module", ""
        elif not isinstance(before, list) or not isinstance(after, list):
            yield "modules: not run", f"{name}: {before if isinstance(before, str) else after}"
        else:
            yield "modules: run", f"{name}: {len(before[0])} tests, {after[1]} code objects"
            for _ in range(after[1]):
                yield "code objects run", ""
            for test in sorted({*before[0], *after[0]}):
                mine, theirs = (each[0].get(test, "not run").partition(":")[0] for each in found)
                same = mine == theirs
                yield (
                    (f"tests: {mine} in both", "")
                    if same
                    else ("tests: DIFFERENT", f"{test}: {mine}\n    {after[0].get(test)}")
                )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["random", "corpus", "tests", "record"])
    parser.add_argument("names", nargs="*", help="modules of the package test (a list of basic ones)")
    parser.add_argument("-n", "--count", type=int, default=1000, help="random programs of each kind (1,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--by", metavar="PYTHON", help="random programs are compiled by this Python")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the tests of one module (300)")
    parser.add_argument("--show", type=int, default=5, help="differences to show of each kind (5)")
    options = parser.parse_args()
    if options.what == "record":
        name, mode, file = options.names
        if name == "random":
            record_logs(mode, Path(file))
        else:
            record(name, mode == "interpreted", file)
        return 0
    sys.unraisablehook = lambda _unraisable: None
    warnings.simplefilter("ignore")
    rows = {
        "random": lambda: run_random(options.count, options.seed, options.by),
        "corpus": run_corpus,
        "tests": lambda: run_tests(options.names or list(BASIC), options.timeout),
    }[options.what]()
    tally: Tally = Counter()
    for outcome, detail in rows:
        tally[outcome] += 1
        if detail and (tally[outcome] <= options.show or outcome.endswith("DIFFERENT")):
            print(f"{outcome}: {detail}", flush=True)
    print(f"CPython {sys.version_info[0]}.{sys.version_info[1]}:", dict(tally))
    return 1 if any(outcome.endswith("DIFFERENT") for outcome in tally) else 0


if __name__ == "__main__":
    sys.exit(main())
