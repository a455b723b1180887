"""Small flow graphs as text: a line a block, its label in front, the jump at its end last.

    top 1:                  more(); false -> out, body      line 1; ``name()`` loads a global and calls it
    body 2 in handler/1:    work(); POP; -> top             guarded by ``handler``, which keeps one value (``/1+``: and
                                                            finds a LASTI above it)
    out leaves handler/1:   CONST None; RETURN              where a removed copy of a ``finally`` body was

Operations are those of ``normal/ops.py``: ``LOAD x`` is a local variable, ``LOAD global.x`` is not. What has a line
of its own, or columns, ends with ``@3`` or ``@3:4-12``. Jumps: ``-> label``, ``false -> target, fall`` (any kind of
BRANCH), ``for -> body, exhausted``. Without one, a block that neither returns nor raises falls into the next line.
"""

from __future__ import annotations

import ast
import itertools
import re
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from depyf.decompiler.bytecode.lines import Span
from depyf.decompiler.flow.graph import Block, Branch, End, FlowGraph, For, Jump, Region, Term, Test
from depyf.decompiler.normal.ops import Handler, Instr, NormalCode, Op

FUNCTION = (lambda: None).__code__.replace(co_name="f")
MODULE = compile("", "<module>", "exec", dont_inherit=True)
_ITEM = re.compile(r"(\S+)(.*?)(?:\s->(\d+))?(?:\s!(\d+)/(\d+))?(?:\s@(\S+))?")
_CALL = (0, (), "")


class Line(NamedTuple):
    """``label key value ...: items; how -> targets``."""

    label: str
    words: Dict[str, str]
    items: List[str]
    how: Optional[str]
    targets: List[str]


def lines_of(text: str) -> List[Line]:
    """The lines of a graph; the number behind a label has the key ``line``."""
    made = []
    for line in filter(None, map(str.strip, text.splitlines())):
        head, rest = re.split(r":(?=\s|$)", line, maxsplit=1)
        label, *words = re.sub(r"^(\S+) (?=\d)", r"\1 line ", head).split()
        items = [item.strip() for item in rest.split(";") if item.strip()]
        how, arrow, targets = items.pop().rpartition("-> ") if items and "-> " in items[-1] else ("", "", "")
        jump = how.strip() if arrow else None
        made.append(Line(label, dict(zip(words[::2], words[1::2])), items, jump, targets.replace(",", " ").split()))
    return made


def regions_of(lines: List[Line]) -> Callable[[str], Optional[Region]]:
    """What ``label/depth`` means in a graph of ``lines``; nothing is no region."""
    ids = {line.label: id for id, line in enumerate(lines)}

    def region(text: str) -> Optional[Region]:
        label, _, depth = text.rstrip("+").partition("/")
        return Region(ids[label], int(depth or 0), text.endswith("+")) if text else None

    return region


def instrs(text: str, place: str = "", offsets: Optional[Iterator[int]] = None) -> List[Instr]:
    """The operations of ``text``; ``->3`` is the index of a target, ``!3/0`` of a handler that keeps no values."""
    offsets = offsets or itertools.count(0, 2)
    made: List[Instr] = []
    for item in filter(None, map(str.strip, text.split(";"))):
        name, words, target, handler, depth, at = _ITEM.fullmatch(item).groups()  # type: ignore[union-attr]
        meant = [(Op.LOAD, ("global", name[:-2])), (Op.CALL, _CALL)]
        if not name.endswith("()"):
            meant = [(Op[name], _argument(Op[name], words.split()))]
        facts = (target and int(target), handler and Handler(int(handler), int(depth), False))
        made.extend(Instr(op, arg, next(offsets), _span(at or place), *facts) for op, arg in meant)
    return made


def _span(text: str) -> Optional[Span]:
    line, column, end = (int(part) if part else None for part in re.fullmatch(r"(\d*):?(\d*)-?(\d*)", text).groups())
    return None if line is None else Span(line, column, line, end)


def _argument(op: Op, words: List[str]) -> Any:
    if op in (Op.LOAD, Op.STORE, Op.DELETE):
        return words[0].rpartition(".")[0] or "fast", words[0].rpartition(".")[2]
    if op is Op.BRANCH:
        return " ".join(words)
    if op is Op.CALL:
        null = "".join(word[5:] for word in words if word.startswith("null="))
        return int(words[0]), tuple(word for word in words[1:] if "=" not in word), null
    values = [ast.literal_eval(word) if re.match(r"-?\d|[('\"]|None|True|False", word) else word for word in words]
    return values[0] if len(values) == 1 else tuple(values) or (False if op in (Op.IS, Op.IN) else None)


def flow(text: str, code: Any = FUNCTION, **facts: Any) -> FlowGraph:
    """The flow graph that ``text`` shows; ``facts`` are those of ``NormalCode``."""
    lines, offsets = lines_of(text), itertools.count(0, 2)
    ids, region = {line.label: id for id, line in enumerate(lines)}, regions_of(lines)
    ops: List[Instr] = []
    blocks: Dict[int, Block] = {}
    for id, (_, words, items, how, labels) in enumerate(lines):
        body = instrs(";".join(items), words.get("line", ""), offsets)
        ops += body
        if how is not None:
            op, arg = {"": (Op.JUMP, None), "for": (Op.FOR, False)}.get(how, (Op.BRANCH, how))
            ops.append(Instr(op, arg, next(offsets), body[-1].span if body else _span(words.get("line", ""))))
        term = _term(how, [ids[label] for label in labels], ops[-1:] if body or how is not None else [], id)
        left = tuple(filter(None, map(region, words.get("leaves", "").split(","))))
        blocks[id] = Block(id, body, term, region(words.get("in", "")), left)
    return FlowGraph(NormalCode(code, tuple(ops), **facts), blocks, 0, len(blocks))


def _term(how: Optional[str], targets: List[int], last: List[Instr], id: int) -> Term:
    if how is None:
        return Jump(id + 1) if last and last[0].op not in (Op.RETURN, Op.RAISE, Op.RERAISE) else End()
    if how == "":
        return Jump(targets[0], last[0].offset)
    if how == "for":
        return For(False, targets[0], targets[1], last[0])
    return Branch(Test.NONE if "none" in how else Test.TRUTH, how in ("true", "none"), targets[0], targets[1], last[0])


def shown(graph: FlowGraph) -> List[str]:
    """A line for each block that can be reached, numbered as they are: the same for graphs that are the same but for
    the numbers of blocks, offsets and the places of jumps."""
    numbers: Dict[int, int] = {}
    todo = [graph.entry]
    while todo:
        block = graph.blocks[todo.pop()]
        if numbers.setdefault(block.id, len(numbers)) == len(numbers) - 1:
            around = [region.entry for region in (*block.leaves, block.region) if region is not None]
            todo.extend(id for id in reversed([*block.successors(), *around]) if id not in numbers)

    def named(region: Optional[Region]) -> str:
        return "" if region is None else f"{numbers[region.entry]}/{region.depth}"

    result = []
    for id, number in numbers.items():
        block = graph.blocks[id]
        ops = [f"{instr.op.name} {instr.arg!r} @{instr.line}" for instr in block.ops]
        term: Any = block.term
        test = term.test.value if isinstance(term, Branch) else ""
        kind = [type(term).__name__, test, str(getattr(term, "jump_when", ""))]
        where = [f"{number}", f"in {named(block.region)}", f"leaves {[named(region) for region in block.leaves]}"]
        result.append(" ".join([*where, ": ", "; ".join(ops), *kind, *(str(numbers[to]) for to in block.successors())]))
    return result
