"""The transfer functions of operations on the symbolic values of a pattern, and reading with them."""

from __future__ import annotations

import ast
from typing import Callable, Dict, List, Optional, Set

from depyf.decompiler.flow.graph import FlowGraph
from depyf.decompiler.flow.match.items import ExtractedParts, FromBack, Item, Keys, Known, Length, Rest, Shared, Tested
from depyf.decompiler.flow.match.parts import Equals, IsInstance, IsMapping, IsSequence, IsSingleton, NotAPattern, Part
from depyf.decompiler.flow.match.reader import PatternReader, Position, Reading, Rule
from depyf.decompiler.normal.ops import Instr, Op


def _copy(reader: PatternReader, instr: Instr) -> None:
    item = reader.peek(instr.arg)
    if instr.arg == 1 and isinstance(item, Part) and not reader.stored and reader.begins_alternatives():
        reader.read_alternatives()
    else:
        reader.stack.append(item)


def _swap(reader: PatternReader, instr: Instr) -> None:
    stack, count = reader.stack, instr.arg
    if len(stack) - count < reader.floor:
        raise NotAPattern("more than the subject is moved")
    stack[-1], stack[-count] = stack[-count], stack[-1]


def _pop(reader: PatternReader, instr: Instr) -> None:
    reader.pop()


def _store(reader: PatternReader, instr: Instr) -> None:
    item = reader.pop()
    if reader.alternatives or not isinstance(item, (Part, Rest, Shared)):
        raise NotAPattern("something is stored that is not captured")
    if isinstance(item, Rest) and (item.fact is None or item.deleted != len(item.fact.keys)):
        raise NotAPattern("the rest of a mapping is stored too early")
    item.bind(instr.arg[1])
    reader.stored = True


def _const(reader: PatternReader, instr: Instr) -> None:
    reader.stack.append(Known(ast.Constant(instr.arg)))


def _load(reader: PatternReader, instr: Instr) -> None:
    reader.stack.append(Known(ast.Name(instr.arg[1], ast.Load())))


def _attr(reader: PatternReader, instr: Instr) -> None:
    base = reader.pop()
    if not isinstance(base, Known) or isinstance(base.expr, ast.Constant):
        raise NotAPattern("an attribute of a part of the subject")
    reader.stack.append(Known(ast.Attribute(base.expr, instr.arg, ast.Load())))


def _compare(reader: PatternReader, instr: Instr) -> None:
    known, item = reader.pop(), reader.pop()
    if isinstance(item, Length) and isinstance(known, Known) and known.number is not None:
        reader.stack.append(Tested(_length_learner(item.part, instr.arg, known.number)))
    elif instr.arg == "==" and isinstance(known, Known) and known.can_be_value():
        part, value = reader.part(item), known.expr
        reader.stack.append(Tested(lambda: part.learn(Equals(value))))
    else:
        raise NotAPattern("another comparison than patterns make")


def _length_learner(part: Part, operator: str, count: int) -> Callable[[], None]:
    def learn() -> None:
        fact = part.fact
        if isinstance(fact, IsSequence) and fact.length is None and operator in ("==", ">="):
            fact.length = (operator, count)
        elif isinstance(fact, IsMapping) and fact.count is None and operator == ">=":
            fact.count = count
        else:
            raise NotAPattern("a length is tested that no pattern asks for")

    return learn


def _is(reader: PatternReader, instr: Instr) -> None:
    known, item = reader.pop(), reader.pop()
    if not isinstance(known, Known) or not known.is_constant(bool, type(None)):
        raise NotAPattern("the identity of something else than a singleton is tested")
    # 3.10 tests ``is not None``. Dynamo replaces the jumps of 3.11 and later that test for None by either comparison.
    if isinstance(item, ExtractedParts) and known.constant is None:
        reader.stack.append(Tested(lambda: None, negated=not instr.arg))
    elif not instr.arg or known.constant is None:
        part, value = reader.part(item), known.constant
        reader.stack.append(Tested(lambda: part.learn(IsSingleton(value)), negated=instr.arg))
    else:
        raise NotAPattern("a negated identity is tested")


def _match_sequence(reader: PatternReader, instr: Instr) -> None:
    part = reader.part(reader.peek(1))
    reader.stack.append(Tested(lambda: part.learn(IsSequence())))


def _match_mapping(reader: PatternReader, instr: Instr) -> None:
    part = reader.part(reader.peek(1))
    reader.stack.append(Tested(lambda: part.learn(IsMapping())))


def _get_len(reader: PatternReader, instr: Instr) -> None:
    reader.stack.append(Length(reader.part(reader.peek(1))))


def _binary(reader: PatternReader, instr: Instr) -> None:
    known, item = reader.pop(), reader.pop()
    if instr.arg != "-" or not isinstance(item, Length) or not isinstance(known, Known) or known.number is None:
        raise NotAPattern("patterns do not calculate")
    reader.stack.append(FromBack(item.part, known.number))


def _subscr(reader: PatternReader, instr: Instr) -> None:
    # [a, *_, b]: COPY 1; CONST 0; SUBSCR for ``a``, COPY 1; GET_LEN; CONST 1; BINARY -; SUBSCR for ``b``
    index, item = reader.pop(), reader.pop()
    number = index.number if isinstance(index, Known) else None
    if isinstance(item, ExtractedParts):  # 3.10 reads them one by one
        if number is None or not 0 <= number < len(item.parts):
            raise NotAPattern("something is looked at that was not found")
        reader.stack.append(item.parts[number])
        return
    part = reader.part(item)
    fact, element = part.fact, Part()
    if not isinstance(fact, IsSequence) or fact.elements is not None:
        raise NotAPattern("an element of no sequence")
    if isinstance(index, FromBack) and index.part is part and index.count not in fact.back:
        fact.back[index.count] = element
    elif number is not None and number not in fact.front and not fact.back:
        fact.front[number] = element
    else:
        raise NotAPattern("an element is looked at in a way that patterns do not")
    reader.stack.append(element)


def _unpack(reader: PatternReader, instr: Instr) -> None:
    # [a, *b]: UNPACK_EX; A(x), {1: x}: the found values; ``**rest``: the keys, to delete them from the copy
    item = reader.pop()
    before, after = (instr.arg, 0) if instr.op is Op.UNPACK else instr.arg
    count = instr.arg if instr.op is Op.UNPACK else before + 1 + after
    if isinstance(item, Part) and isinstance(item.fact, IsSequence) and item.fact.elements is None:
        elements = [Part() for _ in range(count)]
        item.fact.elements, item.fact.star = elements, before if instr.op is Op.UNPACK_EX else None
        parts: List[Item] = [*elements]
    elif isinstance(item, ExtractedParts) and instr.op is Op.UNPACK and len(item.parts) == count:
        parts = list(item.parts)
    elif isinstance(item, Keys) and instr.op is Op.UNPACK and len(item.fact.keys) == count:
        parts = [item] * count
    else:
        raise NotAPattern("something else than a part of the subject is unpacked")
    reader.stack.extend(reversed(parts))


def _match_keys(reader: PatternReader, instr: Instr) -> None:
    keys, part = reader.peek(1), reader.part(reader.peek(2))
    fact = part.fact
    if not isinstance(fact, IsMapping) or fact.keys or not isinstance(keys, Known):
        raise NotAPattern("keys of no mapping")
    if isinstance(keys.expr, ast.Tuple):
        fact.keys = list(keys.expr.elts)
    elif isinstance(keys.constant, tuple):
        fact.keys = [ast.Constant(key) for key in keys.constant]
    fact.values = [Part() for _ in fact.keys]
    reader.stack[-1] = Keys(fact)
    reader.stack.append(ExtractedParts(fact.values))


def _match_class(reader: PatternReader, instr: Instr) -> None:
    names, cls, part = reader.pop(), reader.pop(), reader.part(reader.pop())
    found = names.constant if isinstance(names, Known) else None
    if not isinstance(found, tuple) or not isinstance(cls, Known):
        raise NotAPattern("a class pattern without names")
    if not all(isinstance(name, str) for name in found):
        raise NotAPattern("a class pattern with names that are none")
    if isinstance(cls.expr, ast.Constant):
        raise NotAPattern("a class pattern without class")
    attributes = [Part() for _ in range(instr.arg + len(found))]
    part.learn(IsInstance(cls.expr, instr.arg, found, attributes))
    reader.stack.append(ExtractedParts(attributes))


def _build(reader: PatternReader, instr: Instr) -> None:
    kind, count = instr.arg
    if (kind, count) == ("map", 0):
        reader.stack.append(Rest())
        return
    items = [reader.pop() for _ in range(count)]
    keys = [item.expr for item in reversed(items) if isinstance(item, Known)]
    if kind != "tuple" or len(keys) < len(items):
        raise NotAPattern("patterns build nothing but keys")
    reader.stack.append(Known(ast.Tuple(keys, ast.Load())))


def _update(reader: PatternReader, instr: Instr) -> None:
    part = reader.part(reader.pop())
    rest = reader.peek(instr.arg[1])
    if not isinstance(rest, Rest) or rest.fact is not None or not isinstance(part.fact, IsMapping):
        raise NotAPattern("the rest of no mapping")
    rest.fact = part.fact


def _delete_subscr(reader: PatternReader, instr: Instr) -> None:
    key, rest = reader.pop(), reader.pop()
    if not isinstance(rest, Rest) or not isinstance(key, Keys) or key.fact is not rest.fact:
        raise NotAPattern("patterns delete nothing but keys")
    rest.deleted += 1


def _intrinsic(reader: PatternReader, instr: Instr) -> None:
    """Copy a mapping without the matched keys: one operation in 3.10."""
    keys, part = reader.pop(), reader.part(reader.pop())
    if instr.arg[0] != "COPY_DICT_WITHOUT_KEYS" or not isinstance(keys, Keys) or keys.fact is not part.fact:
        raise NotAPattern("the rest of no mapping")
    reader.stack.append(Rest(keys.fact, len(keys.fact.keys)))


RULES: Dict[Op, Rule] = {
    Op.COPY: _copy, Op.SWAP: _swap, Op.POP: _pop, Op.STORE: _store, Op.CONST: _const, Op.LOAD: _load,
    Op.ATTR: _attr, Op.COMPARE: _compare, Op.IS: _is, Op.MATCH_SEQUENCE: _match_sequence,
    Op.MATCH_MAPPING: _match_mapping, Op.GET_LEN: _get_len, Op.BINARY: _binary, Op.SUBSCR: _subscr,
    Op.UNPACK: _unpack, Op.UNPACK_EX: _unpack, Op.MATCH_KEYS: _match_keys, Op.MATCH_CLASS: _match_class,
    Op.BUILD: _build, Op.UPDATE: _update, Op.DELETE_SUBSCR: _delete_subscr, Op.INTRINSIC: _intrinsic,
}  # fmt: skip


def read_pattern(
    graph: FlowGraph, sources: Dict[int, int], start: Position, unlike: Set[Position], *, copied: bool
) -> Optional[Reading]:
    """Return the pattern at ``start``; ``None`` when the operations there are not one."""
    try:
        return PatternReader(RULES, graph, sources, start, unlike, copied=copied).read()
    except NotAPattern:
        return None
