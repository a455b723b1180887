"""Guards that failed, in words: what changed, from what to what, and what would avoid the recompilation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, List, Mapping, Match, Optional, Sequence, Tuple

_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}

DYNAMIC = (
    "Mark the dimension as dynamic before the first call (torch._dynamo.mark_dynamic(x, dim)) or compile with "
    "dynamic=True; or pad to one size."
)
_CONSTANT = "Pass it as a tensor, or keep the number of its values small: each one is compiled separately."
_NUMBER = (
    "torch makes a number dynamic after its first change where it can; torch.compile(dynamic=True) does so at once. Or "
    "pass it as a tensor."
)
_DTYPE = "Convert the input to one dtype before the call."
_GRAD = "Call it with inputs that agree in requires_grad (or always under torch.no_grad())."
_OBJECT = "Pass the same object each time, or take it out of what is compiled."
_MODE = "Call it under the same global state (grad mode, autocast, default dtype, number of threads) each time."
_ALIAS = "Do not pass one tensor as two arguments in some calls only; clone it."
_MUTATED = "Set it before the first call: what changes between calls is compiled again."


@dataclass(frozen=True)
class Words:
    """``text`` says what failed; ``before`` and ``now`` are the two values where the text of the guard has them.

    ``value`` is what the guard reads, as the user wrote it."""

    text: str
    advice: str
    value: str = ""
    before: Optional[str] = None
    now: Optional[str] = None


def readable_value(source: str) -> str:
    """torch's name of a value as the user wrote it: ``L['self'].factor`` is ``self.factor``."""
    return re.sub(r"\b[LG]\['([^']*)'\]", r"\1", source)


def words_of(guard: str, now: Optional[str] = None) -> Words:
    """What it means that this guard failed; ``now`` is the value of the failing call where that is known."""
    text = " ".join(readable_value(guard).split())
    for pattern, make in _RULES:
        match = pattern.search(text)
        if match is not None:
            return make(match, now)
    return Words(f"the guard `{text}` no longer held", "", now=now)


def _tensor(what: str, advice: str, spell: Callable[[str], str] = str) -> Callable[[Match[str], Optional[str]], Words]:
    def make(match: Match[str], now: Optional[str]) -> Words:
        named = match.groupdict()
        value, before, after = named["value"], spell(named["before"].strip()), spell(named["now"].strip())
        subject = f"{what.format(**named)} of {value}" if what else value
        return Words(f"{subject} was {before}, now {after}", advice, value, before, after)

    return make


def _grad(match: Match[str], now: Optional[str]) -> Words:
    required = match.group("before") not in ("0", "False")
    value = match.group("value")
    return Words(
        f"{value} {'required gradients, now it does not' if required else 'did not require gradients, now it does'}",
        _GRAD,
        value,
        f"requires_grad={required}",
        f"requires_grad={not required}",
    )


def _equals(match: Match[str], now: Optional[str]) -> Words:
    value, before = match.group("value").strip(), match.group("before").strip()
    length = re.match(r"len\((.*)\)$", value)
    subject = f"the length of {length.group(1)}" if length else value
    size = re.search(r"\.(?:size|stride)\(\)\[\d+\]", value)
    number = re.match(r"-?\d+(\.\d+)?\Z", before) is not None
    advice = DYNAMIC if size else _MUTATED if "." in value or length else _NUMBER if number else _CONSTANT
    if length:
        advice = "Pass a container of one length, or keep the number of different lengths small."
    return Words(f"{subject} was {before}{_is_now(now, before)}", advice, value, before, now)


def _is_now(now: Optional[str], before: str) -> str:
    if now is None or now == before:
        return " and is another value now"
    return f", now {now}"


def _none(match: Match[str], now: Optional[str]) -> Words:
    value = match.group("value")
    return Words(f"{value} was None{_is_now(now, 'None')}", _MUTATED, value, "None", now)


def _not_none(match: Match[str], now: Optional[str]) -> Words:
    value = match.group("value")
    return Words(f"{value} was not None, now it is", _MUTATED, value, None, "None")


def _bounds(match: Match[str], now: Optional[str]) -> Words:
    text = match.group(0)
    size = re.search(r"([\w.\[\]'\"]+)\.size\(\)\[(\d+)\]", text)
    value = f"dimension {size.group(2)} of {size.group(1)}" if size else "a size"
    return Words(
        f"{value} left the range that was compiled for: {text}{'' if now is None else f', now {now}'}",
        DYNAMIC,
        size.group(0) if size else "",
        None,
        now,
    )


def _type(match: Match[str], now: Optional[str]) -> Words:
    value, before = match.group("value"), match.groupdict().get("before") or ""
    kind = _class_name(before)
    was = f" was a {kind}" if kind else " was of one class"
    return Words(f"{value}{was} and is of another class now", _OBJECT, value, kind or None, now)


def _object(match: Match[str], now: Optional[str]) -> Words:
    value = match.group("value")
    return Words(f"{value} is another object than the one that was compiled for", _OBJECT, value, None, now)


def _duplicates(match: Match[str], now: Optional[str]) -> Words:
    names = re.sub(r"^\[|\]$", "", (match.group("value") or match.group("other")).strip()).replace('"', "")
    return Words(
        f"{names} are one tensor now, and were not when it was compiled",
        _ALIAS,
        names,
        "different tensors",
        "one tensor",
    )


def _aliased(match: Match[str], now: Optional[str]) -> Words:
    first, second = match.group("value"), match.group("other")
    return Words(f"{first} and {second} were one object, now they are two", _ALIAS, first, "one object", "two objects")


def _global_state(match: Match[str], now: Optional[str]) -> Words:
    what = match.groupdict().get("value") or ""
    return Words(f"global state changed{': ' + what.strip() if what.strip() else ''}", _MODE, what.strip())


def _has_key(match: Match[str], now: Optional[str]) -> Words:
    key, value, absent = match.group("key"), match.group("value"), match.group("absent")
    return Words(
        f"{value} {'lacked' if absent else 'had'} {key}, now it {'has' if absent else 'lacks'} it", _MUTATED, value
    )


def _has_attribute(match: Match[str], now: Optional[str]) -> Words:
    value, name = match.group("value"), match.group("key").strip("'\"")
    if name.startswith("_dynamo_"):
        return Words(f"a dimension of {value} was marked (mark_dynamic or the like) for this call only", DYNAMIC, value)
    return Words(f"whether {value} has {name} changed", _MUTATED, value)


def _class_name(text: str) -> str:
    found = re.search(r"<(?:class|enum) '([^']*)'", text)
    return (found.group(1) if found else text).split(".")[-1].strip()


def _dtype(name: str) -> str:
    return _DTYPES.get(name.strip(" ."), name.strip(" ."))


_TENSOR = r"[Tt]ensor '(?P<value>.*?)' "
_EXPECTED = r"expected (?P<before>.+?), actual (?P<now>.+)"

_Rule = Tuple["re.Pattern[str]", Callable[[Match[str], Optional[str]], Words]]

_RULES: Sequence[_Rule] = [
    (re.compile(_TENSOR + r"dtype mismatch\. " + _EXPECTED), _tensor("the dtype", _DTYPE, _dtype)),
    (re.compile(_TENSOR + r"size mismatch at index (?P<dim>\d+)\. " + _EXPECTED), _tensor("dimension {dim}", DYNAMIC)),
    (
        re.compile(_TENSOR + r"stride mismatch at index (?P<dim>\d+)\. " + _EXPECTED),
        _tensor("the stride of dimension {dim}", "Pass tensors of one memory layout: call .contiguous() first."),
    ),
    (
        re.compile(_TENSOR + r"rank mismatch\. " + _EXPECTED),
        _tensor("the number of dimensions", "Reshape to one number of dimensions before the call."),
    ),
    (re.compile(_TENSOR + r"requires_grad mismatch\. expected requires_grad=(?P<before>\w+)"), _grad),
    (
        re.compile(_TENSOR + r"(?:Tensor )?device index mismatch\. " + _EXPECTED),
        _tensor("the device", "Move inputs to one device before the call."),
    ),
    (
        re.compile(_TENSOR + r"dispatch key set mismatch\. " + _EXPECTED),
        _tensor("the dispatch keys (kind of tensor)", "Call it with one kind of tensor: same device, same grad mode."),
    ),
    (re.compile(r"[Ee]xpected type of '(?P<value>.*?)' to be (?:a tensor type, ' but found )?(?P<before>.*)"), _type),
    (re.compile(r"Duplicate tensors? found: (?P<value>.*)|Duplicate tensors found: (?P<other>.*)"), _duplicates),
    (re.compile(r"GLOBAL_STATE changed:?(?P<value>.*)|___check_global_state\(\).*"), _global_state),
    (re.compile(r"torch_function_mode_stack|saved_tensors_hooks|CURRENT_DEVICE"), _global_state),
    (re.compile(r"___check_type_id\((?P<value>.*?), \d+\)(?:, type=(?P<before>.*))?"), _type),
    (re.compile(r"___check_obj_id\((?P<value>.*?), \d+\)"), _object),
    (re.compile(r"hasattr\((?P<value>.*?), (?P<key>.*?)\)"), _has_attribute),
    (re.compile(r"(?P<absent>not )?___dict_contains\((?P<key>.*?), (?P<value>.*?)\)"), _has_key),
    (re.compile(r"^(?P<key>'[^']*') (?P<absent>not )?in (?P<value>.*)$"), _has_key),
    (re.compile(r"^(?P<value>\S+) is None$"), _none),
    (re.compile(r"^(?P<value>\S+) is not None$"), _not_none),
    (re.compile(r"^(?P<value>[\w.\[\]'\"]+) is (?P<other>[\w.\[\]'\"]+)$"), _aliased),
    (re.compile(r"^(?P<value>[^=<>!]+?) == (?P<before>.+)$"), _equals),
    (re.compile(r".*(?:<=?|>=?|!=| % ).*"), _bounds),
]


def value_now(guard: str, values: Mapping[str, str]) -> Optional[str]:
    """The value, in the compilation that followed, of what this guard reads; ``values`` are by torch's names of them.

    torch writes ``x.n == 1`` where its guards say ``L['x'].n``.
    """
    match = re.match(r"^(.*?) (?:==|is|is not) ", " ".join(guard.split()))
    if match is None:
        return None
    wanted = readable_value(match.group(1))
    found: List[str] = [value for source, value in values.items() if readable_value(source) == wanted]
    return found[-1] if found else None
