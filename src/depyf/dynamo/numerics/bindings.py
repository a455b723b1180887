"""Which values the user's names are bound to while Dynamo traces a frame: told by its own interpreter of bytecode.

Dynamo executes the user's bytecode symbolically. Each time that it stores into a variable or an attribute, or returns,
the value on its stack is noted with the name, the function and the line. So a name is tied to the very node of the
graph: in loops, in functions that are inlined, when tuples are unpacked, and when it is bound again.
"""

from __future__ import annotations

import functools
import re
import threading
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterator, List, Optional, Tuple

from depyf.dynamo import compat
from depyf.dynamo.patching import Undo
from depyf.dynamo.safely import safely

_STORES = ("STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL", "STORE_ATTR")
_RESUMED = re.compile(r"(?:torch_dynamo_)?resume_in_(.+?)(?:_at_\d+)?$")
_TRANSLATORS = ("InstructionTranslator", "InliningInstructionTranslator", "InliningGeneratorInstructionTranslator")

RETURNED = "return"


@dataclass(frozen=True)
class Binding:
    """A name that was bound. ``node`` is the name of the graph's node, None where the value is none of the graph's.

    ``name`` is the variable, ``.attribute``, or ``return``; ``part`` is where in a tuple, list or dictionary the tensor
    stands (empty for the value itself); ``constant`` is what the value is instead of a tensor, in words. ``after`` is
    the last node that had been traced by then: the graph may write into the value before that, and after it.
    """

    name: str
    function: str
    filename: str
    line: int
    node: Optional[str]
    part: str = ""
    constant: str = ""
    after: Optional[str] = None


@dataclass
class _Tracing:
    """What one attempt at tracing has bound so far; ``output`` is Dynamo's object for that attempt."""

    output: Any = None
    bindings: List[Tuple[Binding, Any, Any]] = field(default_factory=list)
    """With the nodes: Dynamo gives them other names later on."""


class _Here(threading.local):
    def __init__(self) -> None:
        self.tracing = _Tracing()


_here = _Here()


def bindings_so_far() -> Tuple[Binding, ...]:
    """What has been bound in the frame that this thread traces, in order."""
    return tuple(
        binding if node is None else replace(binding, node=str(node.name), after=_name_of_remaining(after))
        for binding, node, after in list(_here.tracing.bindings)
    )


def _name_of_remaining(node: Any) -> Optional[str]:
    """The name of this node, or of the last one before it that is still in the graph."""
    while node is not None and getattr(node, "_erased", False):
        node = node.prev
    return None if node is None or node.op == "root" else str(node.name)


def watch_bindings() -> Optional[Undo]:
    """Note what is bound from now on; answers the function that ends it. None where Dynamo's interpreter is unknown."""
    undo: List[Undo] = []
    for name in _TRANSLATORS:
        translator = compat.find("torch._dynamo.symbolic_convert", name)
        table = getattr(translator, "dispatch_table", None)
        if not isinstance(table, list):
            continue
        for operation in (*_STORES, "RETURN_VALUE"):
            handler: Any = getattr(translator, operation, None)
            for at in [at for at, each in enumerate(table) if handler is not None and each is handler]:
                undo.append(_replace_handler(table, at, _noting(handler, operation)))
    if not undo:
        compat.report_once("probe names", "this PyTorch's tracer is not known: names of variables can't be probed")
        return None

    def undo_all() -> None:
        while undo:
            undo.pop()()

    return undo_all


def _replace_handler(table: List[Any], at: int, replacement: Any) -> Undo:
    original, table[at] = table[at], replacement

    def undo() -> None:
        if table[at] is replacement:
            table[at] = original

    return undo


def _noting(handler: Callable[..., Any], operation: str) -> Callable[..., Any]:
    @functools.wraps(handler)
    def handle(translator: Any, instruction: Any) -> Any:
        _note(translator, instruction, operation)
        return handler(translator, instruction)

    return handle


@safely("noting what a name is bound to")
def _note(translator: Any, instruction: Any, operation: str) -> None:
    tracing = _here.tracing
    if tracing.output is not translator.output:
        tracing = _here.tracing = _Tracing(translator.output)
    # The value; what has the attribute lies above it.
    value = translator.stack[-2 if operation == "STORE_ATTR" else -1]
    code = translator.f_code
    name = RETURNED if operation == "RETURN_VALUE" else str(instruction.argval)
    place = (
        f".{name}" if operation == "STORE_ATTR" else name,
        function_name(getattr(code, "co_qualname", code.co_name)),
        code.co_filename,
        _line(translator, instruction),
    )
    for node, part, constant in _values(value):
        after = None if node is None else next(iter(reversed(node.graph.nodes)), None)
        tracing.bindings.append((Binding(*place, None, part, constant), node, after))


def function_name(name: str) -> str:
    """The name of the user's function that this is, or goes on with after a graph break."""
    before, dot, last = name.rpartition(".")
    resumed = _RESUMED.match(last)
    return f"{before}{dot}{resumed.group(1)}" if resumed else name


def _line(translator: Any, instruction: Any) -> int:
    line = getattr(getattr(instruction, "positions", None), "lineno", None) or instruction.starts_line
    return int(line or translator.lineno)


def _values(value: Any, part: str = "", depth: int = 0) -> Iterator[Tuple[Optional[Any], str, str]]:
    """The tensors in a value of Dynamo's, as nodes with where they stand; or words for what it is."""
    if type(value).__name__ == "LazyVariableTracker":
        if not value.is_realized():  # looking at it would make Dynamo guard it
            yield None, part, "an object that the traced code has not looked at"
            return
        value = value.unwrap() if hasattr(value, "unwrap") else value.realize()
    proxy = _read(value, "proxy")
    kind = type(value).__name__
    if proxy is not None and hasattr(proxy, "node") and kind != "SymNodeVariable":
        yield proxy.node, part, ""
        return
    items = _read(value, "items")
    if isinstance(items, (list, tuple)) and depth < 2:
        for at, item in enumerate(items):
            yield from _values(item, f"{part}[{at}]", depth + 1)
        return
    if isinstance(items, dict) and depth < 2:
        for key, item in items.items():
            yield from _values(item, f"{part}[{_key(key)}]", depth + 1)
        return
    if kind == "SymNodeVariable":
        yield None, part, "a number that depends on the shapes of the inputs, and no tensor"
    elif kind == "ConstantVariable":
        yield None, part, f"the constant {_read(value, 'value')!r} in the compiled code, and no tensor"
    else:
        yield None, part, f"no tensor ({kind.replace('Variable', '')} in Dynamo's terms)"


def _read(value: Any, attribute: str) -> Any:
    """An attribute of an object of Dynamo's; some are properties that raise."""
    try:
        return getattr(value, attribute, None)
    except NotImplementedError:
        return None


def _key(key: Any) -> str:
    return repr(_read(_read(key, "vt") or key, "value"))
