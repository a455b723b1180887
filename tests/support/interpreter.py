"""A small interpreter of the normal form: a second definition of its operations.

It shares nothing with the decompiler but the operations' names. It knows those that random control flow consists of and
says so when it meets another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from depyf.decompiler.normal.ops import Handler, Instr, NormalCode, Op


@dataclass(frozen=True)
class Previous:
    """Lies on the stack while an exception is handled: the one that was handled before."""

    handled: Optional[BaseException]


class Interpreter:
    """Runs a function in normal form."""

    def __init__(self, normal: NormalCode) -> None:
        self._ops = normal.ops
        self._stack: List[Any] = []
        self._handled: Optional[BaseException] = None

    @property
    def handled(self) -> Optional[type]:
        """What ``sys.exc_info()[0]`` would be."""
        return None if self._handled is None else type(self._handled)

    def run(self, names: Dict[str, Any], variables: Dict[str, Any]) -> Any:
        """Run it with its globals and its local variables; returns or raises what it does."""
        self._stack, self._handled = [], None
        index = 0
        while True:
            instr = self._ops[index]
            try:
                if instr.op is Op.RETURN:
                    return self._stack.pop()
                index = self._step(instr, index, names, variables)
            except BaseException as error:
                if instr.handler is None:
                    raise
                self._unwind(instr.handler, error)
                index = instr.handler.target

    def _unwind(self, handler: Handler, error: BaseException) -> None:
        while len(self._stack) > handler.depth:
            item = self._stack.pop()
            if isinstance(item, Previous):
                self._handled = item.handled
        if handler.lasti:
            self._stack.append("lasti")
        self._stack.append(error)

    def _step(self, instr: Instr, index: int, names: Dict[str, Any], variables: Dict[str, Any]) -> int:
        """Run one operation; the index of the next one."""
        op, arg, stack = instr.op, instr.arg, self._stack
        if op is Op.CONST:
            stack.append(arg)
        elif op is Op.LOAD:
            stack.append((variables if arg[0] == "fast" else names)[arg[1]])
        elif op is Op.STORE and arg[0] == "fast":
            variables[arg[1]] = stack.pop()
        elif op is Op.POP:
            stack.pop()
        elif op is Op.NULL:
            stack.append(None)
        elif op is Op.CALL and not arg[1] and arg[2] in ("", "below"):
            arguments = [stack.pop() for _ in range(arg[0])][::-1]
            function = stack.pop()
            if arg[2]:
                stack.pop()
            stack.append(function(*arguments))
        elif op is Op.ITER:
            stack.append(iter(stack.pop()))
        elif op is Op.FOR and not arg:
            return self._advance(instr, index)
        elif op is Op.JUMP:
            assert instr.target is not None
            return instr.target
        elif op is Op.BRANCH and arg in ("true", "false"):
            assert instr.target is not None
            return instr.target if bool(stack.pop()) is (arg == "true") else index + 1
        elif op is Op.RAISE and arg == 1:
            raise stack.pop()
        elif op is Op.RERAISE:
            raise stack.pop()
        elif op is Op.PUSH_EXC:
            error = stack.pop()
            stack += [Previous(self._handled), error]
            self._handled = error
        elif op is Op.POP_EXC:
            self._handled = stack.pop().handled
        elif op is Op.CHECK_EXC:
            kind = stack.pop()
            stack.append(isinstance(stack[-1], kind))
        else:
            raise NotImplementedError(f"the interpreter does not know {instr!r}")
        return index + 1

    def _advance(self, instr: Instr, index: int) -> int:
        try:
            self._stack.append(next(self._stack[-1]))
        except StopIteration:
            self._stack.pop()
            assert instr.target is not None
            return instr.target
        return index + 1
