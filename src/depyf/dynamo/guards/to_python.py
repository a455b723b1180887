"""PyTorch's text of one guard, turned into a Python expression that checks the same; ``None`` where there is none.

The text is made for people: it mixes in class names, ids and JSON, and is less strict than the check behind it
(``L['n'] == 2`` also demands an ``int``). So the kind of the guard decides, and the text only gives the operands.
"""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import json
import re
from dataclasses import dataclass, field
from typing import Callable, Dict, FrozenSet, Mapping, Optional, Sequence, Set, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.literals import literal_value
from depyf.dynamo.guards.python_guards import is_same_in_every_run
from depyf.dynamo.guards.tree import ACCESS, DICT_MANAGER, TEXT, Check
from depyf.dynamo.hooks import cache_entries

_ID_CHECK = re.compile(r"_{2,3}check_(obj_id|type_id|fake_script_type)\((.*), (\d+)\)(?:, type=(.*))?\Z", re.S)
_CLASS = re.compile(r"<(?:class|enum) '(.*)'>\Z", re.S)
_TENSOR = re.compile(
    r"check_tensor\((?P<ref>.*), (?P<cls>[\w.<>]+), DispatchKeySet\((?P<keys>[^()]*)\), (?P<dtype>torch\.\w+), "
    r"device=(?P<device>\w+), requires_grad=(?P<grad>\w+), size=(?P<size>\[.*?\]|None), "
    r"stride=(?P<stride>\[.*?\]|None)\)\Z",
    re.S,
)
_GLOBAL_STATE = re.compile(r"___check_global_state\(\) against (\{.*\})\Z", re.S)
_HOOKS = re.compile(r"torch\._functorch\.aot_autograd\.utils\.top_saved_tensors_hooks ids == (None|\(.*\))\Z", re.S)
_NO_MARK = re.compile(r"hasattr\((?P<ref>.*), '_dynamo_(?P<mark>\w+)'\) == False\Z", re.S)
_MARK = re.compile(
    r"\(\(getattr\((?P<ref>.*?), '_dynamo_(?P<mark>\w+)', set\(\)\)\.issubset\((?P<dims>[^()]*(?:\(\))?)\)\) if .*\Z",
    re.S,
)
_DISPATCH_KEYS = re.compile(r"(.*)\.raw_repr\(\) == (DispatchKeySet\([^()]*\))\.raw_repr\(\)\Z", re.S)
_ATTRIBUTE = re.compile(r"(?:Generic)?GetAttrGuardAccessor\((.*)\)\Z", re.S)
_LONG_NUMBER_IN_NAME = re.compile(r"_\d{9,}")

Edit = Tuple[Tuple[int, int], Tuple[int, int], str]
"""From and to, as line (from 1) and column (in UTF-8 bytes), and the text to stand there."""


@dataclass(frozen=True)
class Naming:
    """Names for what differs from run to run, collected while guards are rendered.

    ``stable`` makes text the same in every run. ``ids`` and ``names`` are what a ``LiveTable`` needs, ``used`` are the
    names that the expressions refer to.
    """

    stable: Callable[[str], str]
    ids: Dict[str, int] = field(default_factory=dict)
    names: Dict[str, str] = field(default_factory=dict)
    used: Set[str] = field(default_factory=set)

    def id_of(self, hint: str, value: int) -> str:
        """The expression for that id in the file: ``___ids['<hint>']``, numbered when the hint is taken."""
        name, count = hint, 1
        while self.ids.setdefault(name, value) != value:
            count += 1
            name = f"{hint}#{count}"
        return f"___ids[{name!r}]"

    def global_name(self, name: str) -> str:
        """The expression for the name of a global variable."""
        stable = self.stable(name)
        if stable == name:
            return repr(name)
        self.names[stable] = name
        return f"___names[{stable!r}]"


def split_comment(part: str, convert: Callable[[str], Optional[str]]) -> Tuple[Optional[str], str, str]:
    """(expression, PyTorch's code, the user's line) of one text part, ``code  # user line  # file:line in function``.

    A ``#`` may also stand in a string of the code, so the code ends at the first ``#`` before which it makes sense.
    """
    text = part.strip()
    ends = [match.start() for match in re.finditer(r"\s+# ", text)] or [len(text)]
    if ends[-1] != len(text):
        ends.append(len(text))
    for end in ends:
        expression = convert(text[:end].strip())
        if expression is not None:
            return expression, text[:end].strip(), text[end:].strip(" #\n")
    return None, text[: ends[0]].strip(), text[ends[0] :].strip(" #\n")


def convert(check: Check, code: str, naming: Naming) -> Optional[str]:
    """The Python expression for one text part of ``check`` (comment split off)."""
    converter = _CONVERTERS.get(check.kind, _as_it_stands)
    expression = converter(check, code, naming)
    return None if expression is None else tidy(expression, naming)


def convert_structure(check: Check, naming: Naming) -> Optional[str]:
    """The Python expression for a check that has no text of its own."""
    if check.kind == DICT_MANAGER:
        return _dict_manager(check, naming)
    if check.kind == ACCESS:
        return _access(check, naming)
    if check.kind == "DIMENSION_DYNAMIC_MARKING_GUARD":
        return _dimension_marks(check, naming)
    return None


def tidy(expression: str, naming: Naming) -> Optional[str]:
    """The expression with names that are the same in every run; ``None`` when it is no Python or uses unknown names."""
    try:
        tree = parse(expression, mode="eval")
    except synchronous(SyntaxError, ValueError, RecursionError):
        return None
    names, edits = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        replacement = _replacement(node, naming)
        if replacement is not None:
            end = (node.end_lineno or 0, node.end_col_offset or 0)  # type: ignore[attr-defined]
            edits.append(((node.lineno, node.col_offset), end, replacement))  # type: ignore[attr-defined]
    if not names <= _known_names():
        return None
    naming.used.update(names)
    text = " ".join(edited(expression, edits).split("\n")) if edits or "\n" in expression else expression
    # Everything is joined by ``and``, which binds tighter than these.
    loose = isinstance(tree.body, (ast.IfExp, ast.Lambda)) or (
        isinstance(tree.body, ast.BoolOp) and isinstance(tree.body.op, ast.Or)
    )
    return f"({text})" if loose else text


def _replacement(node: ast.AST, naming: Naming) -> Optional[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _LONG_NUMBER_IN_NAME.search(node.value) and naming.stable(node.value) != node.value:
            return naming.global_name(node.value)
    elif isinstance(node, ast.Set) and all(isinstance(element, ast.Constant) for element in node.elts):
        # The order of strings in a set is not the same in every run.
        return "{" + ", ".join(sorted(repr(element.value) for element in node.elts)) + "}"  # type: ignore[attr-defined]
    elif isinstance(node, ast.Name) and node.id == "inf":
        return "float('inf')"
    elif isinstance(node, ast.Name) and node.id == "device":
        return "torch.device"
    return None


def edited(text: str, edits: Sequence[Edit]) -> str:
    """``text`` with the ranges replaced; they do not overlap."""
    lines = [line.encode() for line in text.split("\n")]
    for (first, start), (last, end), replacement in sorted(edits, reverse=True):
        tail = lines[last - 1][end:]
        lines[first - 1 : last] = [lines[first - 1][:start] + replacement.encode() + tail]
    return b"\n".join(lines).decode()


@functools.lru_cache(maxsize=None)
def _known_names() -> FrozenSet[str]:
    own = {"L", "G", "___ids", "___names", "torch", "np", "math", *vars(guard_runtime), *dir(builtins)}
    return frozenset(own | set(guard_runtime.torch_guard_names()))


def _as_it_stands(check: Check, code: str, naming: Naming) -> Optional[str]:
    """Kinds whose text is Python: symbolic shapes, object identity, hasattr, iterators, NaN, default device ..."""
    return code


def _text(check: Check, code: str, naming: Naming) -> Optional[str]:
    if _ID_CHECK.match(code):
        return _id_check(check, code, naming)
    # The global state is compared with one that only PyTorch knows.
    return None if code.startswith("___check_global_state()") or not is_same_in_every_run(code) else code


def _equals(check: Check, code: str, naming: Naming) -> Optional[str]:
    reference, separator, shown = code.partition(" == ")
    member = _enum_member(check.value_type, shown)
    if separator and member is not None:
        return f"___check_obj_id({reference}, {naming.id_of(f'{type(member).__qualname__}.{member.name}', id(member))})"
    found, value = literal_value(shown)
    if not separator or not found:
        return None
    if check.value_type is not None and type(value) is not check.value_type:
        return None
    return f"___equals({reference}, {shown})"


def _enum_member(cls: Optional[type], shown: str) -> Optional[enum.Enum]:
    """The member that is shown as ``shown``, if only that object is equal to it."""
    if cls is None or not issubclass(cls, enum.Enum) or cls.__eq__ is not object.__eq__:
        return None
    return next((member for member in cls if repr(member) == shown), None)


def _identity_with(constant: str) -> Callable[[Check, str, Naming], Optional[str]]:
    def converter(check: Check, code: str, naming: Naming) -> Optional[str]:
        reference, separator, _ = code.rpartition(" == " if " == " in code else " is ")
        return f"{reference} is {constant}" if separator else None

    return converter


def _id_check(check: Check, code: str, naming: Naming) -> Optional[str]:
    match = _ID_CHECK.match(code)
    if match is None:
        return None
    what, reference, number, shown_type = match.groups()
    shown = _CLASS.match(shown_type or "")
    if what == "obj_id":
        hint = reference_name(reference)
    else:
        hint = shown.group(1) if shown else reference_name(reference)
    return f"___check_{what}({reference}, {naming.id_of(naming.stable(hint), int(number))})"


def reference_name(reference: str) -> str:
    """A short name for what a guard reads: ``L['self'].block`` -> ``self.block``."""
    name = re.sub(r"G\['__builtins_dict___\d+'\]", "builtins", reference)
    name = re.sub(r"\b[LG]\['(\w+)'\]", r"\1", name)
    name = re.sub(r"__import__\('([\w.]+)'\)", r"\1", name)
    return re.sub(r"\['(\w+)'\]", r".\1", name)


def _tensor(check: Check, code: str, naming: Naming) -> Optional[str]:
    match = _TENSOR.match(code)
    if match is None:
        return None
    part: Mapping[str, str] = match.groupdict()
    return (
        f"___check_tensor({part['ref']}, {part['cls']!r}, {part['keys']!r}, {part['dtype']}, device={part['device']}, "
        f"requires_grad={part['grad']}, size={part['size']}, stride={part['stride']})"
    )


def _global_state(check: Check, code: str, naming: Naming) -> Optional[str]:
    match = _GLOBAL_STATE.match(code)
    if match is None:
        return None
    state = guard_runtime.flat_global_state(json.loads(match.group(1)))
    return f"___check_global_state({', '.join(f'{key}={value!r}' for key, value in sorted(state.items()))})"


def _lambda(check: Check, code: str, naming: Naming) -> Optional[str]:
    match = _HOOKS.match(code)
    if match is None:
        # A checker that is a Python object is shown by its name with its id, which says nothing.
        return None if code.isidentifier() or _LONG_NUMBER_IN_NAME.match("_" + code.rpartition("_")[2]) else code
    if match.group(1) == "None":
        return "___inlined_saved_tensors_hooks() is None"
    numbers = re.findall(r"\d+", match.group(1))
    ids = [naming.id_of("saved tensors hook", int(number)) for number in numbers]
    return f"___inlined_saved_tensors_hooks() == ({', '.join(ids)},)"


def _iterator(check: Check, code: str, naming: Naming) -> Optional[str]:
    reference = re.match(r"___\w+\((.*)\) == ", code, re.S)
    if reference is None or check.value_type is None:
        return None
    name = guard_runtime._class_name(check.value_type)
    expected = naming.id_of(name, id(check.value_type))
    return f"___check_type_id({reference.group(1)}, {expected}) and {code}"


def _length(check: Check, code: str, naming: Naming) -> Optional[str]:
    empty = re.match(r"not (.*)\Z", code, re.S)
    return f"len({empty.group(1)}) == 0" if empty else code


def _dict_length(check: Check, code: str, naming: Naming) -> Optional[str]:
    match = re.match(r"not (?P<empty>.*)\Z|len\((?P<ref>.*)\) == (?P<length>\d+)\Z", code, re.S)
    if match is None:
        return None
    return f"dict.__len__({match['empty'] or match['ref']}) == {match['length'] or 0}"


def _dict_version(check: Check, code: str, naming: Naming) -> Optional[str]:
    reference, separator, version = code.rpartition(" == ")
    if not separator or not version.isdigit():
        return None
    return f"{reference} == {naming.id_of('version of ' + reference_name(check.source), int(version))}"


def _set_contains(check: Check, code: str, naming: Naming) -> Optional[str]:
    match = re.match(r"(not )?set\.__contains__\((.*)\)\Z", code, re.S)
    if match is None or (not match.group(1) and not cache_entries.tells_of_absent_items()):
        return None
    arguments = match.group(2)
    # C++ fails a container that is no set in either case.
    if match.group(1):
        reference = check.source
        return f"isinstance({reference}, (set, frozenset)) and not ___set_contains({arguments})"
    return f"___set_contains({arguments})"


def _dispatch_key_set(check: Check, code: str, naming: Naming) -> Optional[str]:
    match = _DISPATCH_KEYS.match(code)
    return None if match is None else f"str({match.group(1)}) == {match.group(2)!r}"


def _overlapping(check: Check, code: str, naming: Naming) -> Optional[str]:
    return "___" + code if code.startswith(("check_overlapping(", "check_no_aliasing(")) else None


def _dict_manager(check: Check, naming: Naming) -> Optional[str]:
    if check.length is None or check.value_type is None:
        return None
    expected = naming.id_of(guard_runtime._class_name(check.value_type), id(check.value_type))
    return tidy(f"___check_dict({check.source}, {expected}, {check.length})", naming)


def _access(check: Check, naming: Naming) -> Optional[str]:
    attribute = _ATTRIBUTE.match(check.parts[0])
    if attribute is None:
        return tidy(f"___reads({check.source})", naming)
    name = attribute.group(1)
    # The source of such a manager is that of the object whose attribute it reads, or that of the attribute.
    if check.source.endswith("." + name):
        return tidy(f"___reads({check.source})", naming)
    return tidy(f"hasattr({check.source}, {name!r})", naming)


def _dimension_marks(check: Check, naming: Naming) -> Optional[str]:
    marks: Dict[str, Optional[str]] = {}
    reference = check.source
    for part in check.parts:
        _, code, _ = split_comment(part, lambda text: text if _NO_MARK.match(text) or _MARK.match(text) else None)
        match = _NO_MARK.match(code) or _MARK.match(code)
        if match is None:
            return None
        reference = match["ref"]
        marks[match["mark"]] = match.groupdict().get("dims")
    if {f"_dynamo_{mark}" for mark in marks} != set(guard_runtime._MARKS):
        return None
    allowed = "".join(f", {mark}={dims}" for mark, dims in marks.items() if dims is not None)
    return tidy(f"___check_dimension_marks({reference}{allowed})", naming)


_CONVERTERS: Mapping[str, Callable[[Check, str, Naming], Optional[str]]] = {
    TEXT: _text,
    "EQUALS_MATCH": _equals,
    "TRUE_MATCH": _identity_with("True"),
    "FALSE_MATCH": _identity_with("False"),
    "NONE_MATCH": _identity_with("None"),
    "ID_MATCH": _id_check,
    "TYPE_MATCH": _id_check,
    "FAKE_SCRIPT_TYPE_MATCH": _id_check,
    "TENSOR_MATCH": _tensor,
    "GLOBAL_STATE": _global_state,
    "LAMBDA_GUARD": _lambda,
    "TUPLE_ITERATOR_LEN": _iterator,
    "RANGE_ITERATOR_MATCH": _iterator,
    "LENGTH_CHECK": _length,
    "DICT_LENGTH": _dict_length,
    "DICT_VERSION": _dict_version,
    "SET_CONTAINS": _set_contains,
    "DISPATCH_KEY_SET_MATCH": _dispatch_key_set,
    "STORAGE_OVERLAPPING": _overlapping,
    "NO_TENSOR_ALIASING": _overlapping,
}
