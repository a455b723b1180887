"""Turn PyTorch's text of one guard into a Python expression that checks the same; None if no expression does.

The text is written for people: it contains class names, ids and JSON, and is less strict than the C++ check that it
describes (``L['n'] == 2`` also demands an ``int``). So the class of the guard selects the check, and the text only
provides the operands.
"""

from __future__ import annotations

import enum
import json
from typing import Callable, Mapping, Optional, Sequence, Set

from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_sources import short_name
from depyf.diagnosis.guard_text import attribute_of, ends_in_id, read, without_ids
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.literals import literal_value
from depyf.dynamo.guards.stable_expressions import Naming, tidy
from depyf.dynamo.guards.tree import ACCESS, DICT_MANAGER, TEXT, Check
from depyf.dynamo.hooks import cache_entries
from depyf.torch_trace.guard_comments import split_comment

Converter = Callable[[Check, Guard, Naming], Optional[str]]


def convert(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    """Return the Python expression for ``guard``, one text part of ``check``; None for an unknown class."""
    converter = LEAVES.get(check.kind)
    expression = None if converter is None else converter(check, guard, naming)
    return None if expression is None else tidy(expression, naming)


def convert_structure(check: Check, naming: Naming) -> Optional[str]:
    """Return the Python expression for a check that has no text of its own."""
    if check.kind == DICT_MANAGER:
        return _dict_manager(check, naming)
    if check.kind == ACCESS:
        return _access(check, naming)
    if check.kind == "DIMENSION_DYNAMIC_MARKING_GUARD":
        return _dimension_marks(check, naming)
    return None


def _as_it_stands(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    """Return the text of kinds that are Python: symbolic shapes, object identity, hasattr, iterators, NaN, default
    device ..."""
    return guard.code


def _text(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    if guard.identity is not None:
        return _id_check(check, guard, naming)
    # The global state is compared with one that only PyTorch has.
    is_known = guard.kind is not GuardKind.GLOBAL_STATE and without_ids(guard.code) == guard.code
    return guard.code if is_known else None


def _equals(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    """``L['x'] == 2``, ``L['x'] == <Color.RED: 1>``, ``L['x'] == device(type='cpu')``."""
    if len(guard.operands) != 2:  # the ``repr`` of the value may be a comparison: ``L['x'] == 1 <= x <= 3``
        return None
    reference, shown = guard.operands
    # The ``repr`` of a member of an Enum is not Python, but says which object it is.
    member = _enum_member(check.value_type, shown)
    if member is not None:
        return f"___check_obj_id({reference}, {naming.id_of(f'{type(member).__qualname__}.{member.name}', id(member))})"
    # Text of another class than the value had is not its value: a subclass of int prints as an int.
    found, value = literal_value(shown)
    if not found or (check.value_type is not None and type(value) is not check.value_type):
        return None
    return f"___equals({reference}, {shown})"


def _enum_member(cls: Optional[type], shown: str) -> Optional[enum.Enum]:
    """Return the member that is shown as ``shown``, if only that object is equal to it."""
    if cls is None or not issubclass(cls, enum.Enum) or cls.__eq__ is not object.__eq__:
        return None
    return next((member for member in cls if repr(member) == shown), None)


def _identity_with(constant: str) -> Converter:
    def converter(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
        return f"{guard.operands[0]} is {constant}" if guard.operands else None

    return converter


_ID_CHECKS = {
    GuardKind.IDENTITY: "___check_obj_id",
    GuardKind.MEMBER: "___check_obj_id",
    GuardKind.FUNCTION: "___check_obj_id",
    GuardKind.CLASS: "___check_type_id",
    GuardKind.FAKE_SCRIPT_CLASS: "___check_fake_script_type",
}


def _id_check(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    # ``___check_type_id(L['x'], 94000000001), type=<class 'a.B'>``: the file gets ``___ids['a.B']`` for the number.
    function = _ID_CHECKS.get(guard.kind)
    if function is None or guard.identity is None:
        return None
    hint = guard.expected or short_name(guard.source)
    return f"{function}({guard.source}, {naming.id_of(naming.stable(hint), guard.identity)})"


def _tensor(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    # ``check_tensor(L['x'], Tensor, DispatchKeySet(CPU, ...), torch.float32, device=None, requires_grad=False,
    # size=[2, None], stride=[None, 1])``: class and dispatch keys are no Python, the rest is.
    demanded = guard.tensor
    if demanded is None:
        return None
    return (
        f"___check_tensor({guard.source}, {demanded.class_name!r}, {demanded.dispatch_keys!r}, {demanded.dtype}, "
        f"device={demanded.device}, requires_grad={demanded.requires_grad}, size={_list(demanded.sizes)}, "
        f"stride={_list(demanded.strides)})"
    )


def _list(numbers: Optional[Sequence[str]]) -> str:
    return "None" if numbers is None else f"[{', '.join(numbers)}]"


def _global_state(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    # ``___check_global_state() against {"grad_mode": true, ...}``
    if guard.expected is None:
        return None
    state = guard_runtime.flat_global_state(json.loads(guard.expected))
    return f"___check_global_state({', '.join(f'{key}={value!r}' for key, value in sorted(state.items()))})"


def _lambda(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    if guard.kind is not GuardKind.HOOKS or guard.expected is None:
        # A checker that is a Python object is shown by its name with its id, which is of no use.
        return None if guard.code.isidentifier() or ends_in_id(guard.code) else guard.code
    if not guard.operands:
        return "___inlined_saved_tensors_hooks() is None"
    ids = [naming.id_of("saved tensors hook", int(number)) for number in guard.operands]
    return f"___inlined_saved_tensors_hooks() == ({', '.join(ids)},)"


def _iterator(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    # ``___tuple_iterator_len(L['it']) == 2``: the C++ guard compares the class first.
    is_known = guard.kind in (GuardKind.ITERATOR_LENGTH, GuardKind.ITERATOR_STATE)
    if not is_known or not guard.arguments or check.value_type is None:
        return None
    expected = naming.id_of(guard_runtime._class_name(check.value_type), id(check.value_type))
    return f"___check_type_id({guard.arguments[0]}, {expected}) and {guard.code}"


def _length(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    if guard.kind is GuardKind.EMPTY and guard.arguments:  # PyTorch's ``not x``, where its C++ takes the length
        return f"len({guard.arguments[0]}) == 0"
    return guard.code


def _dict_length(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    # ``len(L['d']) == 2``: C++ takes the length of the dict itself, whatever ``__len__`` its class has.
    if guard.kind not in (GuardKind.EMPTY, GuardKind.LENGTH) or not guard.arguments:
        return None
    return f"dict.__len__({guard.arguments[0]}) == {0 if guard.kind is GuardKind.EMPTY else guard.expected}"


def _dict_version(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    if not guard.operands or not guard.operands[1].isdigit():
        return None
    reference, version = guard.operands
    return f"{reference} == {naming.id_of('version of ' + short_name(check.source), int(version))}"


def _set_contains(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    if guard.kind is not GuardKind.CONTAINS or not guard.arguments:
        return None
    # PyTorch 2.8 and 2.9 print ``set.__contains__(L['s'], 1)`` for a forbidden item, too: it is unknown which is meant.
    if guard.holds and not cache_entries.reports_absent_items():
        return None
    contains = f"___set_contains({', '.join(guard.arguments)})"
    # C++ fails a container of another type in either case.
    return contains if guard.holds else f"isinstance({check.source}, (set, frozenset)) and not {contains}"


def _dispatch_key_set(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    if guard.kind is not GuardKind.DISPATCH_KEYS:
        return None
    return f"str({guard.source}) == {f'DispatchKeySet({guard.expected})'!r}"


def _overlapping(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    return "___" + guard.code if guard.kind is GuardKind.ALIASING else None


def _by_structure(check: Check, guard: Guard, naming: Naming) -> Optional[str]:
    """Return the text of kinds that are one expression (``convert_structure``, ``check_function`` for modes)."""
    return guard.code


def _dict_manager(check: Check, naming: Naming) -> Optional[str]:
    if check.length is None or check.value_type is None:
        return None
    expected = naming.id_of(guard_runtime._class_name(check.value_type), id(check.value_type))
    return tidy(f"___check_dict({check.source}, {expected}, {check.length})", naming)


def _access(check: Check, naming: Naming) -> Optional[str]:
    name = attribute_read(check)
    return tidy(f"___reads({check.source})" if name is None else f"hasattr({check.source}, {name!r})", naming)


def attribute_read(check: Check) -> Optional[str]:
    """Return the attribute of its source that a check of kind ACCESS reads, None where it reads the source itself."""
    name = attribute_of(check.parts[0])
    # The manager's source is the object whose attribute is read, or the attribute itself.
    return None if name is None or check.source.endswith("." + name) else name


def _dimension_marks(check: Check, naming: Naming) -> Optional[str]:
    # One guard with a part for each kind of mark, either ``hasattr(L['x'], '_dynamo_dynamic_indices') == False`` or
    # ``((getattr(L['x'], '_dynamo_dynamic_indices', set()).issubset({0})) if hasattr(...) else True)``. A PyTorch with
    # other kinds is left to PyTorch. Of nearly all tensors no dimension is marked: their texts need not be read.
    if {code for code, _ in map(split_comment, check.parts)} == _no_marks(check.source):
        return tidy(f"___check_dimension_marks({check.source})", naming)
    guards = [read(part) for part in check.parts]
    if {f"_dynamo_{guard.detail}" for guard in guards} != set(guard_runtime._MARKS):
        return None
    allowed = "".join(f", {guard.detail}={guard.expected}" for guard in guards if guard.expected is not None)
    return tidy(f"___check_dimension_marks({guards[-1].source}{allowed})", naming)


def _no_marks(source: str) -> Set[str]:
    return {f"hasattr({source}, '{mark}') == False" for mark in guard_runtime._MARKS}


LEAVES: Mapping[str, Converter] = {
    TEXT: _text,
    "COMPLEX_IS_NAN": _as_it_stands,
    "DATA_PTR_MATCH": _as_it_stands,
    "DEFAULT_DEVICE": _as_it_stands,
    "DICT_CONTAINS": _as_it_stands,
    "DICT_LENGTH": _dict_length,
    "DICT_VERSION": _dict_version,
    "DIMENSION_DYNAMIC_MARKING_GUARD": _by_structure,
    "DISPATCH_KEY_SET_MATCH": _dispatch_key_set,
    "DUAL_LEVEL_MATCH": _as_it_stands,
    "DYNAMIC_INDICES": _as_it_stands,
    "EQUALS_MATCH": _equals,
    "FAKE_SCRIPT_TYPE_MATCH": _id_check,
    "FALSE_MATCH": _identity_with("False"),
    "FLOAT_IS_NAN": _as_it_stands,
    "GLOBAL_STATE": _global_state,
    "ID_MATCH": _id_check,
    "LAMBDA_GUARD": _lambda,
    "LAMBDA_GUARD_NO_ARGS": _lambda,
    "LAMBDA_GUARD_NO_FRAMELOCALS": _lambda,
    "LENGTH_CHECK": _length,
    "MAPPING_KEYS_MATCH": _as_it_stands,
    "NONE_MATCH": _identity_with("None"),
    "NOT_NONE": _as_it_stands,
    "NO_HASATTR": _as_it_stands,
    "NO_TENSOR_ALIASING": _overlapping,
    "OBJECT_ALIASING": _as_it_stands,
    "RANGE_ITERATOR_MATCH": _iterator,
    "SET_CONTAINS": _set_contains,
    "STORAGE_OVERLAPPING": _overlapping,
    "SYMBOLIC_SHAPE_GUARD": _as_it_stands,
    "TENSOR_ALIASING": _as_it_stands,
    "TENSOR_MATCH": _tensor,
    "TORCH_FUNCTION_MODE_STACK": _by_structure,
    "TRUE_MATCH": _identity_with("True"),
    "TUPLE_ITERATOR_LEN": _iterator,
    "TYPE_MATCH": _id_check,
}
"""The converter for each of PyTorch's guard classes. Guards of other classes are evaluated by PyTorch."""
