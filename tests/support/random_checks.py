"""What tests and tools/fuzz/run_random_programs.py ask of random programs: decompiled, they do the same.

A check takes the source of randomness of one program and returns how its decompilation was judged: the verdict, or
"refused", or "no program" when what was generated does not compile. It raises ``Difference`` when anything but a
refusal is wrong: the runs of original and decompiled code differ, or the decompiler does anything but answer or refuse.
None of that relies on the verifier.
"""

from __future__ import annotations

import ast
import contextlib
import random
import re
import signal
import warnings
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import random_conditions
import random_finally
import random_flow
import random_programs
import random_syntax

from depyf.base.own_bugs import let_through
from depyf.decompiler import decompile_code
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.flow.copies import undo_copies
from depyf.decompiler.flow.graph import FlowGraph, build
from depyf.decompiler.lift.lifter import lift
from depyf.decompiler.lift.nodes import LiftedGraph
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import Handler, Instr, NormalCode, Op
from depyf.decompiler.source.printing.text import to_source
from depyf.decompiler.structure.dispatch.loop import dispatch
from depyf.decompiler.structure.sequences import structure
from depyf.decompiler.structure.unstructured import Unstructured
from depyf.decompiler.verify import Finding
from depyf.decompiler.verify.comparison import MismatchError
from depyf.decompiler.verify.product import Product
from depyf.decompiler.verify.program import Program
from depyf.decompiler.verify.settings import Settings

CPU_SECONDS = 20.0

Form = Callable[[LiftedGraph, FlowGraph], List[ast.stmt]]
Run = Callable[[CodeType, int], List[Any]]


@dataclass
class Verdict:
    """How one program fared: "exact", "equivalent", "unverified", "refused", "no program"; and why."""

    outcome: str
    reason: str = ""


@dataclass
class Difference(Exception):
    """A wrong answer. ``program`` is what has to be stored so that it can be checked again."""

    what: str
    program: str
    answer: str = field(repr=False, default="")

    def __str__(self) -> str:
        return f"{self.what}\n--- program\n{self.program}\n--- decompiled\n{self.answer}"


class TookTooLong(BaseException):
    """No ``Exception``: programs catch those."""


@contextlib.contextmanager
def time_limit(seconds: float = CPU_SECONDS) -> Iterator[None]:
    """CPU time, so that a busy machine makes no difference. Nothing where there is no such timer."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_number: int, _frame: Any) -> None:
        raise TookTooLong(f"more than {seconds} seconds of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- programs in source ------------------------------------------------------------------------------------------


def check_programs(rng: random.Random) -> Verdict:
    return check_source(random_programs.program_from(rng, rng.randint(1, 6)), random_programs.run)


def check_conditions(rng: random.Random) -> Verdict:
    return check_source(random_conditions.program_from(rng), random_syntax.run)


def check_finally(rng: random.Random) -> Verdict:
    return check_source(random_finally.program_from(rng), random_programs.run)


def check_syntax(rng: random.Random) -> Verdict:
    return check_source(random_syntax.program(rng, rng.randint(1, 5)), random_syntax.run)


def code_of_program(text: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = compile(text, "<program>", "exec", dont_inherit=True)
    return next(each for each in module.co_consts if isinstance(each, CodeType) and each.co_name == "program")


def check_source(text: str, run: Run, seeds: int = 12) -> Verdict:
    """Decompile the function ``program`` in ``text``; run both, also the text as it stands."""
    try:
        code = code_of_program(text)
    except (SyntaxError, ValueError):
        return Verdict("no program")
    try:
        with time_limit(), let_through(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = decompile_code(code)
            again = [code_of_program(answer.source)] if not answer.text.constants else []
            again.append(answer.compile_like())
    except DecompilationError as error:
        return Verdict("refused", str(error))
    except (Exception, TookTooLong) as error:
        raise Difference(f"{type(error).__name__}: {error}", text) from error
    if answer.missing:  # what stands in its place raises, and says so
        return Verdict("refused", answer.reason)
    for candidate in again:
        _compare_runs(lambda seed: run(code, seed), lambda seed, c=candidate: run(c, seed), seeds, text, answer.source)  # type: ignore[misc]
    return Verdict(answer.verdict.value, answer.reason)


def _compare_runs(
    original: Callable[[int], Any], candidate: Callable[[int], Any], seeds: int, program: str, answer: str
) -> None:
    for seed in range(seeds):
        try:
            with time_limit():
                expected = original(seed)
        except TookTooLong:
            continue
        try:
            with time_limit():
                got = candidate(seed)
        except TookTooLong as error:
            raise Difference(f"seed {seed}: the decompiled program does not end", program, answer) from error
        if not _same(got, expected):
            entry = next((pair for pair in zip(expected, got) if pair[0] != pair[1]), (len(expected), len(got)))
            raise Difference(f"seed {seed}: {entry[0]} in the original, {entry[1]} decompiled", program, answer)


def _same(one: object, other: object) -> bool:
    """Return whether two logs are equal, with values of the same types. These may be nested too deeply for ``==``."""
    pending, seen = [(one, other)], set()
    while pending:
        mine, theirs = pending.pop()
        if mine is theirs or (id(mine), id(theirs)) in seen:
            continue
        if type(mine) is not type(theirs):
            return False
        if isinstance(mine, (list, tuple)) and isinstance(theirs, (list, tuple)):
            if len(mine) != len(theirs):
                return False
            seen.add((id(mine), id(theirs)))
            pending += zip(mine, theirs)
        elif mine != theirs:
            return False
    return True


# --- control flow in normal form ---------------------------------------------------------------------------------


def check_flow(rng: random.Random) -> Verdict:
    return check_normal(random_flow.normal_form(random_flow.random_program(rng), rng))


def check_normal(normal: NormalCode, seeds: int = 6) -> Verdict:
    """Both forms of ``normal`` run as it does; the verdict is that of the readable one, if there is one."""
    verdicts = [verdict for form in (structure, dispatch) for verdict in [check_form(normal, form, seeds)] if verdict]
    return verdicts[0] if verdicts else Verdict("refused")


def check_form(normal: NormalCode, form: Form, seeds: int = 6) -> Optional[Verdict]:
    """``None`` when ``normal`` has no such form."""
    try:
        with time_limit():
            flow = build(normal)
            undo_copies(flow)
            try:
                statements = form(lift(flow), flow)
            except Unstructured:
                return None
            text = _function(statements)
            candidate = code_of_program(text)
    except (Exception, TookTooLong) as error:
        raise Difference(f"{form.__name__}: {type(error).__name__}: {error}", written(normal)) from error
    _compare_runs(
        lambda seed: random_flow.run_normal(normal, seed),
        lambda seed: random_flow.run_code(candidate, seed),
        seeds,
        written(normal),
        text,
    )
    return prove(normal, candidate, text)


def _function(statements: List[ast.stmt]) -> str:
    definition: Any = ast.parse("def program(x): pass").body[0]
    definition.body = statements or [ast.Pass()]
    return to_source(ast.fix_missing_locations(ast.Module([definition], []))).text


def prove(normal: NormalCode, candidate: CodeType, text: str) -> Verdict:
    """What the verifier says; where it says "different", the runs should have said so too."""

    def nothing_nested(_mine: Any, _theirs: Any) -> Any:
        raise AssertionError("these programs have no nested code objects")

    sides = Program(normal, {}, None), Program(lower(candidate), {}, None)
    try:
        Product(*sides, nothing_nested, ["x"], Settings(frozenset(), {}, frozenset(), {}, True, False)).prove()
    except MismatchError as mismatch:
        if mismatch.finding is Finding.DIFFERENT:
            raise Difference(f"the verifier: {mismatch.reason}", written(normal), text) from mismatch
        return Verdict("unverified", mismatch.reason)
    return Verdict("equivalent")


def written(normal: NormalCode) -> str:
    """Operations as text; ``read`` reads it back."""
    rows = []
    for instr in normal.ops:
        handler = None if instr.handler is None else (instr.handler.target, instr.handler.depth, instr.handler.lasti)
        rows.append(f"    {(instr.op.name, instr.arg, instr.target, handler)!r},\n")
    return "[\n" + "".join(rows) + "]\n"


def read(text: str) -> NormalCode:
    ops: List[Instr] = []
    for index, (name, arg, target, handler) in enumerate(ast.literal_eval(text)):
        ops.append(Instr(Op[name], arg, 2 * index, None, target, None if handler is None else Handler(*handler)))
    return NormalCode(random_flow.TEMPLATE, tuple(ops))


_VARYING = re.compile(r"<[^<>]*>|'[^']*'|\"[^\"]*\"|\d+|__temp__?\w*")


def group_of(reason: str) -> str:
    """A reason without what differs from program to program."""
    reason = reason.split("\n", 1)[0]
    for _ in range(3):  # they nest
        reason = _VARYING.sub("_", reason)
    return reason[:160]


# --- all of them -------------------------------------------------------------------------------------------------

CHECKS: Dict[str, Callable[[random.Random], Verdict]] = {
    "conditions": check_conditions,
    "finally": check_finally,
    "flow": check_flow,
    "programs": check_programs,
    "syntax": check_syntax,
}

STORED: Dict[str, Tuple[str, Callable[[str], Verdict]]] = {
    "conditions": (".py", lambda text: check_source(text, random_syntax.run)),
    "finally": (".py", lambda text: check_source(text, random_programs.run)),
    "flow": (".ops", lambda text: check_normal(read(text))),
    "programs": (".py", lambda text: check_source(text, random_programs.run)),
    "syntax": (".py", lambda text: check_source(text, random_syntax.run)),
}
"""How a stored program is checked again, and the suffix of its file."""
