"""What an error of a compilation is due to: an operation of the program that fails when it is traced,
the backend, or Inductor; and what to do about it.

A module of its own: each kind of advice is one.
"""

from __future__ import annotations

import re
from typing import Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.messages import cut, listed
from depyf.base.quick_dataclass import dataclass
from depyf.diagnosis.users_statements import ReadText, handler_around, no_text
from depyf.torch_trace.tracebacks import Frame

_FAKE_CALL = regex(
    r"(?:Dynamo failed to run FX node with fake tensors:|Failed running) call_(?:function|method|module) "
    r"(?P<operation><[^>]{0,500}(?:<locals>[^>]{0,500})?>|[^\s(]{1,500})"
    r"\(\*\((?P<arguments>.{0,20000}?)\), \*\*\{.{0,20000}?\}\)(?:: got |:\n)"
    r"(?P<error>.+?)"
    r"(?=^ *Hint:|^ *Developer debug context:|^from user code:|^\s*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""Dynamo calls each operation with fake tensors, which have sizes and types and no data. The lengths are limited, as
the text may be of anybody's log."""
_SIZE = regex(r"\bsize=(\([^()]*\))")
NAME_IN_REPR = regex(r"<(?:[a-z-]+ )+?(?!0x)([\w.<>]+?)(?: at 0x| of |>(?![.\w]))")
"""The name of a function or method in its representation."""
_REPR = regex(r"\A(\w+)\((['\"])(.*)\2,?\)\Z", re.DOTALL)
_BACKEND = regex(r"backend='([^']+)' raised:")
_INDUCTOR = regex(r"\bInductorError\b|\bLoweringException\b|backend='(?:inductor|compile_fx)' raised:")
_FOR_OPERATION = (
    "This call of `{name}` failed for tensors without data, and may fail without torch.compile, too: correct what it "
    "is called with. If it works without, the operator's fake implementation is wrong (torch.library.register_fake)."
)
_FOR_INDUCTOR = (
    'Inductor raised it: backend="aot_eager" compiles the same graphs without it. If no lowering or pass of '
    "the program's own is to blame, report it to PyTorch (depyf bug-report makes an archive for that)."
)
_FOR_BACKEND = 'The backend `{name}` raised it: backend="eager" compiles the same graphs without it.'
_OF_PYTHON = regex(
    r"\A(?:ArithmeticError|AssertionError|AttributeError|IndexError|KeyError|NameError|OverflowError|TypeError|"
    r"UnboundLocalError|ValueError|ZeroDivisionError): "
)
_KIND = regex(r"\A(\w+Error): ")
_FOR_EXCEPTION = (
    "It was raised while Dynamo traced this line, with tensors without data. The program may raise it without "
    "torch.compile, too: call the function without torch.compile to see."
)
_FOR_HANDLED = (
    "Without torch.compile the program handles it ({place} handles {name}), but Dynamo passes the error of an "
    "operation on, and runs no handler. Test first whether the operation can work (an if on the shapes), or put the "
    "try into a function with torch.compiler.disable."
)
_MOST_SIZES, _LONGEST = 6, 300


@dataclass(frozen=True)
class FailedOperation:
    """An operation of the program that raised an error while Dynamo traced it: its name, the sizes of its tensors as
    texts, and its error."""

    name: str
    sizes: Tuple[str, ...]
    error: str

    @property
    def on_sizes(self) -> str:
        """The sizes in a phrase; empty without tensors."""
        what = "Tensors of sizes" if len(self.sizes) > 1 else "A tensor of size"
        return f"{what} {listed(self.sizes, _MOST_SIZES)}" if self.sizes else ""


def failed_operation(reason: str) -> Optional[FailedOperation]:
    """Return the operation that Dynamo could not run with fake tensors; None if the error is another one."""
    found = _FAKE_CALL.search(reason)
    if found is None:
        return None
    name = NAME_IN_REPR.match(found["operation"])
    error, shown = found["error"].strip(), _REPR.match(found["error"].strip())
    if shown is not None:
        error = f"{shown.group(1)}: {shown.group(3)}"
    return FailedOperation(
        name=found["operation"] if name is None else name.group(1),
        sizes=tuple(_SIZE.findall(found["arguments"])),
        error=cut(" ".join(error.split()), _LONGEST).rstrip("."),
    )


def advice_for_error(reason: str, stack: Sequence[Frame] = (), read: ReadText = no_text) -> str:
    """Return what to do about an error of a compilation; empty if nothing is known of its kind. ``stack`` is the
    user's, and ``read`` returns the text of a source file."""
    operation = failed_operation(reason)
    if operation is not None or is_of_python(reason):
        kind = _KIND.match(reason if operation is None else operation.error)
        handler = handler_around(stack, "RuntimeError" if kind is None else kind.group(1), read)
        if handler is not None:
            return _FOR_HANDLED.format(place=handler.place, name=handler.handles)
    if operation is not None:
        return _FOR_OPERATION.format(name=operation.name)
    if _INDUCTOR.search(reason):
        return _FOR_INDUCTOR
    backend = _BACKEND.search(reason)
    if backend is not None:
        return _FOR_BACKEND.format(name=backend.group(1))
    return _FOR_EXCEPTION if is_of_python(reason) else ""


def is_of_python(reason: str) -> bool:
    """Return whether the error is an exception of Python, which the program may raise without torch.compile, too."""
    return _OF_PYTHON.match(reason) is not None
