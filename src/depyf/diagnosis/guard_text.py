"""Parse PyTorch's texts of guards: printed guards, messages about failed ones, and reasons in logs.

Only this module has patterns of these texts. Text of an unknown form is a guard of kind UNKNOWN.
"""

from __future__ import annotations

import functools
import re
from typing import Callable, List, Match, Optional, Pattern, Tuple

from depyf.diagnosis.guard import Guard, GuardKind, TensorProperties
from depyf.diagnosis.guard_expressions import read_expression
from depyf.diagnosis.guard_sources import class_name
from depyf.diagnosis.plain_guards import read_plain
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import replace
from depyf.torch_trace.guard_comments import split_comment, users_line

_CHECK_TENSOR = re_compile(
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
    return replace(_read_code(code), code=code, user_line=comment.strip(" #\n"), user_code=user_code, location=location)


@functools.lru_cache(maxsize=4096)  # the guards of an entry are read for each question about it
def _read_code(code: str) -> Guard:
    plain = read_plain(code)
    if plain is not None:
        return plain
    for pattern, guard_of in _RULES:
        match = pattern.search(code)
        if match is not None:
            return guard_of(match)
    return read_expression(code)


def _of_dimension(kind: GuardKind) -> Callable[[Match[str]], Guard]:
    return lambda match: Guard(kind, match[1], match[3], match[4], detail=match[2])


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
    properties = match.groupdict()
    return Guard(GuardKind.TENSOR, properties.pop("source"), tensor=TensorProperties(**properties))


def _class_id(match: Match[str]) -> Guard:
    name = class_name(match[3]) if match[3] else None
    return Guard(GuardKind.CLASS, match[1], name, identity=int(match[2]))


def _script_class(match: Match[str]) -> Guard:
    return replace(_class_id(match), kind=GuardKind.FAKE_SCRIPT_CLASS)


def _object_id(match: Match[str]) -> Guard:
    kind = GuardKind.FUNCTION if match[1].endswith(".__code__") else GuardKind.IDENTITY
    return Guard(kind, match[1], detail=class_name(match[3]) if match[3] else "", identity=int(match[2]))


def _hooks(match: Match[str]) -> Guard:
    return Guard(GuardKind.HOOKS, expected=match[1], operands=tuple(re.findall(r"\d+", match[1] or "")))


def _marks(match: Match[str]) -> Guard:
    return Guard(GuardKind.MARKS, "", match[3], match[2], detail=match[1])


def _marks_demanded(match: Match[str]) -> Guard:
    return Guard(GuardKind.MARKS, match["source"], match.groupdict().get("dimensions"), detail=match["mark"])


def _of(kind: GuardKind) -> Callable[[Match[str]], Guard]:
    """Return a function that makes a guard whose text has at most its source."""
    return lambda match: Guard(kind, (match[1] or "") if match.re.groups else "")


Rule = Tuple[Pattern[str], Callable[[Match[str]], Guard]]

_RULES: List[Rule] = [
    # Those of which a model has hundreds come first.
    (re_compile(r"\Ahasattr\((?P<source>.*), '_dynamo_(?P<mark>\w+)'\) == False\Z", re.S), _marks_demanded),
    (
        re_compile(
            r"\A\(\((?:getattr\()?(?P<source>.*?)(?:\.|, ')_dynamo_(?P<mark>\w+)(?:', set\(\)\))?"
            r"\.issubset\((?P<dimensions>[^()]*(?:\(\))?)\)\) if ",
            re.S,
        ),
        _marks_demanded,
    ),
    (re_compile(r"\A_{2,3}check_type_id\((.*), (\d{1,20})\)(?:, type=(.*))?\Z", re.S), _class_id),
    (re_compile(r"\A_{2,3}check_obj_id\((.*), (\d{1,20})\)(?:, type=(.*))?\Z", re.S), _object_id),
    (
        re_compile(r"\Atensor '(.*)' size mismatch at index (\d+)\. expected (\S+), actual (\S+)"),
        _of_dimension(GuardKind.SIZE),
    ),
    (
        re_compile(r"\Atensor '(.*)' stride mismatch at index (\d+)\. expected (\S+), actual (\S+)"),
        _of_dimension(GuardKind.STRIDE),
    ),
    (
        re_compile(r"\Atensor '(.*)' rank mismatch\. expected (\S+), actual (\S+)"),
        lambda match: Guard(GuardKind.RANK, match[1], match[2], match[3]),
    ),
    (re_compile(r"\Atensor '(.*)' dtype mismatch\. expected (.*), actual (.*)"), _dtype),
    (re_compile(r"\Atensor '(.*)' requires_grad mismatch\. expected requires_grad=(\d)"), _requires_grad),
    (
        re_compile(r"\Atensor '(.*)' dispatch key set mismatch\. expected DispatchKeySet\((.*)\), actual \w+\((.*)\)"),
        lambda match: Guard(GuardKind.DISPATCH_KEYS, match[1], match[2], match[3]),
    ),
    (
        # Before PyTorch 2.15 it did not say of which class the tensor was.
        re_compile(r"\Aexpected type of '(.*)' to be (?:a tensor type, '|(<class '.*'>),) but found (.*)"),
        lambda match: Guard(GuardKind.TENSOR_CLASS, match[1], match[2] and class_name(match[2]), class_name(match[3])),
    ),
    (_CHECK_TENSOR, _tensor),
    (
        re_compile(r"\A(.*)\.raw_repr\(\) == DispatchKeySet\(([^()]*)\)\.raw_repr\(\)\Z", re.S),
        lambda match: Guard(GuardKind.DISPATCH_KEYS, match[1], match[2]),
    ),
    (re_compile(r"\ADuplicate tensors? found"), _of(GuardKind.SAME_TENSOR)),
    (re_compile(r"\Acheck_(?:overlapping|no_aliasing)\("), _of(GuardKind.ALIASING)),
    (
        re_compile(r"\AGLOBAL_STATE changed: (.*)"),
        lambda match: Guard(GuardKind.GLOBAL_STATE, operands=tuple(match[1].split())),
    ),
    (
        re_compile(r"___check_global_state\(\)(?: against (\{.*\})\Z)?", re.S),
        lambda match: Guard(GuardKind.GLOBAL_STATE, expected=match[1]),
    ),
    (re_compile(r"___check_torch_function_mode_stack"), _of(GuardKind.MODES)),
    (re_compile(r"top_saved_tensors_hooks(?: ids == (None|\(.*\))\Z)?", re.S), _hooks),
    (
        re_compile(r"\A(?:\w+: )?Not a function on (.*)\.__code__\Z"),
        lambda match: Guard(GuardKind.CLASS, match[1], "function"),
    ),
    (re_compile(r"\A(?:\w+Error on|getattr failed on source) (.*)"), _of(GuardKind.MISSING)),
    (re_compile(r"\A'\w+' object (?:has no|is not) .*|\A\w+Error\b"), _of(GuardKind.NOT_COMPUTED)),
    (
        re_compile(r"\Alen\((.*)\) != (\d{1,18})\Z"),
        lambda match: Guard(GuardKind.NUMBER_OF_KEYS, match[1], match[2]),
    ),
    (re_compile(r"\ATYPE_MISMATCH\((.*)\)\Z"), _of(GuardKind.CLASS_OF_DICT)),
    (re_compile(r"\A_dynamo_(\w+) not a subset: runtime (.*) is not a subset of compiled (.*)"), _marks),
    (re_compile(r"\A_has_dynamo_dim_marking is present"), _of(GuardKind.MARKS)),
    (re_compile(r"\A_{2,3}check_fake_script_type\((.*), (\d{1,20})\)(?:, type=(.*))?\Z", re.S), _script_class),
    (re_compile(r"\ABACKEND_MATCH failure"), _of(GuardKind.BACKEND)),
    (re_compile(r"\ACache line invalidated(?: because (.*) got deallocated)?"), _of(GuardKind.GONE)),
]

_ATTRIBUTE = re_compile(r"(?:Generic)?GetAttrGuardAccessor\((.*)\)\Z", re.S)
_LOCAL_INDEX = re_compile(r"framelocals_idx=(\d{1,9})")


def attribute_of(accessor: str) -> Optional[str]:
    """Return the attribute that an accessor of a guard tree reads, by its text; None where it reads no attribute."""
    match = _ATTRIBUTE.match(accessor)
    return match and match.group(1)


def local_index_of(accessor: str) -> Optional[int]:
    """Return the number of the local variable that an accessor reads, None where it reads another value."""
    match = _LOCAL_INDEX.search(accessor)
    return None if match is None else int(match.group(1))


_NUMBER_IN_NAME = re_compile(r"_\d{9,}")
_NUMBER_THAT_CHANGES = re_compile(r"\b(?!922337203685477580[78]\b)\d{9,}")  # an id or address; and not a limit of int64


def has_id_in_name(text: str) -> bool:
    """Return whether a name in a text ends in what may be an id: PyTorch makes such names."""
    return _NUMBER_IN_NAME.search(text) is not None


def ends_in_id(code: str) -> bool:
    """Return whether a text is, or ends in, the name of an object with its id."""
    return _NUMBER_IN_NAME.match("_" + code.rpartition("_")[2]) is not None


def without_ids(code: str) -> str:
    """Return the text with ``...`` for each number that may be an id or address."""
    return _NUMBER_THAT_CHANGES.sub("...", code)


_AUTOCAST = re_compile(r"autocast\((\w+)\)_(enabled|dtype)\Z")


def autocast_setting(key: str) -> Optional[Tuple[str, str]]:
    """Return the device, and "enabled" or "dtype", of a global setting that is one of autocast; None of another."""
    match = _AUTOCAST.match(key)
    return None if match is None else (match[1], match[2])
