"""An interpreter of the normal form: the meaning of every operation, with real objects of the running Python.

``normal/ops.py`` says in words what an operation does; here it is done, so that the words can be tested. Programs run
in normal form must do what CPython does with their bytecode (``stand_in.py`` puts them in its place). It shares nothing
with the decompiler but the operations. A page for each group:

    variables         the stack and names     LOAD, STORE, DELETE, CLOSURE, COPY, SWAP, ...
    operators         UNARY, BINARY, COMPARE, SUBSCR, ATTR, ...
    containers        BUILD, ADD, UPDATE, UNPACK, FORMAT, ...
    calls             CALL, MAKE_FUNCTION, IMPORT, ...
    control           JUMP, BRANCH, FOR, RAISE, PUSH_EXC, WITH, ...
    matching          MATCH_CLASS, ...
    suspension        YIELD, YIELD_FROM, async FOR

A rule takes the frame and the operation's argument. It returns ``None`` (continue at the next operation), the index of
an operation, or an exception with which unwinding continues; it raises what the operation raises.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import operator
import sys
import types
from types import CellType
from typing import Any, Callable, Dict, Generator, List, Mapping, NamedTuple, Optional, Tuple, Union

import natively

from depyf.decompiler.bytecode.code import FUTURE_FLAGS, is_code
from depyf.decompiler.normal.ops import Handler, NormalCode, Op

Next = Union[None, int, BaseException]
Rule = Callable[["Frame", Any], Next]
Steps = Generator[Any, Any, "Ending"]


class Ending(NamedTuple):
    """How a frame ended: with a value, or with an exception."""

    value: Any = None
    error: Optional[BaseException] = None


class Left(BaseException):
    """Leaves the operations of a generator or coroutine: the exception that its frame ended with."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Item(NamedTuple):
    """What an asynchronous generator yields, as opposed to what it awaits."""

    value: Any


class Marker(NamedTuple):
    """A value of the stack that is no object: NULL, LASTI, PREV with the exception handled before, what TAKE saved."""

    kind: str
    value: Any = None


class Unsupported(BaseException):
    """An operation has no rule here. No ``Exception``: programs under test catch those."""


NULL, LASTI = Marker("NULL"), Marker("LASTI")
UNBOUND = Marker("unbound")


class Frame:
    """One activation of a code object: what operations read and change."""

    def __init__(
        self,
        normal: NormalCode,
        names: Dict[str, Any],
        variables: Dict[str, Any],
        closure: Tuple[Any, ...] = (),
        namespace: Any = None,
        make_function: Optional[Callable[..., Any]] = None,
    ) -> None:
        self.normal, self.code, self.ops = normal, normal.code, normal.ops
        self.names, self.variables, self.namespace = names, variables, namespace
        self.make_function = make_function
        self.stack: List[Any] = []
        self.handled: Optional[BaseException] = None
        self.flags = self.code.co_flags
        self.instr = normal.ops[0]
        self.index = 0
        self.snapshot: Dict[str, Any] = {}
        # An argument that closures use is in a cell from the start. ``__class__`` may be a cell and free in one class
        # body: closures get the cell, and names mean the free variable.
        self.cells: Dict[str, CellType] = {
            name: CellType(variables.pop(name)) if name in variables else CellType() for name in self.code.co_cellvars
        }
        free = dict(zip(self.code.co_freevars, closure))
        self.hidden = {name: free[name] for name in self.cells if name in free}
        self.cells = {**free, **self.cells}
        self.builtins: Mapping[str, Any] = vars(builtins)

    def cell(self, name: str) -> CellType:
        """Return the cell of a variable that is read or written by its name."""
        return self.hidden.get(name) or self.cells[name]

    def popped(self, count: int) -> List[Any]:
        """Pop ``count`` values; return them, the top last."""
        start = len(self.stack) - count
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def unwind(self, handler: Handler, error: BaseException) -> None:
        while len(self.stack) > handler.depth:
            item = self.stack.pop()
            if isinstance(item, Marker) and item.kind == "PREV":
                self.handled = item.value
        if handler.lasti:
            self.stack.append(LASTI)
        self.stack.append(error)


# --- running a frame


@types.coroutine
def steps(frame: Frame) -> Steps:
    """Run the frame from ``frame.index`` to its end. Yields what the code yields, and what it awaits yields.
    Raises ``Left``."""
    index = frame.index
    while True:
        instr = frame.instr = frame.ops[index]
        op, frame.index = instr.op, index
        following: Next
        try:
            if op is Op.RETURN:
                return Ending(frame.stack.pop())
            if op in SUSPENDING and (op is not Op.FOR or instr.arg):
                following = yield from SUSPENDING[op](frame, instr.arg)
            elif op not in RULES:
                raise Unsupported(f"{instr!r}")
            elif frame.handled is None:
                following = RULES[op](frame, instr.arg)
            else:
                following = while_handled(frame.handled, RULES[op], frame, instr.arg)
        except BaseException as error:
            following = error
        if following is None:
            index += 1
        elif isinstance(following, int):
            index = following
        elif instr.handler is None or isinstance(following, Unsupported):
            raise Left(following)
        else:
            frame.unwind(instr.handler, following)
            index = instr.handler.target
            following = None


def while_handled(handled: BaseException, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function`` where ``sys.exc_info`` shows ``handled``, and what is raised gets it as its context."""
    kept = handled.__traceback__, handled.__context__
    try:
        raise handled
    except BaseException:
        handled.__traceback__, handled.__context__ = kept
        return function(*arguments)


def finish(ending: Union[Ending, Left]) -> Any:
    """Return the value of a frame that has ended, or raise its exception, with the context that it has."""
    error = ending.error
    if error is None:
        assert isinstance(ending, Ending)
        return ending.value
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context
        del ending, error, context


def start_iterating(frame: Frame) -> None:
    """Run the operations up to the first ITER or AITER, which load the iterable of a generator expression."""
    while True:
        instr = frame.instr = frame.ops[frame.index]
        RULES[instr.op](frame, instr.arg)
        frame.index += 1
        if instr.op in (Op.ITER, Op.AITER):
            return


def run(frame: Frame) -> Any:
    """Run a frame of code that neither yields nor awaits."""
    try:
        next(steps(frame))
    except StopIteration as stop:
        ending: Ending = stop.value
    except Left as left:
        ending = Ending(error=left.error)
    return finish(ending)


# --- variables


def _const(frame: Frame, arg: Any) -> None:
    frame.stack.append(arg)


def _null(frame: Frame, arg: Any) -> None:
    frame.stack.append(NULL)


def _load(frame: Frame, arg: Any) -> None:
    scope, name = arg
    if scope == "fast":
        if name not in frame.variables:
            natively.unbound_local(name)
        frame.stack.append(frame.variables[name])
        return
    if scope in ("name", "classderef", "bodyglobal", "bodyderef"):
        # A class body looks into its namespace first, and so do type parameters and annotations in it.
        body = scope.startswith("body")
        namespace = frame.cells["__classdict__"].cell_contents if body else frame.namespace
        try:
            frame.stack.append(namespace[name])
            return
        except KeyError:
            pass
    if scope.endswith("deref"):
        try:
            frame.stack.append(frame.cell(name).cell_contents)
            return
        except ValueError:
            pass
        natively.unbound_cell(name, free=name in frame.code.co_freevars)
    for names in (frame.names, frame.builtins):
        try:
            frame.stack.append(names[name])
            return
        except KeyError:
            pass
    natively.undefined(name)


def _store(frame: Frame, arg: Any) -> None:
    scope, name = arg
    value = frame.stack.pop()
    if scope == "deref":
        frame.cell(name).cell_contents = value
    elif isinstance(value, Marker) and value.kind == "saved":
        _restore(frame.variables if scope == "fast" else frame.cells, name, value.value)
    else:
        {"fast": frame.variables, "global": frame.names, "name": frame.namespace, "cell": frame.cells}[scope][name] = (
            value
        )


def _restore(variables: Dict[str, Any], name: str, saved: Any) -> None:
    if saved is UNBOUND:
        variables.pop(name, None)
    else:
        variables[name] = saved


def _delete(frame: Frame, arg: Any) -> None:
    scope, name = arg
    if scope == "fast":
        if name not in frame.variables:
            natively.unbound_local(name)
        del frame.variables[name]
    elif scope == "deref":
        _load(frame, arg)  # of an empty cell it raises
        frame.stack.pop()
        del frame.cell(name).cell_contents
    else:
        namespace = frame.names if scope == "global" else frame.namespace
        try:
            del namespace[name]
            return
        except KeyError:
            pass
        natively.undefined(name, deleted=True)


def _take(frame: Frame, arg: Any) -> None:
    scope, name = arg
    variables: Dict[str, Any] = frame.variables if scope == "fast" else frame.cells
    frame.stack.append(Marker("saved", variables.pop(name, UNBOUND)))


def _make_cell(frame: Frame, arg: Any) -> None:
    frame.cells[arg] = CellType()


def _closure(frame: Frame, arg: Any) -> None:
    frame.stack.append(frame.cells[arg])


def _special(frame: Frame, arg: Any) -> None:
    if arg == "__build_class__":  # found where the function finds its builtins; the others are not looked up
        if arg not in frame.builtins:
            raise NameError("__build_class__ not found")
        frame.stack.append(frame.builtins[arg])
    else:
        frame.stack.append(getattr(builtins, arg))


def _namespace(frame: Frame, arg: Any) -> None:
    frame.stack.append(frame.namespace)


def _copy(frame: Frame, arg: Any) -> None:
    frame.stack.append(frame.stack[-arg])


def _swap(frame: Frame, arg: Any) -> None:
    stack = frame.stack
    stack[-1], stack[-arg] = stack[-arg], stack[-1]


def _pop(frame: Frame, arg: Any) -> None:
    frame.stack.pop()


VARIABLES: Dict[Op, Rule] = {
    Op.CONST: _const, Op.NULL: _null, Op.LOAD: _load, Op.STORE: _store, Op.DELETE: _delete, Op.TAKE: _take,
    Op.MAKE_CELL: _make_cell, Op.CLOSURE: _closure, Op.SPECIAL: _special, Op.NAMESPACE: _namespace, Op.COPY: _copy,
    Op.SWAP: _swap, Op.POP: _pop,
}  # fmt: skip

# --- operators

_UNARY: Dict[str, Callable[[Any], Any]] = {
    "+": operator.pos, "-": operator.neg, "~": operator.invert, "not": operator.not_,
}  # fmt: skip
_NAMES = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "@": "matmul", "**": "pow",
    "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
_BINARY = {symbol: getattr(operator, f"__{name}__") for symbol, name in _NAMES.items()}
_INPLACE = {symbol: getattr(operator, f"__i{name}__") for symbol, name in _NAMES.items()}
_COMPARE = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _of_table(table: Dict[str, Callable[..., Any]], count: int) -> Callable[[Frame, Any], None]:
    def rule(frame: Frame, arg: Any) -> None:
        frame.stack.append(table[arg](*frame.popped(count)))

    return rule


def _pushes(count: int, function: Callable[..., Any]) -> Callable[[Frame, Any], None]:
    """Return the rule of ``count`` values -> r."""

    def rule(frame: Frame, arg: Any) -> None:
        frame.stack.append(function(*frame.popped(count)))

    return rule


def _is(frame: Frame, arg: Any) -> None:
    left, right = frame.popped(2)
    frame.stack.append((left is right) is not arg)


def _in(frame: Frame, arg: Any) -> None:
    item, container = frame.popped(2)
    frame.stack.append((item in container) is not arg)


def _store_subscr(frame: Frame, arg: Any) -> None:
    value, owner, index = frame.popped(3)
    owner[index] = value


def _delete_subscr(frame: Frame, arg: Any) -> None:
    owner, index = frame.popped(2)
    del owner[index]


def _attr(frame: Frame, arg: Any) -> None:
    frame.stack.append(getattr(frame.stack.pop(), arg))


def _store_attr(frame: Frame, arg: Any) -> None:
    value, owner = frame.popped(2)
    setattr(owner, arg, value)


def _delete_attr(frame: Frame, arg: Any) -> None:
    delattr(frame.stack.pop(), arg)


def _super_attr(frame: Frame, arg: Any) -> None:
    name, written = arg
    kind, *arguments = frame.popped(3)
    # ``super()`` has arguments in the source or not; another ``super`` than the builtin gets those of the source.
    frame.stack.append(getattr(_call_of(frame, kind, arguments if written or kind is super else []), name))


OPERATORS: Dict[Op, Rule] = {
    Op.UNARY: _of_table(_UNARY, 1), Op.BINARY: _of_table(_BINARY, 2), Op.INPLACE: _of_table(_INPLACE, 2),
    Op.COMPARE: _of_table(_COMPARE, 2), Op.IS: _is, Op.IN: _in, Op.SUBSCR: _pushes(2, operator.getitem),
    Op.STORE_SUBSCR: _store_subscr, Op.DELETE_SUBSCR: _delete_subscr, Op.ATTR: _attr, Op.STORE_ATTR: _store_attr,
    Op.DELETE_ATTR: _delete_attr, Op.SUPER_ATTR: _super_attr,
}  # fmt: skip

# --- containers


def _build(frame: Frame, arg: Any) -> None:
    kind, count = arg
    if kind == "const_key_map":
        keys = frame.stack.pop()
        frame.stack.append(dict(zip(keys, frame.popped(count))))
    elif kind == "map":
        values = frame.popped(2 * count)
        frame.stack.append(dict(zip(values[::2], values[1::2])))
    elif kind in _UNPACKING:
        at = -count - (2 if kind == "keywords_of" else 1)  # what is called; below keywords are the positional arguments
        callee = next((value for value in frame.stack[at : at - 2 : -1] if value is not NULL), None)
        values = frame.popped(count)
        frame.stack.append(_UNPACKING[kind](callee, values))
    else:
        frame.stack.append(_BUILD[kind](frame.popped(count)))


_BUILD: Dict[str, Callable[[List[Any]], Any]] = {
    "tuple": tuple, "list": list, "set": set, "string": "".join, "slice": lambda bounds: slice(*bounds),
}  # fmt: skip


def _listed(callee: Any, values: List[Any]) -> List[Any]:
    result: List[Any] = []
    for value in values:
        result += [*value]
    return result


def _arguments_of(callee: Any, values: List[Any]) -> Tuple[Any, ...]:
    result: List[Any] = []
    for value in values:
        if not hasattr(type(value), "__iter__") and not hasattr(type(value), "__getitem__"):
            callee(*value)  # raises, and names the callee
        result += [*value]
    return tuple(result)


def _mapped(callee: Any, values: List[Any]) -> Dict[Any, Any]:
    result: Dict[Any, Any] = {}
    for value in values:
        result = {**result, **value}
    return result


def _keywords_of(callee: Any, values: List[Any]) -> Dict[Any, Any]:
    result: Dict[Any, Any] = {}
    for value in values:
        _merge_keywords(callee, result, value)
    return result


def _set_of(callee: Any, values: List[Any]) -> Any:
    result: Any = set()
    for value in values:
        result.update(value)
    return result


_UNPACKING: Dict[str, Callable[[Any, List[Any]], Any]] = {
    "tuple_of": lambda callee, values: tuple(_listed(callee, values)), "list_of": _listed, "set_of": _set_of,
    "map_of": _mapped, "arguments_of": _arguments_of, "keywords_of": _keywords_of,
}  # fmt: skip


def _add(frame: Frame, arg: Any) -> None:
    kind, depth = arg
    values = frame.popped(2 if kind == "map" else 1)
    container = frame.stack[-depth]
    if kind == "map":
        container[values[0]] = values[1]
    else:
        (list.append if kind == "list" else set.add)(container, *values)


def _update(frame: Frame, arg: Any) -> None:
    kind, depth = arg
    value = frame.stack.pop()
    container = frame.stack[-depth]
    if kind == "list":
        container.extend([*value])
    elif kind == "set":
        container.update(value)
    elif kind == "map":
        frame.stack[-depth] = {**container, **value}
    else:
        below = frame.stack[: len(frame.stack) - depth][:-1]  # what is called lies below the arguments
        _merge_keywords(below[-1] if below[-1] is not NULL else below[-2], container, value)


def _keys_of(value: Any) -> List[Any]:
    method = value.keys
    if sys.version_info < (3, 9) and not callable(method):
        raise TypeError(f"attribute of type '{type(method).__name__}' is not callable")
    keys = method()
    try:
        iterator = iter(keys)
    except TypeError:
        iterator = None
    if iterator is None:  # raises, and names the class of the mapping
        return [
            *{**type(type(value).__name__, (), {"keys": lambda self: keys, "__module__": type(value).__module__})()}
        ]
    return list(iterator)


def _merge_keywords(callee: Any, container: Dict[Any, Any], value: Any) -> None:
    """Add keywords for a call of ``callee``, whose name is in the errors: such calls fail before they begin."""
    failed: Any = None
    try:
        for key in _keys_of(value):
            if key in container:
                failed = {key: None}
                break
            container[key] = value[key]
    except AttributeError:
        failed = type(type(value).__name__, (), {})()  # no mapping, either
    if type(failed) is dict:
        callee(**failed, **failed)
    elif failed is not None:
        callee(**failed)


def _unpack(frame: Frame, arg: Any) -> None:
    frame.stack += natively.unpacked(frame.stack.pop(), arg)[::-1]


def _unpack_ex(frame: Frame, arg: Any) -> None:
    frame.stack += natively.unpacked(frame.stack.pop(), *arg)[::-1]


_CONVERT: Dict[str, Callable[[Any], Any]] = {"": lambda value: value, "s": str, "r": repr, "a": ascii}


def _convert(frame: Frame, arg: Any) -> None:
    frame.stack.append(_CONVERT[arg](frame.stack.pop()))


def _format(frame: Frame, arg: Any) -> None:
    conversion, has_spec = arg
    spec = frame.popped(has_spec)
    frame.stack.append(format(_CONVERT[conversion](frame.stack.pop()), *spec))


def _interpolation(frame: Frame, arg: Any) -> None:
    from string.templatelib import Interpolation  # type: ignore[import-not-found, unused-ignore]

    conversion, has_spec = arg
    spec = frame.popped(has_spec)
    value, text = frame.popped(2)
    frame.stack.append(Interpolation(value, text, conversion or None, *spec))


def _template(frame: Frame, arg: Any) -> None:
    from string.templatelib import Template  # type: ignore[import-not-found, unused-ignore]

    strings, fields = frame.popped(2)
    parts = [strings[0]]
    for field, text in zip(fields, strings[1:]):
        parts += [field, text]
    frame.stack.append(Template(*parts))


CONTAINERS: Dict[Op, Rule] = {
    Op.BUILD: _build, Op.ADD: _add, Op.UPDATE: _update, Op.LIST_TO_TUPLE: _pushes(1, tuple), Op.UNPACK: _unpack,
    Op.UNPACK_EX: _unpack_ex, Op.CONVERT: _convert, Op.FORMAT: _format, Op.INTERPOLATION: _interpolation,
    Op.TEMPLATE: _template,
}  # fmt: skip

# --- calls, functions and modules


def _call(frame: Frame, arg: Any) -> None:
    count, names, null = arg
    arguments = frame.popped(count)
    keywords = dict(zip(names, arguments[len(arguments) - len(names) :]))
    positional = arguments[: len(arguments) - len(names)]
    target = frame.stack.pop()
    if null:  # two slots: a callable and a NULL, in either order, or a callable and its first argument
        below = frame.stack.pop()
        if null == "below" and below is not NULL:
            target, positional = below, [target, *positional]
        elif null == "above":
            target, positional = below, positional if target is NULL else [target, *positional]
    frame.stack.append(_call_of(frame, target, positional, keywords))


def _call_ex(frame: Frame, arg: Any) -> None:
    has_keywords, null = arg
    keywords = frame.stack.pop() if has_keywords else {}
    arguments = frame.stack.pop()
    target = frame.stack.pop()
    if null:
        other = frame.stack.pop()
        target = other if null == "above" else target
    frame.stack.append(_call_of(frame, target, arguments, keywords))


def _call_of(frame: Frame, target: Any, arguments: Any, keywords: Any = {}) -> Any:  # noqa: B006 - never changed
    """Call ``target`` from a frame with the globals of ``frame``; answer for the builtins that look at the frame."""
    looks = _LOOKS_AT_FRAME.get(target) if type(target) in _LOOKERS and not keywords else None
    if looks is not None and isinstance(arguments, (list, tuple)):
        found = looks(frame, *arguments)
        if found is not NotImplemented:
            return found
    return _called(frame, target, arguments, keywords)


def _called(frame: Frame, target: Any, arguments: Any, keywords: Any) -> Any:
    # Builtins that compile inherit what the code that calls them has imported from ``__future__``.
    flags = _CALLER.co_flags & ~FUTURE_FLAGS | frame.code.co_flags & FUTURE_FLAGS
    return types.FunctionType(_CALLER.replace(co_flags=flags), frame.names, "call")(target, arguments, keywords)


def _caller(target, arguments, keywords):  # type: ignore[no-untyped-def]
    return target(*arguments, **keywords)


_CALLER = _caller.__code__
_LOOKERS = (types.BuiltinFunctionType, type)


def _locals(frame: Frame) -> Any:
    if frame.namespace is not None:
        return frame.namespace
    found = dict(frame.variables)
    for name, cell in frame.cells.items():
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    if sys.version_info >= (3, 13):
        return found
    for name in {*frame.variables, *frame.cells, *frame.code.co_varnames}:
        frame.snapshot.pop(name, None)
    frame.snapshot.update(found)
    return frame.snapshot


def _super(frame: Frame, *arguments: Any) -> Any:
    if arguments or "__class__" not in frame.cells or not frame.code.co_argcount:
        return NotImplemented
    first = frame.code.co_varnames[0]
    found: List[Any] = []
    for name in ("__class__", first):
        try:
            found.append(frame.cells[name].cell_contents if name in frame.cells else frame.variables[name])
        except (KeyError, ValueError):
            break
    if len(found) < 2:
        raise RuntimeError("super(): arg[0] deleted" if found else "super(): empty __class__ cell")
    return super(*found)


def _run_text(run: Callable[..., Any]) -> Callable[..., Any]:
    def answer(frame: Frame, text: Any, names: Any = None, namespace: Any = None) -> Any:
        if names is None:
            names, namespace = frame.names, _locals(frame) if namespace is None else namespace
        return _called(frame, run, (text, names, namespace), {})

    return answer


_LOOKS_AT_FRAME: Dict[Any, Callable[..., Any]] = {
    globals: lambda frame: frame.names,
    locals: _locals,
    vars: lambda frame, *of: NotImplemented if of else _locals(frame),
    dir: lambda frame, *of: NotImplemented if of else sorted(_locals(frame)),
    eval: _run_text(eval),
    exec: _run_text(exec),
    super: _super,
}


def _make_function(frame: Frame, flags: Any) -> None:
    code = frame.stack.pop()
    made: Dict[int, Any] = {flag: frame.stack.pop() for flag in (8, 16, 4, 2, 1) if flags & flag}
    assert frame.make_function is not None
    assert is_code(code)
    frame.stack.append(frame.make_function(frame, code, made))


def _import(frame: Frame, arg: Any) -> None:
    name, when = arg
    level, names = frame.popped(2)
    if when == "lazy":
        raise Unsupported("a lazy import")
    if "__import__" not in frame.builtins:
        raise ImportError("__import__ not found")
    frame.stack.append(frame.builtins["__import__"](name, frame.names, frame.namespace, names, level))


def _import_from(frame: Frame, arg: Any) -> None:
    frame.stack.append(natively.from_module(frame.stack[-1], arg))


def _import_star(frame: Frame, arg: Any) -> None:
    natively.all_from_module(frame.stack.pop(), frame.namespace)


def _set_up_annotations(frame: Frame, arg: Any) -> None:
    try:
        frame.namespace["__annotations__"]
    except KeyError:
        frame.namespace["__annotations__"] = {}


def _print(frame: Frame, arg: Any) -> None:
    sys.displayhook(frame.stack.pop())


def _intrinsic(frame: Frame, arg: Any) -> None:
    name, count = arg
    if name not in _INTRINSICS:
        raise Unsupported(name)
    frame.stack.append(_INTRINSICS[name](*frame.popped(count)))


def _without_keys(subject: Any, keys: Any) -> Any:
    rest = {**subject}
    for key in keys:
        del rest[key]
    return rest


def _type_parameter(text: str) -> Callable[..., Any]:
    def make(name: str, evaluate: Any = None) -> Any:
        defined = text.format(name=name)
        return natively.function(f"def make(evaluate):\n def f{defined}: pass\n return f", "make")(
            evaluate and (lambda: evaluate(*[1] * evaluate.__code__.co_argcount))
        ).__type_params__[0]

    return make


def _with_parameters(function: Any, parameters: Any) -> Any:
    function.__type_params__ = parameters
    return function


def _generic(parameters: Any) -> Any:
    import typing

    names: Any = typing
    return names.Generic[
        tuple(names.Unpack[each] if type(each).__name__ == "TypeVarTuple" else each for each in parameters)
    ]


def _alias(facts: Any) -> Any:
    name, parameters, evaluate = facts
    if parameters:
        raise Unsupported("a type alias with parameters")
    made = natively.function(f"def make(evaluate):\n type {name} = evaluate()\n return {name}", "make")
    return made(lambda: evaluate(*[1] * evaluate.__code__.co_argcount))


_INTRINSICS: Dict[str, Callable[..., Any]] = {
    "COPY_DICT_WITHOUT_KEYS": _without_keys,
    "TYPEVAR": _type_parameter("[{name}]()"),
    "TYPEVAR_WITH_BOUND": _type_parameter("[{name}: evaluate()]()"),
    "TYPEVAR_WITH_CONSTRAINTS": _type_parameter("[{name}: (*evaluate(),)]()"),
    "TYPEALIAS": _alias,
    "PARAMSPEC": _type_parameter("[**{name}]()"),
    "TYPEVARTUPLE": _type_parameter("[*{name}]()"),
    "SET_FUNCTION_TYPE_PARAMS": _with_parameters,
    "SUBSCRIPT_GENERIC": _generic,
}

CALLS: Dict[Op, Rule] = {
    Op.CALL: _call, Op.CALL_EX: _call_ex, Op.MAKE_FUNCTION: _make_function, Op.IMPORT: _import,
    Op.IMPORT_FROM: _import_from, Op.IMPORT_STAR: _import_star, Op.SETUP_ANNOTATIONS: _set_up_annotations,
    Op.PRINT: _print, Op.INTRINSIC: _intrinsic,
}  # fmt: skip

# --- control and exceptions


def _jump(frame: Frame, arg: Any) -> Next:
    return frame.instr.target


def _branch(frame: Frame, arg: Any) -> Next:
    value = frame.stack.pop()
    jumps = bool(value) is (arg == "true") if arg in ("true", "false") else (value is None) is (arg == "none")
    return frame.instr.target if jumps else None


def _for(frame: Frame, arg: Any) -> Next:
    try:
        frame.stack.append(next(frame.stack[-1]))
    except StopIteration:
        frame.stack.pop()
        return frame.instr.target
    return None


def _raise(frame: Frame, arg: Any) -> Next:
    if not arg:
        if frame.handled is not None:
            return frame.handled
        raise
    if arg == 1:
        raise frame.stack.pop()
    error, cause = frame.popped(2)
    raise error from cause


def _reraise(frame: Frame, arg: Any) -> Next:
    error = frame.stack.pop()
    assert isinstance(error, BaseException)
    return error


def _push_exc(frame: Frame, arg: Any) -> None:
    error = frame.stack.pop()
    frame.stack += [Marker("PREV", frame.handled), error]
    frame.handled = error


def _pop_exc(frame: Frame, arg: Any) -> None:
    marker = frame.stack.pop()
    assert marker.kind == "PREV"
    frame.handled = marker.value


def _check_exc(frame: Frame, arg: Any) -> None:
    kind = frame.stack.pop()
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not all(isinstance(each, type) and issubclass(each, BaseException) for each in kinds):
        raise natively.error_of("def f(kind):\n try: raise ValueError\n except kind: pass", kind)
    frame.stack.append(_matches(frame.stack[-1], kinds))


def _matches(error: Any, kinds: Any) -> bool:
    return any(each in type(error).__mro__ for each in kinds)  # no __subclasscheck__


def _check_exc_group(frame: Frame, arg: Any) -> None:
    error, kind = frame.popped(2)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if any(not isinstance(each, type) or _has_base(each, "BaseExceptionGroup") for each in kinds):
        raise natively.error_of("def f(kind):\n try: raise ValueError\n except* kind: pass", kind)
    group: Any = builtins.BaseExceptionGroup  # type: ignore[attr-defined, unused-ignore]
    match, rest = None, error
    if error is None:
        pass
    elif _matches(error, kinds):
        match, rest = error, None
        if not isinstance(error, group):  # a plain exception comes as a group of one
            match = group("", [error])
            match.__traceback__ = error.__traceback__
    elif isinstance(error, group):
        match, rest = _split(error, kind)
    if match is not None:
        frame.handled = match
    frame.stack += [rest, match]


def _split(group: Any, kind: Any) -> Any:
    parts = group.split(kind)
    name = type(group).__name__
    if not isinstance(parts, tuple):
        raise TypeError(f"{name}.split must return a tuple, not {type(parts).__name__}")
    if len(parts) < 2:
        raise TypeError(f"{name}.split must return a 2-tuple, got tuple of size {len(parts)}")
    return parts[:2]


def _has_base(kind: Any, name: str) -> bool:
    return not issubclass(kind, BaseException) or any(each.__name__ == name for each in kind.__mro__)


def _prepare_reraise_star(original: Any, results: List[Any]) -> Any:
    """Return what leaves ``except*``: what its clauses raised, and what no clause took, in groups as it came."""
    group: Any = builtins.BaseExceptionGroup  # type: ignore[attr-defined, unused-ignore]
    if not isinstance(original, group):
        return results[0] if results else None
    left = [each for each in results if each is not None]
    again = [each for each in left if _is_part_of(each, original)]
    raised = [each for each in left if not _is_part_of(each, original)]
    if again:
        kept = {id(leaf) for each in again for leaf in _leaves(each)}
        raised.append(original.subgroup(lambda leaf: id(leaf) in kept))
    if len(raised) == 1 and again:
        return raised[0]
    return group("", raised) if len(raised) > 1 else raised[0] if raised else None


def _is_part_of(error: Any, original: Any) -> bool:
    facts = ("__notes__", "__traceback__", "__cause__", "__context__")
    is_group = hasattr(error, "split")
    return is_group and all(getattr(error, name, None) is getattr(original, name, None) for name in facts)


def _leaves(error: Any) -> List[Any]:
    if not hasattr(error, "split"):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]


def _with(frame: Frame, arg: Any) -> None:
    frame.stack += natively.enter(frame.stack.pop(), asynchronous=False)


def _async_with(frame: Frame, arg: Any) -> None:
    frame.stack += natively.enter(frame.stack.pop(), asynchronous=True)


def _with_except(frame: Frame, arg: Any) -> None:
    leave, error = frame.stack[-4], frame.stack[-1]
    frame.stack.append(_call_of(frame, leave, [type(error), error, error.__traceback__]))


CONTROL: Dict[Op, Rule] = {
    Op.JUMP: _jump, Op.BRANCH: _branch, Op.ITER: _pushes(1, iter), Op.FOR: _for, Op.RAISE: _raise,
    Op.RERAISE: _reraise, Op.PUSH_EXC: _push_exc, Op.POP_EXC: _pop_exc, Op.CHECK_EXC: _check_exc,
    Op.CHECK_EXC_GROUP: _check_exc_group, Op.PREP_RERAISE_STAR: _pushes(2, _prepare_reraise_star), Op.WITH: _with,
    Op.ASYNC_WITH: _async_with, Op.WITH_EXCEPT: _with_except,
}  # fmt: skip

# --- matching


def _looks(function: Callable[[Any], Any]) -> Rule:
    """Return the rule of a -> a r."""

    def rule(frame: Frame, arg: Any) -> None:
        frame.stack.append(function(frame.stack[-1]))

    return rule


def _match_keys(frame: Frame, arg: Any) -> None:
    subject, keys = frame.stack[-2:]
    values: Optional[List[Any]] = []
    seen: set[Any] = set()
    missing, get = object(), None
    for key in keys:
        if key in seen:
            raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
        seen.add(key)
        get = get or subject.get
        value = get(key, missing)
        if value is missing:
            values = None
            break
        assert values is not None
        values.append(value)
    frame.stack.append(None if values is None else tuple(values))


def _match_class(frame: Frame, arg: Any) -> None:
    subject, cls, names = frame.popped(3)
    frame.stack.append(natively.class_match(subject, cls, arg, names))


MATCHING: Dict[Op, Rule] = {
    Op.MATCH_MAPPING: _looks(natively.is_mapping), Op.MATCH_SEQUENCE: _looks(natively.is_sequence),
    Op.GET_LEN: _looks(len), Op.MATCH_KEYS: _match_keys, Op.MATCH_CLASS: _match_class,
}  # fmt: skip

# --- generators and coroutines


def _yield_from_iter(frame: Frame, arg: Any) -> None:
    value = frame.stack.pop()
    if isinstance(value, types.CoroutineType) and not frame.flags & (
        inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE
    ):
        raise TypeError("cannot 'yield from' a coroutine object in a non-coroutine generator")
    plain = isinstance(value, (types.CoroutineType, types.GeneratorType))
    frame.stack.append(value if plain else iter(value))


def _aiter(frame: Frame, arg: Any) -> None:
    value = frame.stack.pop()
    begin = natively.special(value, "__aiter__")
    if begin is natively.MISSING:
        kind = type(value).__name__
        raise TypeError(f"'async for' requires an object with __aiter__ method, got {kind}")
    iterator = begin()
    if not hasattr(type(iterator), "__anext__"):
        raise TypeError(
            "'async for' received an object from __aiter__ that does not implement __anext__: "
            + type(iterator).__name__
        )
    frame.stack.append(iterator)


_ENTERING = ("", "__aenter__", "__aexit__")


def _awaitable(frame: Frame, arg: Any) -> None:
    value = frame.stack.pop()
    flags = value.gi_code.co_flags if isinstance(value, types.GeneratorType) else 0
    if isinstance(value, types.CoroutineType) or flags & inspect.CO_ITERABLE_COROUTINE:
        if isinstance(value, types.CoroutineType) and value.cr_await is not None:
            raise RuntimeError("coroutine is being awaited already")
        frame.stack.append(value)
        return
    begin = natively.special(value, "__await__")
    if begin is natively.MISSING:
        name = type(value).__name__
        if arg:
            where = f"'async with' received an object from {_ENTERING[arg]} that does not implement __await__: {name}"
            raise TypeError(where)
        natively.function("async def f(x): await x")(value).send(None)
    iterator = begin()
    if isinstance(iterator, types.CoroutineType) or not hasattr(type(iterator), "__next__"):
        natively.function("async def f(x): await x")(_Awaited(iterator)).send(None)
    frame.stack.append(iterator)


class _Awaited:
    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __await__(self) -> Any:
        return self._iterator


class _Given:
    """An iterator that ``yield from`` takes as it is."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __iter__(self) -> Any:
        return self._iterator


def _yield(frame: Frame, arg: Any) -> Generator[Any, Any, Next]:
    value = frame.stack.pop()
    thrown: BaseException
    try:
        frame.stack.append((yield Item(value) if frame.code.co_flags & inspect.CO_ASYNC_GENERATOR else value))
        return None
    except BaseException as error:
        thrown = error
    if frame.handled is None:
        return thrown
    try:
        while_handled(frame.handled, _throw, thrown)
    except BaseException as error:
        thrown = error
    return thrown


def _throw(error: BaseException) -> None:
    raise error


@types.coroutine
def _delegated(handled: Optional[BaseException], iterator: Any) -> Generator[Any, Any, Any]:
    if handled is None:
        return (yield from iterator)
    kept = handled.__traceback__, handled.__context__
    try:
        raise handled
    except BaseException:
        handled.__traceback__, handled.__context__ = kept
        return (yield from iterator)


@types.coroutine
def _yield_from(frame: Frame, arg: Any) -> Generator[Any, Any, Next]:
    iterator, first = frame.popped(2)
    if first is not None:
        raise Unsupported("YIELD_FROM that sends a value first")
    plain = isinstance(iterator, (types.CoroutineType, types.GeneratorType))
    frame.stack.append((yield from _delegated(frame.handled, iterator if plain else _Given(iterator))))
    return None


@types.coroutine
def _async_for(frame: Frame, arg: Any) -> Generator[Any, Any, Next]:
    try:
        value = yield from _delegated(frame.handled, _advanced(frame.stack[-1]))
    except StopAsyncIteration:
        frame.stack.pop()
        return frame.instr.target
    frame.stack.append(value)
    return None


async def _advanced(iterator: Any) -> Any:
    async for value in _Once(iterator):
        return value
    raise StopAsyncIteration


class _Once:
    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __aiter__(self) -> Any:
        return self

    def __anext__(self) -> Any:
        return type(self._iterator).__anext__(self._iterator)


SUSPENDING: Dict[Op, Callable[[Frame, Any], Generator[Any, Any, Next]]] = {
    Op.YIELD: _yield, Op.YIELD_FROM: _yield_from, Op.FOR: _async_for,
}  # fmt: skip
GENERATORS: Dict[Op, Rule] = {
    Op.YIELD_FROM_ITER: _yield_from_iter, Op.AITER: _aiter, Op.AWAITABLE: _awaitable,
}  # fmt: skip

RULES: Dict[Op, Rule] = {
    **VARIABLES, **OPERATORS, **CONTAINERS, **CALLS, **CONTROL, **MATCHING, **GENERATORS,
}  # fmt: skip
