"""Random control flow that no compiler wrote: jumps into loops, into and out of ``try`` bodies.

The programs (tests/support/random_flow.py) are assembled twice: to the normal form, on every Python, and to bytecode of
3.11, which goes through decoding and lowering, too. Their decompilation must be proved the same by the verifier and, as
a check that does not depend on it, report the same blocks when both are run with the same oracle: operations by an
interpreter of the normal form, bytecode by the one of CPython.
"""

from __future__ import annotations

import ast
import contextlib
import opcode
import random
import sys
from types import CodeType
from typing import Any, Callable, Dict, List, Optional, Tuple

import pytest
from random_checks import check_form, read, written
from random_flow import (
    TEMPLATE,
    Block,
    Program,
    Zone,
    normal_form,
    random_program,
    run_code,
    run_normal,
)

from depyf.decompiler.flow.copies import undo_copies
from depyf.decompiler.flow.graph import FlowGraph, build
from depyf.decompiler.lift.lifter import lift
from depyf.decompiler.lift.nodes import LiftedGraph
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.source.printing.statements import unparse
from depyf.decompiler.structure.dispatch.loop import dispatch
from depyf.decompiler.structure.sequences import structure
from depyf.decompiler.structure.unstructured import Unstructured
from depyf.decompiler.verify import Finding, compare

ONLY_311 = pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the programs are bytecode of 3.11")

PROGRAMS = 300


# --- assembling --------------------------------------------------------------------------------------------------


NAMES = ("trace", "oracle", "items", "Boom")


class Assembler:
    """Two-byte units; every jump has room for a long distance."""

    def __init__(self) -> None:
        self.units: List[Tuple[int, Any]] = []
        self.labels: Dict[Any, int] = {}
        self.guarded: List[Tuple[int, int, Tuple[Any, int, bool]]] = []
        self.consts: List[Any] = [None]

    def op(self, name: str, arg: int = 0) -> None:
        code = opcode.opmap[name]
        self.units.append((code, arg))
        self.units.extend([(0, 0)] * opcode._inline_cache_entries[code])  # type: ignore[attr-defined]

    def jump(self, name: str, label: Any) -> None:
        """``name`` has the direction "?" filled in."""
        self.units.append((opcode.opmap["EXTENDED_ARG"], (name, label, True)))
        self.units.append((0, (name, label, False)))

    def label(self, label: Any) -> None:
        self.labels[label] = len(self.units)

    def guard(self, start: int, handler: Optional[Tuple[Any, int, bool]]) -> None:
        if handler is not None and start < len(self.units):
            self.guarded.append((start, len(self.units), handler))

    def const(self, value: int) -> None:
        if value not in self.consts[1:]:
            self.consts.append(value)
        self.op("LOAD_CONST", self.consts.index(value, 1))

    def call(self, name: str, argument: Optional[int] = None) -> None:
        """A global function, of a constant or of the local variable (-1)."""
        self.op("LOAD_GLOBAL", NAMES.index(name) << 1 | 1)
        if argument == -1:
            self.op("LOAD_FAST", 0)
        elif argument is not None:
            self.const(argument)
        self.op("PRECALL", int(argument is not None))
        self.op("CALL", int(argument is not None))

    def assemble(self) -> bytes:
        result = bytearray()
        for index, (code, arg) in enumerate(self.units):
            if isinstance(arg, tuple):
                name, label, high = arg
                distance = self.labels[label] - (index + 1 + high)
                if not high:
                    code = opcode.opmap[name.replace("?", "FORWARD" if distance >= 0 else "BACKWARD")]
                arg = abs(distance) >> 8 if high else abs(distance) & 255
            result += bytes([code, arg])
        return bytes(result)

    def exception_table(self) -> bytes:
        def number(value: int, first: int = 0) -> bytes:
            digits = [value & 63]
            while value > 63:
                value >>= 6
                digits.insert(0, value & 63 | 64)
            digits[0] |= first
            return bytes(digits)

        result = b""
        for start, end, (label, depth, lasti) in sorted(self.guarded, key=lambda entry: entry[0]):
            result += number(start, 128) + number(end - start) + number(self.labels[label])
            result += number(depth << 1 | lasti)
        return result

    def line_table(self, lines: bool) -> bytes:
        """A line for each label."""
        starts = sorted(set(self.labels.values()) | {0, len(self.units)})
        result = b""
        for start, end in zip(starts, starts[1:]):
            step = 2  # the next line, as a signed number
            while start < end:
                size = min(8, end - start)
                result += bytes([0x80 | 13 << 3 | size - 1, step]) if lines else bytes([0x80 | 15 << 3 | size - 1])
                start, step = start + size, 0
        return result


def _handler(zone: Optional[Zone]) -> Optional[Tuple[Any, int, bool]]:
    """What guards code in ``zone``: label, depth, whether the instruction's offset is pushed."""
    while zone is not None:
        if zone.kind == "try":
            return (("handler", zone), len(zone.stack()), False)
        if zone.kind == "handler":
            return (("cleanup", zone), len(zone.stack()), True)
        zone = zone.parent
    return None


def assemble(program: Program, seed: int) -> CodeType:
    rng = random.Random(seed)
    out = Assembler()
    out.op("RESUME")
    order = program.blocks[1:]
    rng.shuffle(order)
    for block in [program.blocks[0], *order]:
        _block(out, program, block)
    for zone in program.zones:
        if zone.kind == "handler":
            _begin_handler(out, program, zone)
    return TEMPLATE.replace(
        co_code=out.assemble(),
        co_consts=tuple(out.consts),
        co_names=NAMES,
        co_stacksize=20,
        co_qualname="program",
        co_exceptiontable=out.exception_table(),
        co_linetable=out.line_table(lines=seed % 3 > 0),
    )


def _block(out: Assembler, program: Program, block: Block) -> None:
    start = len(out.units)
    out.label(block.number)
    if block.heads is not None:
        out.jump("FOR_ITER", ("end", block.number))
        out.op("STORE_FAST", 0)
        out.guard(start, _handler(block.zone))
        out.jump("JUMP_?", block.ways[0])
        out.label(("end", block.number))
        _go(out, program, block.zone.stack(), block.ways[1])
        return
    out.call("trace", block.number)
    out.op("POP_TOP")
    if block.stores:
        out.call("trace", -1)
        out.op("POP_TOP")
        out.const(block.number)
        out.op("STORE_FAST", 0)
    if block.raises:
        out.op("LOAD_GLOBAL", NAMES.index("Boom") << 1)
        out.op("RAISE_VARARGS", 1)
    elif len(block.ways) == 2:
        out.call("oracle")
        out.jump("POP_JUMP_?_IF_FALSE", ("else", block.number))
    out.guard(start, _handler(block.zone))
    if block.raises:
        return
    stack = block.zone.stack()
    if block.enters is not None:
        _begin_loop(out, block.enters, block)
    elif block.ways:
        _go(out, program, stack, block.ways[0])
        if len(block.ways) == 2:
            out.label(("else", block.number))
            _go(out, program, stack, block.ways[1])
    else:
        _pop(out, stack)
        out.const(1000 + block.number)
        out.op("RETURN_VALUE")


def _begin_loop(out: Assembler, loop: Zone, block: Block) -> None:
    depth = len(loop.stack()) - 1
    _pop(out, block.zone.stack()[depth:])
    start = len(out.units)
    out.call("items", block.number)
    out.op("GET_ITER")
    out.guard(start, _handler(loop.parent))
    out.jump("JUMP_?", loop.header)


def _go(out: Assembler, program: Program, stack: Tuple[Zone, ...], target: int) -> None:
    wanted = program.blocks[target].zone.stack()
    _pop(out, stack[len(wanted) + (program.blocks[target].heads is not None) :])
    out.jump("JUMP_?", target)


def _pop(out: Assembler, zones: Tuple[Zone, ...]) -> None:
    for zone in reversed(zones):
        out.op("POP_TOP" if zone.kind == "for" else "POP_EXCEPT")


def _begin_handler(out: Assembler, program: Program, zone: Zone) -> None:
    """As CPython writes handlers: the exception that was handled before comes back if this one goes on."""
    first = next(block.number for block in program.blocks if block.zone is zone)
    out.label(("handler", zone.guards))
    start = len(out.units)
    out.op("PUSH_EXC_INFO")
    if zone.typed:
        out.op("LOAD_GLOBAL", NAMES.index("Boom") << 1)
        out.op("CHECK_EXC_MATCH")
        out.jump("POP_JUMP_?_IF_FALSE", ("no match", zone))
        out.op("POP_TOP")
        out.jump("JUMP_?", first)
        out.label(("no match", zone))
    else:
        out.call("trace", 500 + first)
        out.op("POP_TOP")
    out.op("RERAISE", 0)
    out.guard(start, (("cleanup", zone), len(zone.stack()), True))
    out.label(("cleanup", zone))
    start = len(out.units)
    out.op("COPY", 3)
    out.op("POP_EXCEPT")
    out.op("RERAISE", 1)
    out.guard(start, _handler(zone.parent))


# --- the tests ---------------------------------------------------------------------------------------------------


def recompiled(code: CodeType, form: Callable[[LiftedGraph, FlowGraph], List[ast.stmt]]) -> Tuple[str, CodeType]:
    flow = build(lower(code))
    undo_copies(flow)
    definition = ast.parse("def program(x): pass").body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.body = form(lift(flow), flow) or [ast.Pass()]
    text = unparse(ast.fix_missing_locations(ast.Module([definition], [])))
    module = compile(text, "<decompiled>", "exec")
    return text, next(const for const in module.co_consts if isinstance(const, CodeType))


def check(seed: int, form: Callable[[LiftedGraph, FlowGraph], List[ast.stmt]]) -> Finding:
    code = assemble(random_program(random.Random(seed)), seed)
    text, candidate = recompiled(code, form)
    comparison = compare(code, candidate)
    assert comparison.finding is not Finding.DIFFERENT, f"seed {seed}: {comparison.reason}\n{text}"
    for oracle in range(4):
        assert run_code(candidate, oracle) == run_code(code, oracle), f"seed {seed}, oracle {oracle}\n{text}"
    return comparison.finding


@ONLY_311
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_any_control_flow_in_bytecode_has_a_rendering_that_is_proved_and_runs_the_same(seed: int) -> None:
    assert check(seed, dispatch).proved


@ONLY_311
@pytest.mark.parametrize("seed", range(PROGRAMS // 3))
def test_what_the_structurer_accepts_in_bytecode_is_never_wrong(seed: int) -> None:
    with contextlib.suppress(Unstructured):
        check(seed, structure)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_any_control_flow_in_normal_form_has_a_rendering_that_runs_the_same(seed: int) -> None:
    rng = random.Random(seed)
    assert check_form(normal_form(random_program(rng), rng), dispatch) is not None


@pytest.mark.parametrize("seed", range(PROGRAMS // 3))
def test_what_the_structurer_accepts_in_normal_form_is_never_wrong(seed: int) -> None:
    rng = random.Random(seed)
    check_form(normal_form(random_program(rng), rng), structure)


def test_the_programs_are_not_all_simple() -> None:
    """They contain what compilers never write: regions and loops entered in their middle."""
    unstructured = 0
    for seed in range(PROGRAMS // 3):
        rng = random.Random(seed)
        unstructured += check_form(normal_form(random_program(rng), rng), structure, seeds=1) is None
    assert unstructured > PROGRAMS // 30


@ONLY_311
@pytest.mark.parametrize("seed", range(30))
def test_the_interpreter_of_the_normal_form_does_what_cpython_does(seed: int) -> None:
    program = random_program(random.Random(seed))
    code = assemble(program, seed)
    for oracle in range(10):
        expected = run_code(code, oracle)
        assert run_normal(lower(code), oracle) == expected
        assert run_normal(normal_form(program, random.Random(seed)), oracle) == expected


def test_a_stored_program_is_read_as_it_was() -> None:
    rng = random.Random(4)
    normal = normal_form(random_program(rng), rng)
    assert written(read(written(normal))) == written(normal)
