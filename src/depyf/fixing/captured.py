"""Numbers and shapes that become a part of graphs: which uses give the same result for all data.

With ``capture_scalar_outputs`` a number that is read out of a tensor is a symbol while Dynamo traces, of which sympy
knows that it is finite: ``v != v`` is false, ``v - v`` and ``v * 0`` are 0, although ``v`` may be NaN. With
``capture_dynamic_output_shape_ops`` a size that is not known counts as one that is not 1: ``squeeze()`` keeps it, and
nothing is broadcast. Neither is a graph break, and no check remains in the graph. So a number may be computed with a
tensor, with one constant before, or be returned; and of a shape that depends on data each use has to be known.
"""

from __future__ import annotations

import ast
import re
from typing import Dict, FrozenSet, Iterator, List, Set, Tuple

from depyf.fixing.edits import Function, NoEdit, Project, dotted, names_of_layers, reachable
from depyf.fixing.expressions import is_fact, number
from depyf.fixing.variables import SCOPES, has_line, stores_of
from depyf.report.model.run import EntryGuard

_READS = ("item", "tolist")
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_REDUCTIONS = frozenset(("sum", "mean", "max", "min", "amax", "amin", "norm", "prod", "std", "var", "any", "all"))
_ELEMENTWISE = frozenset(
    ("abs", "exp", "log", "sqrt", "square", "sin", "cos", "tanh", "sigmoid", "relu", "float", "double", "half", "long",
     "clone", "detach", "contiguous", "neg")
)  # fmt: skip
_OF_TENSORS = _REDUCTIONS | _ELEMENTWISE | frozenset(
    ("view", "reshape", "clamp", "pow", "cumsum", "softmax", "matmul", "t", "transpose", "unsqueeze", "squeeze", "to",
     "flatten", "expand", "permute", "argmax", "argmin", "log_softmax")
)  # fmt: skip
_WITH_NUMBER = ("add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_")
_DYNAMIC = frozenset(("nonzero", "argwhere", "masked_select", "unique", "where", "bincount", "repeat_interleave"))
_SHAPED = frozenset(("shape", "size", "ndim", "dim", "numel", "len"))


def check_numbers(
    file: str, function: Function, found: FrozenSet[Tuple[str, int]], layers: FrozenSet[str], *, is_called: bool
) -> None:
    """Raise ``NoEdit`` where a function reads a number out of a tensor at a line that the run has not reached, or uses
    a number in a way that is not known to give the same result once it is a part of a graph. ``layers`` are the names
    of attributes that hold modules of torch.nn; ``is_called``: another function may see what the function returns."""
    reads = [each for each in ast.walk(function) if isinstance(each, ast.Call) and is_read(each)]
    for each in reads:
        if not any((file, line) in found for line in range(each.lineno, (each.end_lineno or 0) + 1)):
            raise NoEdit(f"{file}:{each.lineno} reads a number out of a tensor, too, and the run shows no break there")
    uses = _Uses(file, function, layers, may_return=not is_called)
    for each in reads:
        uses.check_number(each, may_compute=True)


def is_read(node: ast.AST) -> bool:
    """Return whether an expression reads a number, or may do so: ``x.item()``, ``x.tolist()``, ``float(x)``."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _READS:
        return True
    if dotted(node.func) not in ("float", "int") or len(node.args) != 1:
        return False
    parts = list(ast.walk(node.args[0]))
    return not (_is_of_shape(node.args[0]) or any(map(is_read, parts)) or is_fact(node.args[0]))


class _Uses:
    """What a function does with numbers and tensors."""

    def __init__(
        self,
        file: str,
        function: Function,
        layers: FrozenSet[str],
        *,
        may_return: bool,
        tensors: FrozenSet[str] = frozenset(),
    ) -> None:
        self._file, self._function, self._layers = file, function, layers
        self._may_return = may_return
        self._parents: Dict[int, ast.AST] = {}
        for node in ast.walk(function):
            # Python 3.8 puts the index of a subscript into another node.
            parent = self._parents[id(node)] if type(node).__name__ == "Index" else node
            self._parents.update((id(child), parent) for child in ast.iter_child_nodes(node))
        self._roots = {*tensors, *(_root(each) for each in ast.walk(function) if is_read(each))}

    def check_number(self, node: ast.expr, *, may_compute: bool) -> None:
        """Raise ``NoEdit`` unless all uses of a number are known. ``may_compute``: nothing was computed of it yet."""
        parent = self._parents[id(node)]
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, _ARITHMETIC):
            other = parent.left if parent.right is node else parent.right
            value = number(other)
            if self.is_tensor(other):
                return
            if value is not None and may_compute and (value or isinstance(parent.op, (ast.Add, ast.Sub))):
                self.check_number(parent, may_compute=False)
                return
        elif isinstance(parent, ast.Compare) and len(parent.ops) == 1 and isinstance(parent.ops[0], _COMPARED):
            if self.is_tensor(parent.left if parent.left is not node else parent.comparators[0]):
                return
        elif isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub) and may_compute:
            self.check_number(parent, may_compute=False)
            return
        elif isinstance(parent, ast.AugAssign) and isinstance(parent.op, _ARITHMETIC) and self.is_tensor(parent.target):
            return
        elif isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.args == [node]:
            if parent.func.attr in _WITH_NUMBER and not parent.keywords and self.is_tensor(parent.func.value):
                return
        elif isinstance(parent, ast.Expr) or (may_compute and self._is_returned(node)):
            return
        elif isinstance(parent, ast.Assign):
            for each in self._loads(parent):
                self.check_number(each, may_compute=may_compute)
            return
        line = getattr(parent, "lineno", node.lineno)
        raise NoEdit(
            f"{self._file}:{line} uses a number otherwise than once with a tensor or a constant: in a graph it counts "
            "as a number that is never NaN or infinite"
        )

    def check_shape(self, node: ast.expr) -> None:
        """Raise ``NoEdit`` unless all uses of a tensor whose shape depends on data are known."""
        parent = self._parents[id(node)]
        if isinstance(parent, ast.Attribute) and isinstance(call := self._parents[id(parent)], ast.Call):
            name, literals = parent.attr, [number(each) for each in call.args]
            if name in _REDUCTIONS and not call.args and not call.keywords:
                return
            # The dimension that depends on data is the first one of nonzero().
            is_known = name == "squeeze" and _name(node) in ("nonzero", "argwhere") and literals in ([1], [-1])
            if call.func is parent and not call.keywords and (is_known or (name in _ELEMENTWISE and not literals)):
                self.check_shape(call)
                return
        elif isinstance(parent, (ast.BinOp, ast.Compare)):
            operands = [parent.left, *(parent.comparators if isinstance(parent, ast.Compare) else [parent.right])]
            if all(each is node or number(each) is not None for each in operands):
                self.check_shape(parent)
                return
        elif isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub):
            self.check_shape(parent)
            return
        elif isinstance(parent, ast.Subscript) and parent.value is not node:
            self.check_shape(parent)
            return
        elif isinstance(parent, ast.Expr) or self._is_returned(node):
            return
        elif isinstance(parent, ast.Assign):
            for each in self._loads(parent):
                self.check_shape(each)
            return
        line = getattr(parent, "lineno", node.lineno)
        raise NoEdit(
            f"{self._file}:{line} uses a tensor whose shape depends on data in a way that may be another one for the "
            "sizes 0 and 1: a graph takes the size for another one"
        )

    def _loads(self, node: ast.Assign) -> Iterator[ast.expr]:
        """Yield the uses of the variable that is assigned. Raises ``NoEdit`` where it has other values, too."""
        target = node.targets[0]
        if not isinstance(target, ast.Name) or stores_of(self._function, target.id) != [target]:
            raise NoEdit(f"{self._file}:{node.lineno} assigns a value to something that may have other values, too")
        for each in ast.walk(self._function):
            if isinstance(each, ast.Call) and dotted(each.func) in ("locals", "vars", "eval", "exec"):
                raise NoEdit(f"{self._file}:{each.lineno} may use each variable")
            if isinstance(each, ast.Name) and each.id == target.id and each is not target:
                yield each

    def _is_returned(self, node: ast.expr) -> bool:
        """Return whether the function itself returns an expression, alone or in a tuple, list or dict."""
        above: ast.AST = node
        while isinstance(above, (ast.Tuple, ast.List, ast.Dict)) or above is node:
            above = self._parents[id(above)]
        inner = (each for each in ast.walk(self._function) if isinstance(each, SCOPES) and each is not self._function)
        return (
            self._may_return
            and isinstance(above, ast.Return)
            and not any(has_line(each, node.lineno) for each in inner)
        )

    def is_tensor(self, node: ast.expr, depth: int = 8) -> bool:
        """Return whether an expression is a tensor: the function reads a number out of the variable, or computes it
        from such a variable by what returns tensors."""
        if not depth:
            return False
        if isinstance(node, ast.Name):
            stores = stores_of(self._function, node.id)
            parents = [self._parents.get(id(each)) for each in stores]
            # x += 1 leaves a tensor one.
            parents = [each for each in parents if not isinstance(each, ast.AugAssign)]
            values = [each.value for each in parents if isinstance(each, ast.Assign) and each.targets[0] in stores]
            if node.id in self._roots and len(parents) == 1:
                return bool(values) or isinstance(parents[0], ast.arguments)
            return len(values) == len(parents) > 0 and all(self.is_tensor(each, depth - 1) for each in values)
        if isinstance(node, ast.BinOp):
            return any(self.is_tensor(each, depth - 1) for each in (node.left, node.right))
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub) and self.is_tensor(node.operand, depth - 1)
        if isinstance(node, ast.Subscript):
            return self.is_tensor(node.value, depth - 1)
        if not isinstance(node, ast.Call):
            return False
        of, _, name = dotted(node.func).rpartition(".")
        if isinstance(node.func, ast.Attribute) and self.is_tensor(node.func.value, depth - 1):
            return node.func.attr in _OF_TENSORS or node.func.attr in _WITH_NUMBER
        has_tensor = any(self.is_tensor(each, depth - 1) for each in node.args)
        if of in ("torch", "F", "nn.functional", "torch.nn.functional"):
            return has_tensor and name in _OF_TENSORS | {"linear", "layer_norm", "gelu", "silu", "mm", "bmm"}
        return has_tensor and of == "self" and name in self._layers

    def _assignment(self, store: ast.AST) -> ast.Assign | None:
        parent = self._parents.get(id(store))
        return parent if isinstance(parent, ast.Assign) and parent.targets == [store] else None


def _name(node: ast.expr) -> str:
    """Return the name of the function or method that an expression calls, else of the call that a variable holds."""
    return dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _root(node: ast.AST) -> str:
    """Return the variable that a number is read out of, directly or by reductions; empty if that is not known."""
    found = node.args[0] if isinstance(node, ast.Call) and node.args else node
    while isinstance(found, ast.Call) and isinstance(found.func, ast.Attribute):
        if found.func.attr not in _READS and (found.func.attr not in _OF_TENSORS or found.args):
            return ""
        found = found.func.value
    return found.id if isinstance(found, ast.Name) and found.id not in ("self", "cls", "torch") else ""


def check_shapes(file: str, function: Function, line: int, layers: FrozenSet[str], *, is_called: bool) -> None:
    """Raise ``NoEdit`` where a function uses a tensor whose shape depends on data, which a line makes, in a way that is
    not known to be the same for sizes of 0 and 1."""
    made: List[ast.expr] = [
        each
        for each in ast.walk(function)
        if isinstance(each, (ast.Call, ast.Subscript))
        and each.lineno == line
        and (_name(each) in _DYNAMIC if isinstance(each, ast.Call) else isinstance(each.ctx, ast.Load))
    ]
    if not made:
        raise NoEdit(f"what makes a shape that depends on data at {file}:{line} is not known")
    uses = _Uses(file, function, layers, may_return=not is_called)
    for each in made:
        uses.check_shape(each)


def check_floats(project: Project) -> None:
    """Raise ``NoEdit`` where a compiled function uses a number of Python that is a float in the run, an argument, an
    attribute or a global, in a way that is not known to be the same in a graph, of which ``dynamic=True`` makes it a
    part: ``min(t, 1)`` is a float there, and what raises for 0 or overflows does not raise in the same way."""
    guards, tensors = _guards_of(project)
    # What only a library reads has no place in the program.
    known = (each for each in guards if each.place is not None and each.kind in _OF_FLOATS)
    floats = {each.source for each in known if _FLOAT.search(each.text)}
    names = {source: re.findall(r"\w+", source)[-1] for source in floats}
    tensors -= frozenset(names.values())
    layers = names_of_layers(project)
    for file, function, is_called in reachable(project):
        uses = _Uses(file, function, layers, may_return=not is_called, tensors=tensors)
        for source, name in names.items():
            if name.startswith("___") or "[" in source.partition("]")[2].replace("._modules[", ""):
                raise NoEdit(f"{source} is a float: how {file} uses it is not known")
            for node in ast.walk(function):
                is_load = isinstance(getattr(node, "ctx", None), ast.Load)
                if isinstance(node, ast.Attribute) and is_load and "." in source and node.attr == name:
                    uses.check_number(node, may_compute=True)
                elif isinstance(node, ast.Name) and "." not in source and node.id == name:
                    if not is_load:
                        raise NoEdit(f"{file}:{node.lineno} assigns to {name}, which is a float in the run")
                    uses.check_number(node, may_compute=True)


def check_dynamic(project: Project) -> None:
    """Raise ``NoEdit`` where a compiled function computes something of numbers that may be another one, or of another
    type, where a size or an int is dynamic."""
    layers, tensors = names_of_layers(project), _guards_of(project)[1]
    for file, function, is_called in reachable(project):
        uses = _Uses(file, function, layers, may_return=not is_called, tensors=tensors)
        for node in ast.walk(function):
            if _changes_type(node, uses):
                line = getattr(node, "lineno", 0)
                raise NoEdit(f"{file}:{line} computes what is a float, or raises, for a dynamic number only")


def _guards_of(project: Project) -> Tuple[Set[EntryGuard], FrozenSet[str]]:
    """Return all guards of the run, and the names of the local variables that hold tensors by these."""
    guards = {each for one in project.run.compilations for each in one.guards}
    found = (_LOCAL.match(each.source) for each in guards if each.kind == "TENSOR_MATCH")
    return guards, frozenset(each[1] for each in found if each)


def _changes_type(node: ast.AST, uses: _Uses) -> bool:
    """Return whether an expression may give another number, or another type, where an int is dynamic."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        exponent = number(node.right)
        return not uses.is_tensor(node.left) and (exponent is None or exponent < 0 or not exponent.is_integer())
    if not isinstance(node, ast.Call) or dotted(node.func) not in ("max", "min", "pow"):
        return False
    # max(n, 1.5) and max(n, m) of an int and a float are floats in a graph, whatever is the larger one.
    return dotted(node.func) == "pow" or not all(
        _is_of_shape(each) or (isinstance(each, ast.Constant) and type(each.value) is int) for each in node.args
    )


def _is_of_shape(node: ast.expr) -> bool:
    return any({getattr(each, "attr", ""), getattr(each, "id", "")} & _SHAPED for each in ast.walk(node))


_LOCAL = re.compile(r"L\['(\w+)'\]$")
_FLOAT = re.compile(r"<class 'float'>|== -?(?:\d+\.|\d+e|inf|nan)")
_OF_FLOATS = ("EQUALS_MATCH", "CONSTANT_MATCH", "TYPE_MATCH")
