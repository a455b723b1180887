"""Random control flow that no compiler wrote: jumps into loops, into and out of ``try`` bodies.

A program is a graph of blocks in nested zones. Each block reports itself and asks an oracle where to go. Here it is
assembled to the normal form, so it is the same for all Pythons; test_random_flow.py assembles it to
bytecode of 3.11, too.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from interpreter import Frame, run

from depyf.decompiler.normal.ops import ENDS, Handler, Instr, NormalCode, Op

FUEL = 40

# --- programs ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Zone:
    """What blocks lie inside of: "function", "try", "handler" (of a try beside it), "for"."""

    kind: str
    parent: Optional[Zone] = None
    guards: Optional[Zone] = None  # of a handler: its try
    handler: Optional[Zone] = None  # of a try
    typed: bool = True  # of a handler: ``except Boom``, or else one that reports itself and reraises
    header: int = -1  # of a for: its block

    def stack(self) -> Tuple[Zone, ...]:
        """The zones that keep a value on the stack: the iterator, or what was handled before."""
        below = () if self.parent is None else self.parent.stack()
        return (*below, self) if self.kind in ("for", "handler") else below


@dataclass
class Block:
    """``ways``: none is a return, two a branch. ``enters``: the loop that begins here; ``heads``: the loop whose head
    this is (``ways`` are its body and its end)."""

    number: int
    zone: Zone
    ways: List[int] = field(default_factory=list)
    enters: Optional[Zone] = None
    heads: Optional[Zone] = None
    raises: bool = False
    stores: bool = False


@dataclass
class Program:
    zones: List[Zone]
    blocks: List[Block]


def random_program(rng: random.Random) -> Program:
    """Some blocks in nested zones; each jumps to any block whose stack is what is left of its own."""
    program = Program([Zone("function")], [])
    for _ in range(rng.choice([0, 0, 1, 2, 3, 4])):
        parent = rng.choice(program.zones)
        if rng.random() < 0.5:
            program.zones.append(Zone("for", parent))
            continue
        inside, handler = Zone("try", parent), Zone("handler", parent, typed=rng.random() < 0.7)
        inside.handler, handler.guards = handler, inside
        program.zones += [inside, handler]
    for zone in program.zones:
        for _ in range(rng.randint(1, 4)):
            program.blocks.append(Block(len(program.blocks), zone, stores=rng.random() < 0.2))
    for zone in program.zones:
        if zone.kind == "for":
            assert zone.parent is not None
            zone.header = len(program.blocks)
            program.blocks.append(Block(zone.header, zone.parent, heads=zone))
            program.blocks.append(Block(zone.header + 1, zone.parent, enters=zone))
    for block in program.blocks:
        _connect(rng, program, block)
    return program


def _connect(rng: random.Random, program: Program, block: Block) -> None:
    def reachable(stack: Tuple[Zone, ...]) -> List[int]:
        """Blocks that can be jumped to with ``stack``. A loop's head is one only inside of the loop."""
        found = []
        for other in program.blocks:
            wanted = other.zone.stack() if other.heads is None else (*other.zone.stack(), other.heads)
            if stack[: len(wanted)] == wanted:
                found.append(other.number)
        return found

    stack = block.zone.stack()
    if block.heads is not None:
        inside = [
            other.number
            for other in program.blocks
            if other.zone.stack() == (*stack, block.heads) and other.heads is None
        ]
        block.ways = [rng.choice(inside), rng.choice(reachable(stack))]
        return
    if block.enters is not None:
        return
    block.raises = rng.random() < 0.05
    block.ways = [rng.choice(reachable(stack)) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 2]))]


def guard_of(zone: Optional[Zone]) -> Optional[Zone]:
    """The ``try`` that guards code in ``zone``. (Handlers do not guard: the normal form unwinds by itself.)"""
    while zone is not None and zone.kind != "try":
        zone = zone.parent
    return zone


# --- the normal form ---------------------------------------------------------------------------------------------


def _template(x: Any) -> None:
    """The code object whose name and parameters the programs have."""


TEMPLATE: CodeType = _template.__code__.replace(co_name="program")


def normal_form(program: Program, rng: random.Random) -> NormalCode:
    """``program`` as operations, its blocks in any order."""
    order = program.blocks[1:]
    rng.shuffle(order)
    out = _Assembler()
    for block in [program.blocks[0], *order]:
        out.block(program, block)
    for zone in program.zones:
        if zone.kind == "handler":
            out.handler(program, zone)
    return NormalCode(TEMPLATE, out.resolved())


class _Assembler:
    """Operations whose targets and handlers are labels at first."""

    def __init__(self) -> None:
        self.ops: List[Tuple[Op, Any, Any, Optional[Zone]]] = []
        self.labels: Dict[Any, int] = {}
        self.guard: Optional[Zone] = None

    def op(self, op: Op, arg: Any = None, target: Any = None) -> None:
        self.ops.append((op, arg, target, self.guard))

    def call(self, name: str, *arguments: Tuple[Op, Any]) -> None:
        self.op(Op.LOAD, ("global", name))
        for op, arg in arguments:
            self.op(op, arg)
        self.op(Op.CALL, (len(arguments), (), ""))

    def report(self, op: Op, arg: Any) -> None:
        self.call("trace", (op, arg))
        self.op(Op.POP)

    def block(self, program: Program, block: Block) -> None:
        self.labels[block.number] = len(self.ops)
        self.guard = guard_of(block.zone)
        if block.heads is not None:
            self.op(Op.FOR, False, ("end", block.number))
            self.op(Op.STORE, ("fast", "x"))
            self.op(Op.JUMP, None, block.ways[0])
            self.labels["end", block.number] = len(self.ops)
            self.go(program, block.zone.stack(), block.ways[1])
            return
        self.report(Op.CONST, block.number)
        if block.stores:
            self.report(Op.LOAD, ("fast", "x"))
            self.op(Op.CONST, block.number)
            self.op(Op.STORE, ("fast", "x"))
        if block.raises:
            self.op(Op.LOAD, ("global", "Boom"))
            self.op(Op.RAISE, 1)
            return
        if len(block.ways) == 2:
            self.call("oracle")
            self.op(Op.BRANCH, "false", ("else", block.number))
        stack = block.zone.stack()
        if block.enters is not None:
            self.loop(block.enters, block)
            return
        if not block.ways:
            self.pop(stack)
            self.op(Op.CONST, 1000 + block.number)
            self.op(Op.RETURN)
            return
        self.go(program, stack, block.ways[0])
        if len(block.ways) == 2:
            self.labels["else", block.number] = len(self.ops)
            self.go(program, stack, block.ways[1])

    def loop(self, loop: Zone, block: Block) -> None:
        self.pop(block.zone.stack()[len(loop.stack()) - 1 :])
        self.guard = guard_of(loop.parent)
        self.call("items", (Op.CONST, block.number))
        self.op(Op.ITER)
        self.op(Op.JUMP, None, loop.header)

    def go(self, program: Program, stack: Tuple[Zone, ...], target: int) -> None:
        """Leaving a zone is guarded by nothing: what it does can't raise."""
        wanted = program.blocks[target].zone.stack()
        self.guard = None
        self.pop(stack[len(wanted) + (program.blocks[target].heads is not None) :])
        self.op(Op.JUMP, None, target)

    def pop(self, zones: Sequence[Zone]) -> None:
        self.guard = None
        for zone in reversed(zones):
            self.op(Op.POP if zone.kind == "for" else Op.POP_EXC)

    def handler(self, program: Program, zone: Zone) -> None:
        """The beginning of a handler, and how it ends when it does not match."""
        first = next(block.number for block in program.blocks if block.zone is zone)
        self.labels["handler", zone.guards] = len(self.ops)
        self.guard = guard_of(zone.parent)
        self.op(Op.PUSH_EXC)
        if zone.typed:
            self.op(Op.LOAD, ("global", "Boom"))
            self.op(Op.CHECK_EXC)
            self.op(Op.BRANCH, "false", ("no match", zone))
            self.op(Op.POP)
            self.op(Op.JUMP, None, first)
            self.labels["no match", zone] = len(self.ops)
        else:
            self.report(Op.CONST, 500 + first)
        self.op(Op.RERAISE)

    def resolved(self) -> Tuple[Instr, ...]:
        """What can be reached, with indices for labels."""
        number = {index: position for position, index in enumerate(sorted(self._reached()))}

        def at(label: Any) -> int:
            return number[self.labels[label]]

        def handler(guard: Optional[Zone]) -> Optional[Handler]:
            return None if guard is None else Handler(at(("handler", guard)), len(guard.stack()), False)

        return tuple(
            Instr(op, arg, 2 * number[index], None, None if target is None else at(target), handler(guard))
            for index, (op, arg, target, guard) in enumerate(self.ops)
            if index in number
        )

    def _reached(self) -> Set[int]:
        reached: Set[int] = set()
        todo = [0]
        while todo:
            index = todo.pop()
            if index in reached:
                continue
            reached.add(index)
            op, _arg, target, guard = self.ops[index]
            if target is not None:
                todo.append(self.labels[target])
            if guard is not None:
                todo.append(self.labels["handler", guard])
            if op not in ENDS:
                todo.append(index + 1)
        return reached


# --- running -----------------------------------------------------------------------------------------------------


class Boom(Exception):
    pass


class OutOfFuel(BaseException):
    pass


def run_code(code: CodeType, seed: int) -> List[Any]:
    """What a code object reports, and how it ends."""
    return _run(lambda names: FunctionType(code, names)(7), seed)


def run_normal(normal: NormalCode, seed: int) -> List[Any]:
    """The same for operations, which an interpreter runs."""
    return _run(lambda names: run(Frame(normal, names, {"x": 7})), seed)


def _run(execute: Callable[[Dict[str, Any]], Any], seed: int) -> List[Any]:
    rng = random.Random(seed)
    log: List[Any] = []

    def trace(what: Any) -> None:
        kind = sys.exc_info()[0]
        log.append((what, kind and kind.__name__))
        if len(log) > FUEL:
            raise OutOfFuel
        if rng.random() < 0.12:
            raise Boom

    def oracle() -> bool:
        trace("oracle")
        return rng.random() < 0.5

    def items(number: int) -> List[int]:
        trace(-number)
        return [number] * rng.randint(0, 3)

    names = {"trace": trace, "oracle": oracle, "items": items, "Boom": Boom, "__builtins__": {}}
    try:
        log.append(execute(names))
    except (Boom, OutOfFuel) as error:
        log.append(type(error).__name__)
    return log
