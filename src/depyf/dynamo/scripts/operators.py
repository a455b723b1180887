"""Write the definition of a user's operator for a script, from PyTorch's data about it. The functions are written with
their source, without the decorators that registered them; the registration is generated, so that it does not matter how
the program spelled it.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import symtable
import textwrap
from types import FunctionType
from typing import Any, Dict, Iterator, List, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.decompiler.syntax import parse
from depyf.dynamo.hooks import known_code, private_names, torch_names
from depyf.dynamo.hooks.loaded_modules import loaded_namespace, source_text
from depyf.dynamo.hooks.nested_code import closure_of

_KNOWN = frozenset(dir(builtins)) | {"__name__", "__file__", "__class__"}


class NoSourceError(Exception):
    """A script needs something without standalone source; the message names it."""


def source(value: Any) -> Optional[str]:
    """Return the source of a function or class as in its file, ``None`` if it is not available."""
    text = source_text(value)
    return None if text is None else textwrap.dedent(text).rstrip()


def needed_by(value: object, text: str) -> Iterator[Tuple[str, object]]:
    """Yield what the source ``text`` of a function or class refers to: globals, and names of functions around it."""
    inner = inspect.unwrap(value) if isinstance(value, FunctionType) else value
    namespace: Dict[str, Any] = dict(loaded_namespace(getattr(inner, "__module__", None)) or vars(builtins))
    if isinstance(inner, FunctionType):
        namespace = {**inner.__globals__, **dict(closure_of(inner))}
    for name in sorted(set(_free_names(symtable.symtable(text, "<source>", "exec"), top=True))):
        if name in namespace and name not in _KNOWN and namespace[name] is not value:
            yield name, namespace[name]


def _free_names(table: symtable.SymbolTable, *, top: bool) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or (top and not symbol.is_assigned())):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _free_names(child, top=False)


def plain_source(function: Any, name: str) -> str:
    """Return the source of a function without its decorators, or of the only lambda in its line, as an assignment to
    ``name``. Raises ``NoSourceError``."""
    text = source(function)
    if text is None:
        raise NoSourceError(f"the source of {getattr(function, '__qualname__', name)} was not found")
    try:
        tree = parse(text)
    except SyntaxError:
        raise NoSourceError(f"the source of {function.__qualname__} is part of a longer statement") from None
    first = tree.body[0]
    if isinstance(first, ast.FunctionDef):
        return "\n".join(text.splitlines()[first.lineno - 1 :])
    lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    segment = ast.get_source_segment(text, lambdas[0]) if len(lambdas) == 1 else None
    if segment is None:
        raise NoSourceError(f"the source of {function.__qualname__} is not a function")
    return f"{name} = {segment}"


def definition(defined: object) -> Iterator[Tuple[object, str]]:
    """Yield the statements that define an operator made by ``torch.library.custom_op``, with the function that each is
    of. Raises ``NoSourceError``."""
    variable = variable_of(defined)
    function = private_names.INIT_FN.of(defined)
    kernels = {device: _kernel(each) for device, each in private_names.BACKEND_FNS.of(defined).items()}
    devices = [device for device, each in kernels.items() if each is function]
    name = _name(function, variable)
    yield function, plain_source(function, name)
    given = "" if None in devices or not devices else f", device_types={devices!r}"
    given += f", mutates_args={_mutated(defined)!r}, schema={private_names.SCHEMA.of(defined)!r}"
    yield (
        None,
        f"{variable} = torch.library.custom_op({private_names.QUALNAME_OF_OPERATOR.of(defined)!r}, {name}{given})",
    )
    for device, each in kernels.items():
        if each is not function:
            yield from _registered(each, f"{variable}.register_kernel({device!r}, {{}})")
    if private_names.ABSTRACT_FN.of(defined) is not None:
        yield from _registered(private_names.ABSTRACT_FN.of(defined), f"{variable}.register_fake({{}})")
    if private_names.BACKWARD_FN.of(defined) is not None:
        setup = private_names.SETUP_CONTEXT_FN.of(defined)
        named = "" if setup is None else f", setup_context={_name(setup, 'setup')}"
        if setup is not None:
            yield setup, plain_source(setup, "setup")
        yield from _registered(private_names.BACKWARD_FN.of(defined), f"{variable}.register_autograd({{}}{named})")
    if private_names.VMAP_FN.of(defined) is not None:
        yield from _registered(private_names.VMAP_FN.of(defined), f"{variable}.register_vmap({{}})")
    before = {"cpu": private_names.AUTOCAST_CPU_DTYPE, "cuda": private_names.AUTOCAST_CUDA_DTYPE}  # before PyTorch 2.13
    older = {device: dtype.of(defined) for device, dtype in before.items()}
    for device, dtype in private_names.AUTOCAST_DTYPE.of(defined, older).items():
        if dtype is not None:
            yield None, f"{variable}.register_autocast({device!r}, {dtype})"


def variable_of(defined: object) -> str:
    """Return the variable of an operator in the script that defines it."""
    return f"{private_names.NAMESPACE_OF_OPERATOR.of(defined)}_{private_names.NAME_OF_OPERATOR.of(defined)}".replace(
        ".", "_"
    )


def _registered(function: object, statement: str) -> Iterator[Tuple[object, str]]:
    name = _name(function, "function")
    yield function, plain_source(function, name)
    yield None, statement.format(name)


def _name(function: object, otherwise: str) -> str:
    name = str(getattr(function, "__name__", otherwise))
    return name if name.isidentifier() else f"{otherwise}_function"


def _kernel(function: Any) -> object:
    """Return the user's function inside torch's wrapper of a kernel."""
    inner = inspect.unwrap(function)
    return dict(closure_of(inner)).get("fn", function) if known_code.is_of_torch(inner.__code__) else function


def _mutated(defined: object) -> Tuple[str, ...]:
    arguments = private_names.SCHEMA.of(private_names.OVERLOAD_OF_OPERATOR.of(defined)).arguments
    return tuple(each.name for each in arguments if each.alias_info is not None and each.alias_info.is_write)


def runs_on_import(location: str) -> bool:
    """Return whether importing the module of this location (``file:line``) runs the line: it is in no function."""
    path, _, line = location.rpartition(":")
    try:
        with open(path, encoding="utf-8") as file:
            tree = parse(file.read())
    except synchronous(OSError, SyntaxError, ValueError):
        return False
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    ranges = [(each.lineno, each.end_lineno or 0) for each in ast.walk(tree) if isinstance(each, functions)]
    return not any(first <= int(line) <= last for first, last in ranges)


def registered_at(name: str) -> List[str]:
    """Return the locations (``file:line``) in Python that registered an operator, or something for it."""
    dump = private_names.DISPATCH_DUMP.find()
    root = os.path.dirname(str(torch_names.module("torch").__file__))
    found = []
    for line in (dump(name) if dump is not None else "").splitlines():
        _, _, location = line.partition("registered at ")
        path = location.partition(" ::")[0].strip()
        if path.rpartition(":")[0].endswith(".py") and not path.startswith(root) and path not in found:
            found.append(path)
    return found
