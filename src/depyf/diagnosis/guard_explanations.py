"""A guard that failed, in words: what it looks at, the value it was compiled for, the value now, and what avoids it.

The input is torch's own text: what its recompile reasons say, or a guard as it prints it. Text that is not known here
comes back as it is.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass, replace
from typing import Callable, List, Match, NamedTuple, Optional, Pattern, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.diagnosis.guard_advice import ANY_FRAME, GuardCause, GuardedFrame, advice_for_guard, origin_of
from depyf.diagnosis.state_explanations import explain_keys, explain_state
from depyf.source.printing.unparsing import unparse


@dataclass(frozen=True)
class GuardExplanation:
    """``subject`` is what the guard looks at, as users write it (``self.layers[0].training``), empty for global state.

    ``words`` is one sentence without a full stop. ``before`` and ``now`` are values as texts, None where the text does
    not tell. ``advice`` says what avoids it, empty where nothing does; it follows from ``cause`` and from where the
    subject comes from, which ``code`` (the guard as torch has it) and the function say (``in_frame``). ``detail`` is
    the dimension, for a size.
    """

    subject: str
    words: str
    before: Optional[str] = None
    now: Optional[str] = None
    advice: str = ""
    cause: GuardCause = GuardCause.UNKNOWN
    detail: str = ""
    code: str = ""


class GuardText(NamedTuple):
    """The parts of a guard as torch prints it: ``entry`` is the compile id before it, ``place`` file and line after."""

    entry: Optional[str]
    code: str
    user_code: str
    place: Optional[Tuple[str, int]]


_ENTRY = re.compile(r"\A(!?[\d/]+/\d+(?:_\d+)?): ")
_PLACE = re.compile(r"#\s*((?:[^#])*?)\s*#\s*(\S[^#]*?):(\d{1,9}) in ")
_STACK = "\nUser stack trace:"


def split(text: str) -> GuardText:
    """The guard, the line of the user that torch names after it, and the cache entry that it names before it."""
    entry = _ENTRY.match(text)
    rest = text[entry.end() :] if entry else text
    rest = rest.partition(_STACK)[0].strip()
    code = _without_comment(rest)
    place = _PLACE.search(rest, len(code))
    return GuardText(
        entry.group(1) if entry else None,
        code,
        place.group(1) if place else "",
        (place.group(2), int(place.group(3))) if place else None,
    )


def _without_comment(text: str) -> str:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                lines = text.splitlines(keepends=True)
                return ("".join(lines[: token.start[0] - 1]) + token.line[: token.start[1]]).strip()
    except (tokenize.TokenError, SyntaxError):  # words, not Python
        return text.partition("  #")[0].strip()
    return text.strip()


def explain(text: str, now: Optional[str] = None, frame: GuardedFrame = ANY_FRAME) -> GuardExplanation:
    """The words for a guard of ``frame`` that failed; ``now`` is the value that it looked at, where that is known."""
    code = split(text).code
    return in_frame(replace(_explain(code, now), code=code), frame)


def in_frame(words: GuardExplanation, frame: GuardedFrame) -> GuardExplanation:
    """The same with the advice for a guard of this function."""
    if words.cause is GuardCause.UNKNOWN:
        return words
    origin = origin_of(words.code, words.subject, frame)
    return replace(words, advice=advice_for_guard(words.cause, origin, words.subject, words.detail) or words.advice)


def _explain(code: str, now: Optional[str]) -> GuardExplanation:
    for pattern, tell in _RULES:
        match = pattern.search(code)
        if match is not None:
            words = tell(match)
            return words if now is None or words.now is not None else _with_value(words, now)
    return _of_expression(code, now)


def _with_value(words: GuardExplanation, now: str) -> GuardExplanation:
    return replace(words, words=f"{words.words}; now: {now}", now=now)


_LOCAL = re.compile(r"\b[LG]\['([^'\\]+)'\]")
_MEMBER = re.compile(r"\.(?:_modules|_parameters|_buffers)\['([^'\\]+)'\]")
_CLASS = re.compile(r"<(?:class|enum) '([^']*)'>")
_IDENTIFIER = re.compile(r"[^\W\d]\w*\Z")


def as_written(source: str) -> str:
    """A source of torch's as a user writes it: ``L['self']._modules['layers']._modules['0']`` is ``self.layers[0]``."""
    text = _LOCAL.sub(lambda match: match.group(1), source.strip())
    text = _MEMBER.sub(_member, text)
    text = re.sub(r"___from_numpy\(([^()]*)\)", r"\1", text)
    return re.sub(r"\.__closure__\[(\d+)\]\.cell_contents", r" (closure variable \1)", text)


def _member(match: Match[str]) -> str:
    name = match.group(1)
    if name.isdigit():
        return f"[{name}]"
    return f".{name}" if _IDENTIFIER.match(name) else f".{match.group(1)!r}"


def _class_name(text: str) -> str:
    match = _CLASS.search(text)
    name = match.group(1) if match else text.strip()
    return name[len("builtins.") :] if name.startswith("builtins.") else name


def _size(match: Match[str]) -> GuardExplanation:
    name, index, before, now = as_written(match[1]), match[2], match[3], match[4]
    words = f"{name} has size {now} in dimension {index}, and was compiled for {before}"
    return GuardExplanation(name, words, before, now, cause=GuardCause.SIZE, detail=index)


def _stride(match: Match[str]) -> GuardExplanation:
    name, index, before, now = as_written(match[1]), match[2], match[3], match[4]
    words = f"{name} has stride {now} in dimension {index}, and was compiled for {before}"
    return GuardExplanation(name, words, before, now, cause=GuardCause.STRIDE)


def _rank(match: Match[str]) -> GuardExplanation:
    name, before, now = as_written(match[1]), match[2], match[3]
    words = f"{name} has {now} dimension(s), and was compiled for {before}"
    return GuardExplanation(name, words, before, now, cause=GuardCause.RANK)


_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Bool": "bool",
    "ComplexHalf": "complex32",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
"""torch's names in C++, which its guards print, and in Python."""


def _dtype(match: Match[str]) -> GuardExplanation:
    name, before, now = as_written(match[1]), match[2].strip(), match[3].strip()
    before, now = _DTYPES.get(before, before), _DTYPES.get(now, now)
    words = f"{name} has dtype {now}, and was compiled for {before}"
    return GuardExplanation(name, words, before, now, cause=GuardCause.DTYPE)


def _requires_grad(match: Match[str]) -> GuardExplanation:
    name, before = as_written(match[1]), match[2] == "1"
    is_now, was = ("does not require grad", "requires grad") if before else ("requires grad", "does not")
    words = f"{name} {is_now}, and was compiled for one that {was}"
    return GuardExplanation(name, words, str(before), str(not before), cause=GuardCause.REQUIRES_GRAD)


def _tensor_class(match: Match[str]) -> GuardExplanation:
    name, now = as_written(match[1]), _class_name(match[2])
    words = f"{name} is of class {now}, and was a tensor of another class"
    return GuardExplanation(name, words, None, now, cause=GuardCause.CLASS)


def _dispatch_keys(match: Match[str]) -> GuardExplanation:
    name, before, now = as_written(match[1]), match[2].split(", "), match[3].split(", ")
    new = [key for key in now if key not in before]
    gone = [key for key in before if key not in now]
    change = " and ".join(
        [*(["has " + ", ".join(new)] if new else []), *(["lacks " + ", ".join(gone)] if gone else [])]
    )
    state = explain_keys(name, new, gone)
    if state is not None:
        return GuardExplanation(name, state.words, match[2], match[3], state.advice, cause=GuardCause.STATE)
    words = (
        f"{name} is another kind of tensor (device, layout, view or mode): its dispatch key set {change or 'differs'}"
    )
    return GuardExplanation(name, words, match[2], match[3], cause=GuardCause.TENSOR_KIND)


def _duplicate(_: Match[str]) -> GuardExplanation:
    words = "two arguments are the same tensor, and were compiled as different ones"
    return GuardExplanation("", words, cause=GuardCause.SAME_TENSOR)


def _global_state(match: Match[str]) -> GuardExplanation:
    told = explain_state(match[1].strip())
    return GuardExplanation("", told.words, told.before, told.now, told.advice, cause=GuardCause.STATE)


def _modes(_: Match[str]) -> GuardExplanation:
    words = "other torch function modes are active (torch.set_default_device is one) than when this was compiled"
    return GuardExplanation("", words, cause=GuardCause.MODES)


def _hooks(_: Match[str]) -> GuardExplanation:
    words = "other saved-tensors hooks are active than when this was compiled"
    return GuardExplanation("", words, cause=GuardCause.HOOKS)


def _key_error(match: Match[str]) -> GuardExplanation:
    name = as_written(match[2])
    words = f"{name} is missing, and was there when this was compiled"
    return GuardExplanation(name, words, None, "missing", cause=GuardCause.MEMBERS)


def _number_of_keys(match: Match[str]) -> GuardExplanation:
    name, before = as_written(match[1]), match[2]
    words = f"{name} has another number of keys than {before}, which it was compiled for"
    return GuardExplanation(name, words, before, cause=GuardCause.KEYS)


def _not_computed(match: Match[str]) -> GuardExplanation:
    words = f"relations of sizes that this was compiled for can't be computed for this call: {match[0]}"
    return GuardExplanation("", words, advice="pass views of the same kind each time")


def _type_mismatch(match: Match[str]) -> GuardExplanation:
    name = as_written(match[1])
    return GuardExplanation(name, f"{name} is of another class than it was compiled for", cause=GuardCause.CLASS)


def _marks(match: Match[str]) -> GuardExplanation:
    now, before = match[2], match[3]
    words = f"dimensions {now} of a tensor are marked ({match[1]}), and it was compiled for marks on {before}"
    return GuardExplanation("", words, before, now, cause=GuardCause.MARKS)


def _marked(_: Match[str]) -> GuardExplanation:
    words = "a dimension of a tensor is marked (mark_dynamic or the like), and none was when this was compiled"
    return GuardExplanation("", words, cause=GuardCause.MARKS)


def _class_id(match: Match[str]) -> GuardExplanation:
    name, before = as_written(match[1]), _class_name(match[2]) if match[2] else None
    words = f"{name} is not a {before}, which it was compiled for" if before else f"{name} is of another class"
    return GuardExplanation(name, words, before, cause=GuardCause.CLASS)


def _object_id(match: Match[str]) -> GuardExplanation:
    name, kind = as_written(match[1]), _class_name(match[2]) if match[2] else "object"
    if name.endswith(".__code__"):
        name = name[: -len(".__code__")]
        return GuardExplanation(name, f"{name} is another function than it was compiled for", cause=GuardCause.FUNCTION)
    words = f"{name} is another object than the {kind} that it was compiled for"
    return GuardExplanation(name, words, cause=GuardCause.IDENTITY)


def _backend(_: Match[str]) -> GuardExplanation:
    words = "it was compiled with another backend callable"
    return GuardExplanation("", words, cause=GuardCause.BACKEND)


def _invalidated(_: Match[str]) -> GuardExplanation:
    words = "an object that this code was compiled for is gone, so torch has thrown the code away"
    return GuardExplanation("", words, cause=GuardCause.GONE)


Rule = Tuple[Pattern[str], Callable[[Match[str]], GuardExplanation]]

_RULES: List[Rule] = [
    (re.compile(r"\Atensor '(.*)' size mismatch at index (\d+)\. expected (\S+), actual (\S+)"), _size),
    (re.compile(r"\Atensor '(.*)' stride mismatch at index (\d+)\. expected (\S+), actual (\S+)"), _stride),
    (re.compile(r"\Atensor '(.*)' rank mismatch\. expected (\S+), actual (\S+)"), _rank),
    (re.compile(r"\Atensor '(.*)' dtype mismatch\. expected (.*), actual (.*)"), _dtype),
    (re.compile(r"\Atensor '(.*)' requires_grad mismatch\. expected requires_grad=(\d)"), _requires_grad),
    (
        re.compile(r"\Atensor '(.*)' dispatch key set mismatch\. expected DispatchKeySet\((.*)\), actual \w+\((.*)\)"),
        _dispatch_keys,
    ),
    (re.compile(r"\Aexpected type of '(.*)' to be a tensor type, ' but found (.*)"), _tensor_class),
    (re.compile(r"\ADuplicate tensors? found"), _duplicate),
    (re.compile(r"\AGLOBAL_STATE changed: (.*)"), _global_state),
    (re.compile(r"___check_global_state\(\)()"), _global_state),
    (re.compile(r"___check_torch_function_mode_stack"), _modes),
    (re.compile(r"top_saved_tensors_hooks"), _hooks),
    (re.compile(r"\A(\w+Error on|getattr failed on source) (.*)"), _key_error),
    (re.compile(r"\A'\w+' object (?:has no|is not) .*"), _not_computed),
    (re.compile(r"\Alen\((.*)\) != (\d+)\Z"), _number_of_keys),
    (re.compile(r"\ATYPE_MISMATCH\((.*)\)\Z"), _type_mismatch),
    (re.compile(r"\A_dynamo_(\w+) not a subset: runtime (.*) is not a subset of compiled (.*)"), _marks),
    (re.compile(r"\A_has_dynamo_dim_marking is present"), _marked),
    (re.compile(r"\A___check_type_id\((.*), \d+\)(?:, type=(.*))?\Z", re.S), _class_id),
    (re.compile(r"\A___check_obj_id\((.*), \d+\)(?:, type=(.*))?\Z", re.S), _object_id),
    (re.compile(r"\ABACKEND_MATCH failure"), _backend),
    (re.compile(r"\ACache line invalidated"), _invalidated),
]


def _of_expression(code: str, now: Optional[str]) -> GuardExplanation:
    """Words for a guard that is a Python expression, by its form."""
    try:
        tree: Optional[ast.expr] = parse(_readable(code), mode="eval").body
    except synchronous(SyntaxError, ValueError, RecursionError):
        tree = None
    told = None if tree is None else _of_tree(tree, now)
    return told or GuardExplanation("", f"this does not hold: {as_written(code)}", None, now)


def _readable(code: str) -> str:
    """``code`` with classes, which torch prints as ``<class 'int'>``, as names."""
    return _CLASS.sub(lambda match: match.group(1).rpartition(".")[2], code)


def _of_tree(tree: ast.expr, now: Optional[str]) -> Optional[GuardExplanation]:
    if isinstance(tree, ast.Compare):
        return _comparison(tree, now)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return _negation(tree.operand, now)
    if isinstance(tree, ast.Call):
        return _call(tree, now, holds=True)
    if isinstance(tree, ast.BoolOp) and "isnan" in unparse(tree):
        name = _subject(tree)
        return GuardExplanation(
            name, f"{name} is not nan{_is(now)}, and was compiled for nan", "nan", now, cause=GuardCause.NUMBER
        )
    return None


def _comparison(tree: ast.Compare, now: Optional[str]) -> GuardExplanation:
    left, right = tree.left, tree.comparators[-1]
    subject, name, value = _subject(tree), as_written(unparse(left)), as_written(unparse(right))
    operator = tree.ops[0]
    if ".size()" in unparse(tree) or ".stride()" in unparse(tree) or ".storage_offset()" in unparse(tree):
        what = ", which does not hold" if now is None else f"; now: {now}"
        words = f"it was compiled for {as_written(unparse(tree))}{what}"
        return GuardExplanation(subject, words, None, now, cause=GuardCause.SIZES)
    if isinstance(operator, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        was = "not None" if isinstance(operator, ast.IsNot) else "None"
        is_now = "None" if was == "not None" else "not None"
        words = f"{name} is {is_now}, and was compiled for {was}"
        return GuardExplanation(subject, words, was, now or is_now, cause=GuardCause.NONE)
    if isinstance(operator, (ast.Is, ast.IsNot)):
        relation = "different objects" if isinstance(operator, ast.IsNot) else "the same object"
        words = f"{name} and {value} are not {relation}, which they were compiled for"
        return GuardExplanation(subject, words, cause=GuardCause.SAME_OBJECT)
    if isinstance(left, ast.Call) and unparse(left.func) == "len":
        inner = as_written(unparse(left.args[0]))
        words = f"{inner} has {now or 'another number of'} items, and was compiled for {value}"
        return GuardExplanation(inner, words, value, now, cause=GuardCause.LENGTH)
    if "dict.keys(" in name or ".keys()" in name:
        words = f"the keys of {subject} (or their order) are others: {name} was {value}{_is(now)}"
        return GuardExplanation(subject, words, value, now, cause=GuardCause.KEYS)
    shown = _plain_call(name)
    words = (
        f"{shown} is {now}, and was compiled for {value}"
        if now is not None
        else f"{shown} is not {value}, which it was compiled for"
    )
    cause = GuardCause.LENGTH if "items left in" in shown else _cause_of(subject, right)
    return GuardExplanation(subject, words, value, now, cause=cause)


def _plain_call(name: str) -> str:
    """What torch's helpers ask, in words: ``___tuple_iterator_len(it)`` is what is left of ``it``."""
    match = re.match(r"___(\w+?)_(len|getitem)\((.*?)(?:, (\d+))?\)\Z|___normalize_(\w+)_iter\((.*)\)\Z", name)
    if match is None:
        return name
    if match.group(5):
        return f"the state of the iterator {match.group(6)}"
    return (
        f"the number of items left in {match.group(3)}"
        if match.group(2) == "len"
        else f"item {match.group(4)} of {match.group(3)}"
    )


def _cause_of(subject: str, value: ast.expr) -> GuardCause:
    """What a guard on the value of ``subject`` is about, by that value."""
    if subject.endswith(".training"):
        return GuardCause.TRAINING
    constant = value.operand if isinstance(value, ast.UnaryOp) else value
    if isinstance(constant, ast.Constant) and isinstance(constant.value, (bool, str, type(None))):
        return GuardCause.NONE if constant.value is None else GuardCause.CHOICE
    is_number = isinstance(constant, ast.Constant) and isinstance(constant.value, (int, float, complex))
    return GuardCause.NUMBER if is_number or unparse(value) in ("inf", "-inf") else GuardCause.CHOICE


def _negation(operand: ast.expr, now: Optional[str]) -> Optional[GuardExplanation]:
    if isinstance(operand, ast.Call):
        return _call(operand, now, holds=False)
    name = as_written(unparse(operand))
    words = f"{name} is not empty{_is(now)}, and was compiled for an empty one"
    return GuardExplanation(name, words, "empty", now, cause=GuardCause.LENGTH)


def _call(tree: ast.Call, now: Optional[str], *, holds: bool) -> Optional[GuardExplanation]:
    called, arguments = unparse(tree.func), [as_written(unparse(each)) for each in tree.args]
    is_now, was = ("lacks", "had") if holds else ("has", "lacked")
    if called == "hasattr" and len(arguments) == 2:
        attribute = arguments[1].strip("'\"")
        words = f"{arguments[0]} {is_now} the attribute {attribute}, which it {was} when this was compiled"
        return GuardExplanation(f"{arguments[0]}.{attribute}", words, was, is_now, cause=GuardCause.MEMBERS)
    if called in ("___dict_contains", "set.__contains__", "___set_contains") and len(arguments) == 2:
        key, container = arguments if called == "___dict_contains" else reversed(arguments)
        container = container[: -len(".__dict__")] if container.endswith(".__dict__") else container
        words = f"{container} {is_now} {key}, which it {was} when this was compiled"
        return GuardExplanation(container, words, was, is_now, cause=GuardCause.MEMBERS)
    if called.endswith("isnan"):
        name = _subject(tree) or called
        words = (
            f"{name} is {'not nan' if holds else 'nan'}, which it was{'' if holds else ' not'} when this was compiled"
        )
        return GuardExplanation(name, words, None, now, cause=GuardCause.NUMBER)
    return None


def _is(now: Optional[str]) -> str:
    return "" if now is None else f" ({now})"


_NOT_OF_THE_FRAME = frozenset(
    ("bool", "complex", "device", "dict", "float", "hasattr", "inf", "int", "isinstance", "len", "list", "math", "nan")
    + ("set", "str", "torch", "tuple", "type")
)


def _subject(tree: ast.AST) -> str:
    """The first value of the frame that an expression reads, as far as its attributes and items go."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Name)):
            root: ast.AST = node
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name) and root.id not in _NOT_OF_THE_FRAME and not root.id.startswith("__"):
                return re.sub(r"\.(?:size|stride|keys|item)(?:\(\))?(?:\[\d+\])?\Z", "", as_written(unparse(node)))
    left = getattr(tree, "left", None)
    return left.id if isinstance(left, ast.Name) else ""
