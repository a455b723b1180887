"""Parse PyTorch's texts of guards: printed guards, messages about failed ones, and reasons in logs.

Only this module has patterns of these texts. Text of an unknown form is a guard of kind UNKNOWN.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Callable, Dict, List, Match, Optional, Pattern, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import replace
from depyf.diagnosis.guard import Guard, GuardKind, StateChange, TensorProperties
from depyf.diagnosis.guard_expressions import read_expression
from depyf.diagnosis.guard_sources import class_name
from depyf.diagnosis.plain_guards import read_plain
from depyf.torch_trace.guard_comments import hint_in, split_comment, users_line
from depyf.torch_trace.recompiles import DIFFERENCES, TOGETHER, FailedGuardText

_CHECK_TENSOR = regex(
    r"\Acheck_tensor\((?P<source>.*), (?P<class_name>[\w.<>]+), DispatchKeySet\((?P<dispatch_keys>[^()]*)\), "
    r"(?P<dtype>torch\.\w+), device=(?P<device>\w+), requires_grad=(?P<requires_grad>\w+), "
    r"size=(?P<size>\[.*?\]|None), stride=(?P<stride>\[.*?\]|None)\)\Z",
    re.S,
)


@functools.lru_cache(maxsize=4096)
def read(text: str) -> Guard:
    """Return the guard of a text: a printed guard, or a message about a failed one. A comment with the user's line may
    follow.
    """
    code, comment = split_comment(text)
    line = users_line(comment) if comment else None
    user_code, location = ("", None) if line is None else (line[0], line[1][:2])
    found = replace(
        _read_code(code), code=code, user_line=comment.strip(" #\n"), user_code=user_code, location=location
    )
    return with_hint(found, hint_in(text))


def with_hint(guard: Guard, hint: str) -> Guard:
    """Return the guard with what PyTorch recommends after its text; a recommendation within the text is kept."""
    return replace(guard, hint=hint) if hint else guard


def read_failed(failed: FailedGuardText) -> Guard:
    """Return the guard that PyTorch reports as the reason of a recompilation."""
    guard, facts = with_hint(read(failed.text), failed.hint), failed.facts
    guard = replace(guard, user_code=failed.user_code or facts.get("line", guard.user_code))
    if not facts:
        return guard
    if "state" in facts:
        return replace(read(facts["state"]), differences=failed.differences)
    return replace(
        guard,
        differences=failed.differences,
        together=failed.together,
        kind=next((each for each in GuardKind if each.value == facts.get("kind")), guard.kind),
        source=facts.get("source", guard.source),
        detail=facts.get("detail", guard.detail),
        expected=facts.get("expected", guard.expected),
        actual=facts.get("actual", guard.actual),
        hint=facts.get("hint", guard.hint),
        holds=guard.holds and facts.get("holds") != "no",
    )


def facts_of(guard: Guard) -> Dict[str, str]:
    """Return what ``read_failed`` needs to make this guard from a text of PyTorch's that has less."""
    number = {DIFFERENCES: str(guard.differences)} if guard.differences else {}
    if guard.together:
        number[TOGETHER] = json.dumps(guard.together)
    if guard.kind is GuardKind.GLOBAL_STATE:
        return {"state": guard.code, **number}
    named = {"source": guard.source, "detail": guard.detail, "hint": guard.hint, "line": guard.user_code}
    values = {"expected": guard.expected, "actual": guard.actual, "holds": "" if guard.holds else "no"}
    return {
        "kind": guard.kind.value,
        **number,
        **{name: text for name, text in (*named.items(), *values.items()) if text},
    }


@functools.lru_cache(maxsize=4096)  # the guards of an entry are read for each question about it
def _read_code(code: str) -> Guard:
    # Three readers, from the most common forms to the rarest: one pattern for values, lengths and keys of a model; a
    # pattern for each text that is no Python expression; Python's parser.
    plain = read_plain(code)
    if plain is not None:
        return plain
    for literal, pattern, guard_of in _RULES:
        match = pattern.search(code) if literal in code else None
        if match is not None:
            return guard_of(match)
    return read_expression(code)


def _of_dimension(kind: GuardKind) -> Callable[[Match[str]], Guard]:
    # ``actual 9. Guard failed on a parameter, consider using torch._dynamo.config.force_parameter_static_shapes``
    return lambda match: Guard(kind, match[1], match[3], match[4].rstrip("."), detail=match[2], hint=match[5] or "")


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
"""PyTorch's names in C++, which its guards print, and in Python."""


def _dtype(match: Match[str]) -> Guard:
    before, now = match[2].strip(), match[3].strip()
    return Guard(GuardKind.DTYPE, match[1], _DTYPES.get(before, before), _DTYPES.get(now, now))


def _requires_grad(match: Match[str]) -> Guard:
    was = match[2] == "1"
    return Guard(GuardKind.REQUIRES_GRAD, match[1], str(was), str(not was), holds=was)


def _tensor(match: Match[str]) -> Guard:
    source, class_name, keys, dtype, device, requires_grad, size, stride = match.groups()
    properties = TensorProperties(class_name, keys, dtype, device, requires_grad, _listed(size), _listed(stride))
    return Guard(GuardKind.TENSOR, source, tensor=properties)


def _listed(text: str) -> Optional[Tuple[str, ...]]:
    return None if text == "None" else tuple(each for each in text[1:-1].split(", ") if each)


def _class_id(match: Match[str]) -> Guard:
    name = class_name(match[3]) if match[3] else None
    return Guard(GuardKind.CLASS, match[1], name, identity=int(match[2]))


def _script_class(match: Match[str]) -> Guard:
    return replace(_class_id(match), kind=GuardKind.FAKE_SCRIPT_CLASS)


def _object_id(match: Match[str]) -> Guard:
    kind = GuardKind.FUNCTION if match[1].endswith(".__code__") else GuardKind.IDENTITY
    if match[3] and match[3].startswith("<enum "):
        kind = GuardKind.MEMBER
    return Guard(kind, match[1], detail=class_name(match[3]) if match[3] else "", identity=int(match[2]))


def _metadata(match: Match[str]) -> Guard:
    return Guard(GuardKind.METADATA, identity=int(match[1]))


def _hooks(match: Match[str]) -> Guard:
    return Guard(GuardKind.HOOKS, expected=match[1], operands=tuple(re.findall(r"\d+", match[1] or "")))


def _marks(match: Match[str]) -> Guard:
    return Guard(GuardKind.MARKS, "", match[3], match[2], detail=match[1])


def _no_marks(match: Match[str]) -> Guard:
    return Guard(GuardKind.MARKS, match["source"], detail=match["mark"], operators=("==",))


def _marks_within(match: Match[str]) -> Guard:
    return Guard(GuardKind.MARKS, match["source"], match["dimensions"], detail=match["mark"])


def _state_changes(match: Match[str]) -> Guard:
    """``autocast(cpu)_enabled grad_mode``; depyf appends the values that it knows: ``grad_mode=False``."""
    named = (each.partition("=") for each in match[1].split())
    changed = tuple(StateChange(name, now, _autocast_setting(name)) for name, _, now in named)
    return Guard(GuardKind.GLOBAL_STATE, changed=changed)


def _of(kind: GuardKind) -> Callable[[Match[str]], Guard]:
    """Return a function that makes a guard whose text has at most its source."""
    return lambda match: Guard(kind, (match[1] or "") if match.re.groups else "")


Rule = Tuple[str, Pattern[str], Callable[[Match[str]], Guard]]
"""What every text of the pattern has in it, so that most patterns are never compiled; the pattern; what it makes."""

_RULES: List[Rule] = [
    # Rules for guards that a model has hundreds of come first.
    # Marks: hasattr(L['x'], '_dynamo_dynamic_indices') == False, or which dimensions may be marked:
    # ((getattr(L['x'], '_dynamo_dynamic_indices', set()).issubset({0})) if hasattr(L['x'], ...) else True)
    ("hasattr(", regex(r"\Ahasattr\((?P<source>.*), '_dynamo_(?P<mark>\w+)'\) == False\Z", re.S), _no_marks),
    (
        ".issubset(",
        regex(
            r"\A\(\((?:getattr\()?(?P<source>.*?)(?:\.|, ')_dynamo_(?P<mark>\w+)(?:', set\(\)\))?"
            r"\.issubset\((?P<dimensions>[^()]*(?:\(\))?)\)\) if ",
            re.S,
        ),
        _marks_within,
    ),
    # ___check_type_id(L['x'], 94000000001), type=<class 'a.B'>; PyTorch 2.9 and older end at the id
    ("check_type_id(", regex(r"\A_{2,3}check_type_id\((.*), (\d{1,20})\)(?:, type=(.*))?\Z", re.S), _class_id),
    ("check_obj_id(", regex(r"\A_{2,3}check_obj_id\((.*), (\d{1,20})\)(?:, type=(.*))?\Z", re.S), _object_id),
    # Messages about the first property of a tensor that differs: tensor 'L['x']' dtype mismatch. expected Float, ...
    (
        "size mismatch",
        regex(r"\Atensor '(.*)' size mismatch at index (\d+)\. expected (\S+), actual (\S+)(?: (.*))?", re.S),
        _of_dimension(GuardKind.SIZE),
    ),
    (
        "stride mismatch",
        regex(r"\Atensor '(.*)' stride mismatch at index (\d+)\. expected (\S+), actual (\S+)(?: (.*))?", re.S),
        _of_dimension(GuardKind.STRIDE),
    ),
    (
        "rank mismatch",
        regex(r"\Atensor '(.*)' rank mismatch\. expected (\d+), actual (\d+)"),
        lambda match: Guard(GuardKind.RANK, match[1], match[2], match[3]),
    ),
    ("dtype mismatch", regex(r"\Atensor '(.*)' dtype mismatch\. expected (.*?), actual (\w+)"), _dtype),
    (
        "requires_grad mismatch",
        regex(r"\Atensor '(.*)' requires_grad mismatch\. expected requires_grad=(\d)"),
        _requires_grad,
    ),
    (
        "dispatch key set mismatch",
        regex(r"\Atensor '(.*)' dispatch key set mismatch\. expected DispatchKeySet\((.*)\), actual \w+\((.*)\)"),
        lambda match: Guard(GuardKind.DISPATCH_KEYS, match[1], match[2], match[3]),
    ),
    (
        "expected type of '",
        # Before PyTorch 2.15 it did not say of which class the tensor was.
        regex(r"\Aexpected type of '(.*)' to be (?:a tensor type, '|(<class '.*'>),) but found (.*)"),
        lambda match: Guard(GuardKind.TENSOR_CLASS, match[1], match[2] and class_name(match[2]), class_name(match[3])),
    ),
    ("check_tensor(", _CHECK_TENSOR, _tensor),
    (
        ".raw_repr()",
        regex(r"\A(.*)\.raw_repr\(\) == DispatchKeySet\(([^()]*)\)\.raw_repr\(\)\Z", re.S),
        lambda match: Guard(GuardKind.DISPATCH_KEYS, match[1], match[2]),
    ),
    ("Duplicate tensor", regex(r"\ADuplicate tensors? found"), _of(GuardKind.SAME_TENSOR)),
    (
        "check_",
        regex(
            r"\Acheck_(?P<what>overlapping|no_aliasing)\("
            r"(?:overlapping=\[(?P<together>.*)\], non_overlapping=\[(?P<apart>.*)\])?",
            re.S,
        ),
        lambda match: Guard(
            GuardKind.ALIASING, detail=match["what"], operands=(match["together"] or "", match["apart"] or "")
        ),
    ),
    ("GLOBAL_STATE changed: ", regex(r"\AGLOBAL_STATE changed: (.*)"), _state_changes),
    (
        "___check_global_state()",
        regex(r"___check_global_state\(\)(?: against (\{.*\})\Z)?", re.S),
        lambda match: Guard(GuardKind.GLOBAL_STATE, expected=match[1]),
    ),
    ("___check_torch_function_mode_stack", regex(r"___check_torch_function_mode_stack"), _of(GuardKind.MODES)),
    ("top_saved_tensors_hooks", regex(r"top_saved_tensors_hooks(?: ids == (None|\(.*\))\Z)?", re.S), _hooks),
    # Messages of accessors, which could not read a value, and of relations that raised
    ("Not a function on ", regex(r"\A(?:\w+: )?Not a function on (.*\.__code__)\Z"), _of(GuardKind.MISSING)),
    ("", regex(r"\A(?:\w+Error on|getattr failed on source) (.*)"), _of(GuardKind.MISSING)),
    ("", regex(r"\A'\w+' object (?:has no|is not) .*|\A\w+Error\b"), _of(GuardKind.NOT_COMPUTED)),
    # Messages of dict managers
    (
        ") != ",
        regex(r"\Alen\((.*)\) != (\d{1,18})\Z"),
        lambda match: Guard(GuardKind.NUMBER_OF_KEYS, match[1], match[2]),
    ),
    ("TYPE_MISMATCH(", regex(r"\ATYPE_MISMATCH\((.*)\)\Z"), _of(GuardKind.CLASS_OF_DICT)),
    (" not a subset: ", regex(r"\A_dynamo_(\w+) not a subset: runtime (.*) is not a subset of compiled (.*)"), _marks),
    ("_has_dynamo_dim_marking is present", regex(r"\A_has_dynamo_dim_marking is present"), _of(GuardKind.MARKS)),
    (
        "check_fake_script_type(",
        regex(r"\A_{2,3}check_fake_script_type\((.*), (\d{1,20})\)(?:, type=(.*))?\Z", re.S),
        _script_class,
    ),
    ("", regex(r"\A_{2,3}(?:check_metadata|dtensor_spec|check_opaque_guard_fn)_(\d{1,20})(?:_c\S*)?\Z"), _metadata),
    ("BACKEND_MATCH failure", regex(r"\ABACKEND_MATCH failure"), _of(GuardKind.BACKEND)),
    (
        "Cache line invalidated",
        regex(r"\ACache line invalidated(?: because (.*) got deallocated)?"),
        _of(GuardKind.GONE),
    ),
]

_ATTRIBUTE = regex(r"(?:Generic)?GetAttrGuardAccessor\((.*)\)\Z", re.S)
_LOCAL_INDEX = regex(r"framelocals_idx=(\d{1,9})")


def attribute_of(accessor: str) -> Optional[str]:
    """Return the attribute that an accessor of a guard tree reads, by its text; None where it reads no attribute."""
    match = _ATTRIBUTE.match(accessor)
    return match and match.group(1)


def local_index_of(accessor: str) -> Optional[int]:
    """Return the number of the local variable that an accessor reads, None where it reads another value."""
    match = _LOCAL_INDEX.search(accessor)
    return None if match is None else int(match.group(1))


_NUMBER_IN_NAME = regex(r"_\d{9,}")
_NUMBER_THAT_CHANGES = regex(r"\b(?!922337203685477580[78]\b)\d{9,}")  # an id or address; and not a limit of int64


def has_id_in_name(text: str) -> bool:
    """Return whether a name in a text ends in what may be an id: PyTorch makes such names."""
    return _NUMBER_IN_NAME.search(text) is not None


def ends_in_id(code: str) -> bool:
    """Return whether a text is, or ends in, the name of an object with its id."""
    return _NUMBER_IN_NAME.match("_" + code.rpartition("_")[2]) is not None


def without_ids(code: str) -> str:
    """Return the text with ``...`` for each number that may be an id or address."""
    return _NUMBER_THAT_CHANGES.sub("...", code)


_AUTOCAST = regex(r"autocast\((\w+)\)_(enabled|dtype)\Z")


def _autocast_setting(key: str) -> Optional[Tuple[str, str]]:
    """Return the device, and "enabled" or "dtype", of a global setting that is one of autocast; None of another."""
    match = _AUTOCAST.match(key)
    return None if match is None else (match[1], match[2])
