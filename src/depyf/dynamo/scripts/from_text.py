"""A script made of the text of a graph alone: a file of a dump, or the text in a compiler cache.

The types in the text give the inputs: ``x: "f32[4, 8][8, 1]cpu"`` is shape, strides and device. Symbolic sizes have no
values in the text, so the script makes some up. The value of a size such as ``s0*8`` or ``((s0 + 1)//2)`` is computed
from its syntax tree: text from a file is never run here.
"""

from __future__ import annotations

import ast
import operator
import os
import re
from typing import Callable, Dict, List, Mapping, Optional, Tuple, Type

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.decompiler.syntax import parse
from depyf.dynamo.hooks import private_names
from depyf.dynamo.scripts.graph import GraphCode
from depyf.dynamo.scripts.imports import Imports
from depyf.dynamo.scripts.tensors import contiguous_strides
from depyf.dynamo.scripts.whole import HowItRuns, Script, ScriptInputs, script_text

_TYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "c128": "complex128",
    "c64": "complex64",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u8": "uint8",
    "b8": "bool",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
}

_TENSOR = regex(r"^(\w+)\[([^\]]*)\](?:\[([^\]]*)\])?([a-z]+(?::\d+)?)?$")
_SYMBOL = regex(r"\b[suz]\d+\b")
_BOXED = regex(r'^([ ]*)(\w+)(?:: "([^"]*)")? = next\(\w+\)(?:;.*)?\n', re.MULTILINE)
_FLATTENED = regex(r"^[ ]*(.+?),? = fx_pytree\.tree_flatten_spec\(.*\)\n", re.MULTILINE)
_UNFLATTENED = regex(r"return pytree\.tree_unflatten\((\[.*\]), self\._out_spec\)", re.DOTALL)
_DELETED = regex(r";  (?:\w+ = )+None$", re.MULTILINE)
_OPERATOR = regex(r"\btorch\.ops\.(\w+)\.(\w+)")

Inputs = List[Tuple[str, str]]


def script_from_text(text: str, path: str, *, title: str, backend: str) -> Script:
    """Write the graph whose readable text this is as a script at ``path``.

    Raises ``LookupError`` when the text is none that can be made to run.
    """
    text = _without_escapes(text)
    try:
        tree = parse(text)
    except SyntaxError as error:
        raise LookupError(f"the text of this graph is no Python: {error}") from error
    graph = next((node for node in tree.body if isinstance(node, ast.ClassDef)), None)
    if graph is None:
        raise LookupError("there is no graph in this text")
    code = GraphCode(imports=Imports())
    inputs = _write(graph, text, code, "Graph", whole=True)
    found = _SYMBOL.findall(" ".join(kind for _, kind in inputs))  # the program may have a variable or a path s0
    symbols = {name: 5 + 2 * number for number, name in enumerate(sorted(set(found)))}
    if symbols:
        sizes = ", ".join(f"{name} = {value}" for name, value in symbols.items())
        code.notes.append(f"sizes that vary are made up, because the text does not contain them: {sizes}")
    for namespace, name in dict.fromkeys(_OPERATOR.findall(text)):
        code.imports.for_library(f"{namespace}::{name}")
    for name, line in (("device", "device"), ("inf", "inf"), ("nan", "nan")):
        if re.search(rf"(?<![\w.]){name}\b", code.text):
            code.imports.add(line, None)
    for module in ("math", "operator"):
        if re.search(rf"(?<![\w.]){module}\.", code.text):
            code.imports.add(module, __import__(module))
    expressions = [_expression(name, kind, symbols, code) for name, kind in inputs]
    written = script_text(
        code,
        ScriptInputs([name for name, _ in inputs], expressions),
        title=f"{title}, from its text",
        data=None,
        saved={},
        how=HowItRuns(backend, {"dynamic": True} if symbols else {}),
    )
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(written)
    return Script(path, None, tuple(dict.fromkeys([*code.notes, *code.imports.notes])))


def _without_escapes(text: str) -> str:
    """Return the text without colours, and with a name for classes that are called ``<lambda>``."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return re.sub(r"^(\s*)class <\w+>", r"\1class GraphModule", text, flags=re.MULTILINE).strip("\n") + "\n"


def _write(graph: ast.ClassDef, text: str, code: GraphCode, name: str, *, whole: bool = False) -> Inputs:
    """Write the class of the ``whole`` graph, or a function for an inner graph, after the graphs inside; return its
    inputs."""
    members: Dict[str, str] = {}
    forward: Optional[ast.FunctionDef] = None
    for node in graph.body:
        if isinstance(node, ast.ClassDef):
            _write(node, text, code, f"graph_{node.name}")
            members[node.name] = f"graph_{node.name}"
        elif isinstance(node, ast.FunctionDef) and node.name == "forward":
            forward = node
    if forward is None:
        raise LookupError("there is no forward in this text")
    inputs, source = _forward(forward, text)
    for target, expression in _constants(forward, code, members):
        members[target] = expression
    lines = source.splitlines()
    if whole:
        head = ["class Graph(torch.nn.Module):"]
        if members:
            head += ["    def __init__(self):", "        super().__init__()"]
            head += [*(f"        self.{member} = {value}" for member, value in members.items()), ""]
        code.text += "\n".join([*head, *(f"    {line}".rstrip() for line in lines)]) + "\n\n\n"
    else:
        lines[0] = re.sub(r"^def forward\(self(?:, )?", f"def {name}(", lines[0])
        code.text += "\n".join(lines) + "\n\n\n"
    return inputs


def _forward(forward: ast.FunctionDef, text: str) -> Tuple[Inputs, str]:
    """Return the inputs of ``forward`` with their types, and its text, which takes them one by one."""
    # Three forms of the head of ``forward``:
    #   def forward(self, x: "f32[4]"):                        Dynamo's, and ATen graphs: taken as it is
    #   def forward(self, primals, tangents):                  the joint graph: two lists, flattened in the first lines
    #   def forward(self, args):  x = next(args_iter); ...     boxed: one list, emptied as it is read
    last = max(getattr(node, "end_lineno", 0) or 0 for node in ast.walk(forward))
    lines = text.splitlines()[forward.lineno - 1 : last]
    indent = len(lines[0]) - len(lines[0].lstrip())
    source = "\n".join(line[indent:].rstrip() for line in lines) + "\n"
    source = _DELETED.sub("", source)
    arguments = [argument for argument in forward.args.args if argument.arg != "self"]
    inputs = [(each.arg, _text_of(each.annotation)) for each in arguments]
    source = _UNFLATTENED.sub(r"return \1", source)
    boxed = _BOXED.findall(source)
    flattened = _FLATTENED.search(source)
    if flattened is not None:  # AOTAutograd's joint graph takes two lists
        names = [name.strip() for name in flattened.group(1).split(",") if name.strip()]
        types = {
            each.target.id: _text_of(each.annotation)
            for each in ast.walk(forward)
            if isinstance(each, ast.AnnAssign) and each.value is None and isinstance(each.target, ast.Name)
        }
        inputs = [(name, types.get(name, "")) for name in names]
        return inputs, f"def forward(self, {_typed(inputs)}):\n{source[flattened.end() :]}"
    if not boxed:
        return inputs, source
    inputs = [(name, kind) for _, name, kind in boxed]
    source = _BOXED.sub("", source)
    source = re.sub(r"^[ ]*\w+ = iter\(\w+\)\n|^[ ]*\w+\.clear\(\)\n", "", source, flags=re.MULTILINE)
    _, _, body = source.partition("\n")
    return inputs, f"def forward(self, {_typed(inputs)}):\n{body}"


def _typed(inputs: Inputs) -> str:
    return ", ".join(f'{name}: "{kind}"' if kind else name for name, kind in inputs)


def _text_of(annotation: object) -> str:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value
    return ""


def _constants(forward: ast.FunctionDef, code: GraphCode, members: Dict[str, str]) -> Inputs:
    """Return the tensors that the graph holds. Their types are at their uses."""
    found: Inputs = []
    for node in ast.walk(forward):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            if node.attr not in (
                *members,
                private_names.IN_SPEC.name,
                private_names.OUT_SPEC.name,
            ) and node.attr not in [name for name, _ in found]:
                kind = next(
                    (
                        _text_of(each.annotation)
                        for each in ast.walk(forward)
                        if isinstance(each, ast.AnnAssign) and each.value is node
                    ),
                    "",
                )
                code.notes.append(f"what the graph holds as {node.attr} is not in its text; the values are made up")
                found.append((node.attr, _expression(node.attr, kind, {}, code)))
    return found


def _expression(name: str, kind: str, symbols: Dict[str, int], code: GraphCode) -> str:
    if kind.startswith("Sym("):
        return str(_size(kind[4:-1], symbols))
    match = _TENSOR.match(kind)
    if match is None or match.group(1) not in _TYPES:
        code.notes.append(f"the text does not contain what the input {name} is{f' ({kind})' if kind else ''}")
        return "None"
    dtype, shape, strides, device = match.groups()
    sizes = [_size(each, symbols) for each in shape.split(",") if each.strip()]
    steps = list(contiguous_strides(sizes))
    if strides is not None:
        steps = [_size(each, symbols) for each in strides.split(",") if each.strip()]
    text = f"{_tuple(sizes)}, {_tuple(steps)}, torch.{_TYPES[dtype]}"
    return f"tensor({text})" if device in (None, "cpu") else f"tensor({text}, {device!r})"


def _tuple(values: List[int]) -> str:
    return f"({', '.join(map(str, values))}{',' * (len(values) == 1)})"


def _size(text: str, symbols: Dict[str, int]) -> int:
    """Return the value of a size like ``s0*8``."""
    # Sizes are divided with ``//``, also where a torch printed ``/``; an existing ``//`` has become four slashes.
    text = text.strip().replace("/", "//").replace("////", "//")
    try:
        return size_of(text, symbols)
    except synchronous(ValueError):
        return 4


LARGEST = 1 << 40
"""No size is larger, and no intermediate result of one."""

_LONGEST = 1000

_OPERATORS: Dict[Type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: pow,
}
_FUNCTIONS: Dict[str, Callable[..., int]] = {
    "Max": max,
    "Min": min,
    "FloorDiv": operator.floordiv,
    "CeilDiv": lambda one, other: -(-one // other),
    "Mod": operator.mod,
    "PythonMod": operator.mod,
}


def size_of(text: str, symbols: Mapping[str, int]) -> int:
    """Return the value of the expression ``text``, with ``symbols`` for its names. Raises ``ValueError`` if it is not
    such an expression, or if a result in it is beyond all sizes."""
    if len(text) > _LONGEST:
        raise ValueError(f"{len(text)} characters are not a size")
    try:
        return _value(parse(text.strip(), mode="eval").body, symbols)
    except (SyntaxError, ArithmeticError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text!r} is not a size: {error}") from error


def _value(node: ast.expr, symbols: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        number = node.value
    elif isinstance(node, ast.Name):
        number = symbols[node.id]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = -_value(node.operand, symbols)
    elif isinstance(node, ast.BinOp):
        one, other = _value(node.left, symbols), _value(node.right, symbols)
        if isinstance(node.op, ast.Pow) and not 0 <= other <= 40:
            raise ValueError(f"a power of {other}")
        number = _OPERATORS[type(node.op)](one, other)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        number = _FUNCTIONS[node.func.id](*(_value(argument, symbols) for argument in node.args))
    else:
        raise ValueError(f"{type(node).__name__} can't be in a size")
    if not -LARGEST <= number <= LARGEST:
        raise ValueError("a number beyond all sizes")
    return number
