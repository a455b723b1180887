"""Code objects that run another code object's normal form: put in its place, the program does the same, or normal form,
lowering or interpreter are wrong.

    code = stand_in(compile(text, "<text>", "exec"))
    exec(code, {})                              # the whole module, with all that it defines, in the interpreter

A stand-in has the signature, the names and the kind of the original (function, class body, generator, coroutine). It
hands its arguments, closure and globals to ``interpreter.py``. Code that functions are made from while it runs is
replaced, too. The original may be of another Python (``PortableCode``): only its normal form is run.
"""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from types import CodeType, FunctionType
from typing import Any, Callable, Dict, Generator, List, Optional, Tuple, Union

from interpreter import Ending, Frame, Item, Left, finish, run, start_iterating, steps

from depyf.decompiler.bytecode.code import Code, docstring, nested_codes, parameter_names, version_of
from depyf.decompiler.bytecode.nesting import Names, names_of
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import NormalCode

Lowered = Callable[[Code], NormalCode]

_PLAIN = "def f({parameters}):\n  return 'LEAVE'('RUN'('GLOBALS'(), {closure}, {namespace}, {arguments}))"
_GENERATOR = """def f({parameters}):
  steps = 'RUN'('GLOBALS'(), {closure}, None, {arguments})
  sent = error = None
  while True:
    done, value = 'ADVANCE'(steps, sent, error)
    if done:
      return 'LEAVE'(value)
    try:
      sent, error = (yield value), None
    except 'ANYTHING' as thrown:
      sent, error = None, thrown
"""
_LAMBDA = "f = lambda {parameters}: 'LEAVE'((yield from 'ENDED'('RUN'('GLOBALS'(), {closure}, None, {arguments}))))"
_COROUTINE = """async def f({parameters}):
  try:
    ended = await 'RUN'('GLOBALS'(), {closure}, None, {arguments})
  except 'LEFT' as left:
    ended = left
  return 'LEAVE'(ended)
"""
_ASYNC_GENERATOR = """async def f({parameters}):
  steps = 'RUN'('GLOBALS'(), {closure}, None, {arguments})
  sent = error = None
  while True:
    done, value = await 'AWAIT'(steps, sent, error)
    if done:
      'LEAVE'(value)
      return
    try:
      sent, error = (yield value), None
    except 'ANYTHING' as thrown:
      sent, error = None, thrown
"""
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def stand_in(code: Code, lowered: Lowered = lower, ran: Optional[Callable[[Code], None]] = None) -> CodeType:
    """Return code of the running Python that runs ``code`` in normal form. ``ran`` gets each code object that runs."""
    return _StandIns(lowered, ran).of(code)


class _StandIns:
    """The stand-ins of one program, each made once."""

    def __init__(self, lowered: Lowered, ran: Optional[Callable[[Code], None]]) -> None:
        self._lowered, self._ran = lowered, ran
        self._made: Dict[int, CodeType] = {}
        self._normal: Dict[int, NormalCode] = {}
        self._names: Dict[int, Names] = {}
        self._kept: List[Code] = []

    def of(self, code: Code) -> CodeType:
        if id(code) not in self._made:
            self._kept.append(code)  # so that its id stays its own
            self._made[id(code)] = self._make(code)
        return self._made[id(code)]

    def _make(self, code: Code) -> CodeType:
        table = {
            "RUN": self._runner(code),
            "LEAVE": finish,
            "GLOBALS": globals,
            "LOCALS": locals,
            "ADVANCE": _next,
            "AWAIT": _advance,
            "ENDED": _ended,
            "ANYTHING": BaseException,
            "LEFT": Left,
        }
        made = _compiled(_text(code), bool(code.co_freevars))
        names = made.co_varnames[len(parameter_names(code)) :]
        optimized = code.co_flags & inspect.CO_OPTIMIZED
        facts: Dict[str, Any] = {
            "co_consts": tuple(table.get(each, each) if isinstance(each, str) else each for each in made.co_consts),
            "co_varnames": (*parameter_names(code), *names),
            "co_freevars": tuple(code.co_freevars),
            "co_name": code.co_name,
            "co_filename": code.co_filename,
            "co_firstlineno": max(code.co_firstlineno, 1),
            "co_flags": made.co_flags if optimized else made.co_flags & ~(inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS),
        }
        if hasattr(made, "co_qualname"):
            facts["co_qualname"] = code.co_qualname  # type: ignore[union-attr, unused-ignore]
        return made.replace(**facts)

    def _runner(self, code: Code) -> Callable[..., Any]:
        """Return what the stand-in calls: it runs the code, or returns what a generator or coroutine delegates to."""
        variables, suspends = parameter_names(code), code.co_flags & _GENERATORS

        def runner(names: Dict[str, Any], closure: Tuple[Any, ...], namespace: Any, *arguments: Any) -> Any:
            normal = self._normal.get(id(code))
            if normal is None:
                normal = self._normal[id(code)] = self._lowered(code)
            if self._ran is not None:
                self._ran(code)
            frame = Frame(normal, names, dict(zip(variables, arguments)), closure, namespace, self._function)
            caller = sys._getframe(1)  # the stand-in
            frame.builtins, frame.flags = caller.f_builtins, caller.f_code.co_flags
            if _asks_first(code):
                start_iterating(frame)
                asynchronous = code.co_flags & inspect.CO_ASYNC_GENERATOR
                return Ending(_async_generator(frame) if asynchronous else _generator(frame))
            return steps(frame) if suspends else Ending(run(frame))

        return runner

    def _function(self, frame: Frame, code: Code, made: Dict[int, Any]) -> Any:
        """Return the function of MAKE_FUNCTION; ``made`` has what was set, by its flag."""
        function = FunctionType(self.of(code), frame.names, code.co_name, made.get(1), made.get(8))
        if id(frame.code) not in self._names:
            self._names[id(frame.code)] = names_of(frame.code)
        function.__qualname__ = self._names[id(frame.code)].within(code)
        function.__kwdefaults__ = made.get(2)
        function.__doc__ = docstring(code)
        annotations = made.get(4)
        if annotations is not None:
            pairs = isinstance(annotations, tuple)  # names and values in turn, since 3.10
            function.__annotations__ = dict(zip(annotations[::2], annotations[1::2])) if pairs else annotations
        if 16 in made:
            function.__annotate__ = made[16]  # type: ignore[attr-defined, unused-ignore]
        return function


def _asks_first(code: Code) -> bool:
    """Return whether this is a generator expression that asks for its iterator before there is a generator (3.15)."""
    return version_of(code) >= (3, 15) and code.co_varnames[:1] == (".0",) and bool(code.co_flags & _GENERATORS)


def _generator(frame: Frame) -> Generator[Any, Any, Any]:
    return finish((yield from _ended(steps(frame))))


@types.coroutine
def _ended(running: Any) -> Generator[Any, Any, Union[Ending, Left]]:
    try:
        ending: Ending = yield from running
    except Left as left:
        return left
    return ending


async def _async_generator(frame: Frame) -> Any:
    running = steps(frame)
    sent = error = None
    while True:
        done, value = await _advance(running, sent, error)
        if done:
            finish(value)
            return
        try:
            sent, error = (yield value), None
        except BaseException as thrown:
            sent, error = None, thrown


def _next(running: Any, sent: Any, error: Optional[BaseException]) -> Tuple[bool, Any]:
    """Run a generator until it yields or ends."""
    try:
        return False, running.send(sent) if error is None else running.throw(error)
    except StopIteration as stop:
        return True, stop.value
    except Left as left:
        return True, left


@types.coroutine
def _advance(running: Any, sent: Any, error: Optional[BaseException]) -> Generator[Any, Any, Tuple[bool, Any]]:
    """Run an asynchronous generator until it yields or ends; yield what it awaits."""
    try:
        item = running.send(sent) if error is None else running.throw(error)
        while not isinstance(item, Item):
            thrown: Optional[BaseException] = None
            try:
                sent = yield item
            except BaseException as given:
                thrown = given
            item = running.send(sent) if thrown is None else running.throw(thrown)
        return False, item.value
    except StopIteration as stop:
        return True, stop.value
    except Left as left:
        return True, left


def _text(code: Code) -> str:
    positional, keywords = code.co_argcount, code.co_kwonlyargcount
    names = [f"p{number:04}" for number in range(positional + keywords)]
    parts = names[:positional]
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    arguments = list(names)
    if code.co_flags & inspect.CO_VARARGS:
        parts.append("*args")
        arguments.append("args")
    elif keywords:
        parts.append("*")
    parts += names[positional:]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append("**keywords")
        arguments.append("keywords")
    cells = "".join(f"c{number:04}, " for number in range(len(code.co_freevars)))
    text = _PLAIN
    if _asks_first(code):
        pass
    elif code.co_flags & inspect.CO_ASYNC_GENERATOR:
        text = _ASYNC_GENERATOR
    elif code.co_flags & inspect.CO_COROUTINE:
        text = _COROUTINE
    elif code.co_flags & inspect.CO_GENERATOR:
        text = _LAMBDA if code.co_name == "<lambda>" else _GENERATOR
    filled = text.format(
        parameters=", ".join(parts),
        closure=f"(lambda: ({cells})).__closure__" if cells else "()",
        namespace="None" if code.co_flags & inspect.CO_OPTIMIZED else "'LOCALS'()",
        arguments=", ".join(arguments),
    )
    around = f"def around():\n {''.join(f'{cell} = ' for cell in cells.split(', ')[:-1])}None\n "
    return around + filled.replace("\n", "\n ") if cells else filled


def _compiled(text: str, closes: bool) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = compile(text, "<stand-in>", "exec", dont_inherit=True)
    wanted = "f", "<lambda>"
    found = [each for each in nested_codes(module) if each.co_name in wanted]
    return found[0]
