"""Record the values that the user's names are bound to while Dynamo traces a frame, in hooks of its bytecode
interpreter. Dynamo executes the user's bytecode symbolically. Each time that it stores into a variable or an attribute,
or returns, the value on its stack is recorded with the name, the function and the line, and so are the arguments at the
start of a function. So a name is mapped to the exact node of the graph: in loops, in inlined functions, for unpacked
tuples, and when it is bound again. Dynamo evaluates inputs lazily, so they are read at the end.
"""

from __future__ import annotations

import functools
import inspect
import threading
from dataclasses import field
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass, replace
from depyf.diagnosis.guard_sources import as_written
from depyf.dynamo.hooks import frames, private_names, torch_names
from depyf.dynamo.hooks.nested_code import qualified_name
from depyf.dynamo.hooks.patching import registered, replace_attribute
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.torch_types import TranslatedInstruction, Translator
from depyf.torch_trace.resume_names import function_name

if TYPE_CHECKING:
    import torch

_STORES = ("STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL", "STORE_ATTR")
_INPUT = regex(r"(?:(?P<owner>.+)\.)?(?P<name>[^\W\d]\w*)(?P<part>(?:\[[^\]]*\])*)$")
_TRANSLATORS = (private_names.TRANSLATOR, private_names.INLINING_TRANSLATOR, private_names.GENERATOR_TRANSLATOR)

RETURNED = "return"
ELSEWHERE = "a tensor of a part that the graph runs as a whole (a checkpointed region, a branch of torch.cond)"


@dataclass(frozen=True)
class Binding:
    """A name that was bound. ``node`` is the name of the graph's node, None where the value is none of the graph's.

    ``name`` is the variable, ``.attribute``, or ``return``; ``part`` is the position of the tensor in a tuple, list or
    dictionary (empty for the value itself); ``constant`` describes a value that is no tensor. ``line`` is 0 for inputs
    that the function did not bind: attributes and globals. ``after`` is the last node that had been traced by then: the
    graph may write into the value before that, and after it. ``carried`` says that a resume function received the
    value: it was bound before the graph break. ``owner`` is the object that has the attribute, as the user writes it,
    if known (``self.layer``).
    """

    name: str
    function: str
    filename: str
    line: int
    node: Optional[str]
    part: str = ""
    constant: str = ""
    after: Optional[str] = None
    carried: bool = False
    owner: str = ""


class _TracedValue(NamedTuple):
    """A tensor in a value of Dynamo's, as its node, or a description of another value. ``part`` is its position in the
    value.

    ``unread`` is a value that Dynamo has not read: reading it would add guards.
    """

    node: Optional[torch.fx.Node] = None
    part: str = ""
    constant: str = ""
    unread: Optional[Any] = None


class _Bound(NamedTuple):
    """A binding with its value (Dynamo gives nodes other names later on) and the last node by then."""

    binding: Binding
    value: _TracedValue
    after: Optional[torch.fx.Node]


@dataclass
class _Tracing:
    """What one attempt at tracing has bound so far; ``output`` is Dynamo's object for that attempt."""

    output: object = None
    bindings: List[_Bound] = field(default_factory=list)


class _TracingThread(threading.local):
    def __init__(self) -> None:
        self.tracing = _Tracing()


_here = _TracingThread()


def bindings_so_far(graph: torch.fx.Graph, inputs: Mapping[str, str]) -> Tuple[Binding, ...]:
    """Return the bindings so far in the frame that this thread traces, in order. ``graph`` is the traced graph,
    ``inputs`` are the user's names of its inputs (in Dynamo's terms), by their nodes."""
    bound = [
        _as_it_is_now(each.binding, value, each.after, graph)
        for each in list(_here.tracing.bindings)
        for value in _read_meanwhile(each.value)
    ]
    known = {each.node for each in bound}
    return (*_others(inputs, known), *bound)


def _others(inputs: Mapping[str, str], known: Set[Optional[str]]) -> Iterator[Binding]:
    """Yield the inputs that no variable is bound to: parameters, buffers, globals."""
    code = frames.code_being_compiled()
    for node, source in inputs.items():
        match = _INPUT.match(as_written(source))
        if match is None or code is None or (node in known and match["owner"] is None):
            continue
        yield Binding(
            name=f".{match['name']}" if match["owner"] else match["name"],
            function=function_name(qualified_name(code)),
            filename=code.co_filename,
            line=0,
            node=node,
            part=match["part"],
            owner=match["owner"] or "",
        )


def _as_it_is_now(
    binding: Binding, value: _TracedValue, after: Optional[torch.fx.Node], graph: torch.fx.Graph
) -> Binding:
    binding = replace(binding, part=value.part, constant=value.constant)
    if value.node is None:
        return binding
    if value.node.graph is not graph and not private_names.ERASED.of(value.node):
        return replace(binding, constant=ELSEWHERE)
    return replace(binding, node=str(value.node.name), after=_name_of_remaining(after))


def _read_meanwhile(value: _TracedValue) -> Iterator[_TracedValue]:
    """Yield the value itself, or its realized value."""
    if value.unread is not None and value.unread.is_realized():
        yield from _values(value.unread, value.part)
    else:
        yield value


def _name_of_remaining(node: Optional[torch.fx.Node]) -> Optional[str]:
    """Return the name of this node, or of the last one before it that is still in the graph."""
    while node is not None and private_names.ERASED.of(node):
        node = node.prev
    return None if node is None or node.op == "root" else str(node.name)


def watch_bindings() -> None:
    """Record bindings, until what it registers (``patching.collecting``) is undone. Does nothing if Dynamo's
    interpreter is unknown, which is reported.
    """
    # Dynamo's interpreter calls ``dispatch_table[opcode]``. A handler may stand there for several opcodes, and each
    # class of translators (functions, inlined functions, generators) has a table of its own.
    runs: List[Tuple[object, Callable[..., object]]] = []
    handlers: List[Tuple[List[object], int, object]] = []
    for translator in [name.find() for name in _TRANSLATORS]:
        table = getattr(translator, "dispatch_table", None)
        if not isinstance(table, list):
            continue
        for operation in (*_STORES, "RETURN_VALUE"):
            handler: Any = getattr(translator, operation, None)
            positions = [at for at, each in enumerate(table) if handler is not None and each is handler]
            handlers += [(table, at, _noting(handler, operation)) for at in positions]
        if translator is not None and hasattr(translator, "run"):
            runs.append((translator, translator.run))
    if not handlers and not runs:
        torch_names.report_once("probe names", "this PyTorch's tracer is not known: names of variables can't be probed")
    registered(_forget_tracing)
    for table, at, noting in handlers:
        _replace_handler(table, at, noting)
    for translator, run in runs:
        replace_attribute(translator, "run", _noting_arguments(run))


def _forget_tracing() -> None:
    _here.tracing = _Tracing()  # the last one holds what the program gave to the function that was traced


def _replace_handler(table: List[object], at: int, replacement: object) -> None:
    original = table[at]

    def undo() -> None:
        if table[at] is replacement:
            table[at] = original

    registered(undo)
    table[at] = replacement


def _noting_arguments(run: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(run)
    def noting(translator: Translator) -> object:
        if not getattr(translator, "instruction_pointer", 0):  # generators run again and again
            _note_arguments(translator)
        return run(translator)

    return noting


def _noting(handler: Callable[..., object], operation: str) -> Callable[..., object]:
    @functools.wraps(handler)
    def handle(translator: Translator, instruction: TranslatedInstruction) -> object:
        _note(translator, instruction, operation)
        return handler(translator, instruction)

    return handle


@safely("noting what a name is bound to")
def _note(translator: Translator, instruction: TranslatedInstruction, operation: str) -> None:
    # The value; what has the attribute lies above it.
    value = translator.stack[-2 if operation == "STORE_ATTR" else -1]
    name = RETURNED if operation == "RETURN_VALUE" else str(instruction.argval)
    _bind(translator, f".{name}" if operation == "STORE_ATTR" else name, value, _line(translator, instruction))


@safely("noting what a function is given")
def _note_arguments(translator: Translator) -> None:
    code = translator.f_code
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    carried = function_name(code.co_name) != code.co_name
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]:
        value = translator.symbolic_locals.get(name)  # some versions leave out what is not used
        _bind(translator, name, value, code.co_firstlineno, carried=carried)


def _bind(translator: Translator, name: str, value: Optional[object], line: int, *, carried: bool = False) -> None:
    # Dynamo restarts the trace of a frame after a graph break, with another ``OutputGraph``: begin anew.
    tracing = _here.tracing
    if tracing.output is not translator.output:
        tracing = _here.tracing = _Tracing(translator.output)
    code = translator.f_code
    function = function_name(qualified_name(code))
    binding = Binding(name, function, code.co_filename, line, None, carried=carried)
    after = next(iter(reversed(translator.output.graph.nodes)), None)
    tracing.bindings += [_Bound(binding, each, after) for each in _values(value)]


def _line(translator: Translator, instruction: TranslatedInstruction) -> int:
    line = getattr(getattr(instruction, "positions", None), "lineno", None) or instruction.starts_line
    return int(line or translator.lineno)


def _values(value: Any, part: str = "", depth: int = 0) -> Iterator[_TracedValue]:
    """Yield the tensors in a variable of Dynamo."""
    # A ``LazyVariableTracker`` that is not realized is an input that the traced code has not read: to realize it would
    # add guards. It is read at the end, if the code has read it by then.
    if value is None or (hasattr(value, "is_realized") and not value.is_realized()):
        yield _TracedValue(None, part, "something that the traced code has not looked at", value)
        return
    if hasattr(value, "is_realized"):
        value = value.unwrap() if hasattr(value, "unwrap") else value.realize()
    # A tensor has the proxy of its node. So has a symbolic size, which is no tensor. Containers list their parts.
    proxy = _read(value, "proxy")
    kind = type(value).__name__
    if proxy is not None and hasattr(proxy, "node") and kind != "SymNodeVariable":
        yield _TracedValue(proxy.node, part)
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
        words = "a number that depends on the shapes of the inputs, and no tensor"
    elif kind == "ConstantVariable":
        words = f"the constant {_read(value, 'value')!r} in the compiled code, and no tensor"
    else:
        words = f"no tensor ({kind.replace('Variable', '')} in Dynamo's terms)"
    yield _TracedValue(None, part, words)


def _read(value: object, attribute: str) -> object:
    """Return an attribute of an object of Dynamo; some are properties that raise."""
    try:
        return getattr(value, attribute, None)
    except NotImplementedError:
        return None


def _key(key: object) -> str:
    return repr(_read(_read(key, "vt") or key, "value"))
