"""Numbers and shapes that become a part of graphs: which uses give the same result for all data.

With ``capture_scalar_outputs`` a number that is read out of a tensor is a symbol while Dynamo traces, and for sympy
the symbol is finite: ``v != v`` is false, ``v - v`` and ``v * 0`` are 0, although ``v`` may be NaN. With
``capture_dynamic_output_shape_ops`` a size that is not known counts as one that is not 1: ``squeeze()`` keeps it, and
nothing is broadcast. Neither is a graph break, and no check remains in the graph. So a number may be computed with a
tensor, with one constant before, or be returned; and of a shape that depends on data each use has to be known.
"""

from __future__ import annotations

import ast
import re
from typing import Dict, FrozenSet, Iterator, List, Set, Tuple

from depyf.fixing.edits import Function, NoEdit, Project, dotted, names_of_layers, reachable
from depyf.fixing.expressions import REDUCTIONS, is_fact, number
from depyf.fixing.variables import SCOPES, has_line, sees_variables, stores_of
from depyf.report.model.run import EntryGuard

_READS = ("item", "tolist")
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_REDUCED = REDUCTIONS - {"median"}
_OF_NOTHING = _REDUCED - {"max", "min", "amax", "amin"}
"""The reductions that have a value for a tensor without elements. A maximum raises, and is -inf in a kernel of
Inductor."""

_ELEMENTWISE = frozenset(
    ("abs", "exp", "log", "sqrt", "square", "sin", "cos", "tanh", "sigmoid", "relu", "float", "double", "half", "long",
     "clone", "detach", "contiguous", "neg")
)  # fmt: skip
_OF_TENSORS = _REDUCED | _ELEMENTWISE | frozenset(
    ("view", "reshape", "clamp", "pow", "cumsum", "softmax", "matmul", "t", "transpose", "unsqueeze", "squeeze", "to",
     "flatten", "expand", "permute", "argmax", "argmin", "log_softmax")
)  # fmt: skip
_WITH_NUMBER = ("add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_")
_DYNAMIC = frozenset(("nonzero", "argwhere", "masked_select", "unique", "where", "bincount", "repeat_interleave"))
_MASKS = frozenset(
    ("isnan", "isinf", "isfinite", "bool", "gt", "lt", "ge", "le", "eq", "ne", "isclose", "isin", "logical_and",
     "logical_or", "logical_not", "logical_xor")
)  # fmt: skip
_SHAPED = frozenset(("shape", "size", "ndim", "dim", "numel", "len"))


def check_numbers(
    file: str,
    function: Function,
    found: FrozenSet[Tuple[str, int]],
    layers: FrozenSet[str],
    *,
    is_called: bool,
    may_compare: bool,
) -> List[ast.expr]:
    """Return the calls of a function that read a number out of a tensor. Raises ``NoEdit`` where that is at a line that
    the run has not reached, or where the function uses a number in a way that is not known to give the same result once
    it is a part of a graph. ``layers`` are the names of attributes that hold modules of torch.nn; ``is_called``: the
    function may be traced into another one, which sees what it returns. ``may_compare`` is of ``may_compare()``."""
    reads = [each for each in ast.walk(function) if isinstance(each, ast.Call) and is_read(each)]
    for each in reads:
        if not any((file, line) in found for line in range(each.lineno, (each.end_lineno or 0) + 1)):
            raise NoEdit(f"{file}:{each.lineno} reads a number out of a tensor, too, and the run shows no break there")
    uses = _Uses(file, function, layers, may_return=not is_called, may_compare=may_compare)
    for each in reads:
        uses.check_number(each, may_compute=True)
    return [*reads]


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
        may_compare: bool = False,
    ) -> None:
        self._file, self._function, self._layers, self._may_compare = file, function, layers, may_compare
        self._may_return = may_return
        self._parents: Dict[int, ast.AST] = {}
        for node in ast.walk(function):
            # Python 3.8 puts the index of a subscript into another node.
            parent = self._parents[id(node)] if type(node).__name__ == "Index" else node
            self._parents.update((id(child), parent) for child in ast.iter_child_nodes(node))
        reads = [each for each in ast.walk(function) if isinstance(each, ast.Call) and is_read(each)]
        self._roots = {*tensors, *map(_root, reads)}

    def check_number(self, node: ast.expr, *, may_compute: bool) -> None:
        """Raise ``NoEdit`` unless all uses of a number are known. ``may_compute``: nothing was computed of it yet."""
        parent = self._parents[id(node)]
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, _ARITHMETIC):
            other = parent.left if parent.right is node else parent.right
            value = number(other)
            if self.is_tensor(other):
                return
            # 1 / v raises for 0, and not in a graph of AOTAutograd.
            may_raise = isinstance(parent.op, ast.Div) and parent.right is node
            if value and may_compute and not may_raise:
                self.check_number(parent, may_compute=False)
                return
        elif isinstance(parent, ast.Compare) and len(parent.ops) == 1 and isinstance(parent.ops[0], _COMPARED):
            other = parent.left if parent.left is not node else parent.comparators[0]
            if self.is_tensor(other) and self._may_compare:
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
            if name in _OF_NOTHING and not call.args and not call.keywords:
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
            if sees_variables(each):
                raise NoEdit(f"{self._file}:{each.lineno} may use each variable")  # type: ignore[attr-defined]
            if isinstance(each, ast.Name) and each.id == target.id and each is not target:
                yield each

    def _is_returned(self, node: ast.expr) -> bool:
        """Return whether the function itself returns an expression, alone or in a tuple, list or dict."""
        above: ast.AST = node
        while isinstance(above, (ast.Tuple, ast.List, ast.Dict)) or above is node:
            inner, above = above, self._parents[id(above)]
            if isinstance(above, ast.Dict) and any(each is inner for each in above.keys):
                return False
        scopes = (each for each in ast.walk(self._function) if isinstance(each, SCOPES) and each is not self._function)
        return (
            self._may_return
            and isinstance(above, ast.Return)
            and not any(has_line(each, node.lineno) for each in scopes)
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


def _name(node: ast.expr) -> str:
    """Return the name of the function or method that an expression calls; empty for another expression."""
    return dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _root(node: ast.Call) -> str:
    """Return the variable that a number is read out of, directly or by reductions; empty if that is not known:
    ``float(x)`` may convert a number."""
    found: ast.AST = node.args[0] if node.args else node
    if isinstance(found, ast.Name):
        return ""
    while isinstance(found, ast.Call) and isinstance(found.func, ast.Attribute):
        if found.func.attr not in _READS and (found.func.attr not in _OF_TENSORS or found.args):
            return ""
        found = found.func.value
    return found.id if isinstance(found, ast.Name) and found.id not in ("self", "cls", "torch") else ""


def check_shapes(
    file: str, function: Function, found: FrozenSet[Tuple[str, int]], layers: FrozenSet[str], *, is_called: bool
) -> List[ast.expr]:
    """Return the expressions of a function that make a tensor whose shape depends on data. Raises ``NoEdit`` where the
    function uses such a tensor in a way that is not known to be the same for sizes of 0 and 1. ``found``: the files and
    lines where the run shows that, which the name of a mask does not show."""
    made: List[ast.expr] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            is_one = _name(node) in _DYNAMIC and (_name(node) != "where" or len(node.args) + len(node.keywords) == 1)
            made += [node] * is_one
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            made += [node] * ((file, node.lineno) in found or _is_mask(function, node.slice))
    uses = _Uses(file, function, layers, may_return=not is_called)
    for each in made:
        uses.check_shape(each)
    return made


def _is_mask(function: Function, node: ast.AST) -> bool:
    """Return whether an index is a tensor of bools by its syntax, or a variable that is assigned one."""
    # Python 3.8 puts the index of a subscript into another node.
    node = getattr(node, "value", node) if type(node).__name__ == "Index" else node
    if isinstance(node, ast.Name):
        parents = (each for each in ast.walk(function) if isinstance(each, ast.Assign))
        values = (each.value for each in parents if any(dotted(target) == node.id for target in each.targets))
        return any(not isinstance(each, ast.Name) and _is_mask(function, each) for each in values)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _MASKS
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor))
    if isinstance(node, ast.Tuple):
        return any(_is_mask(function, each) for each in node.elts)
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert))


def may_compare(project: Project) -> bool:
    """Return whether a number that is a part of a graph may be compared with a tensor. Eager mode, and a graph with a
    constant, convert the number into the dtype of the tensor; Inductor (PyTorch 2.13) converts a tensor of 16 bits into
    float32, where 0.1 is another number."""
    guards = _guards_of(project)[0]
    return not any("float16" in each.text for each in guards if each.kind == "TENSOR_MATCH") and not any(
        _HALF.search(project.source(file)) for file in project.imported()
    )


def check_floats(project: Project) -> None:
    """Raise ``NoEdit`` where a compiled function uses a number of Python that is a float in the run, an argument, an
    attribute or a global, in a way that is not known to be the same in a graph: ``dynamic=True`` makes the float a part
    of the graph. ``min(t, 1)`` is a float there, and what raises for 0 or overflows does not raise in the same way."""
    guards, tensors = _guards_of(project)
    # What only a library reads has no place in the program.
    known = (each for each in guards if each.place is not None and each.kind in _OF_FLOATS)
    floats = {each.source for each in known if _FLOAT.search(each.text)}
    names = {source: re.findall(r"\w+", source)[-1] for source in floats}
    tensors -= frozenset(names.values())
    layers, is_exact = names_of_layers(project), may_compare(project)
    for file, function, is_called in reachable(project):
        uses = _Uses(file, function, layers, may_return=not is_called, tensors=tensors, may_compare=is_exact)
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
            if _changes_type(node, function, uses):
                line = getattr(node, "lineno", 0)
                raise NoEdit(
                    f"{file}:{line} computes what may be another number or type, or raise, for a dynamic number"
                )


def _guards_of(project: Project) -> Tuple[Set[EntryGuard], FrozenSet[str]]:
    """Return all guards of the run, and the names of local variables that hold tensors by these, and no numbers."""
    guards = {each for one in project.run.compilations for each in one.guards}
    names: Dict[bool, Set[str]] = {True: set(), False: set()}
    for each in guards:
        found = _LOCAL.match(each.source)
        if found and each.kind in ("TENSOR_MATCH", *_OF_FLOATS):
            names[each.kind == "TENSOR_MATCH"].add(found[1])
    return guards, frozenset(names[True] - names[False])


def _changes_type(node: ast.AST, function: Function, uses: _Uses) -> bool:
    """Return whether an expression may give another number, or another type, where an int is dynamic."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        exponent = number(node.right)
        return not uses.is_tensor(node.left) and (exponent is None or exponent < 0 or not exponent.is_integer())
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Pow):
        return not uses.is_tensor(node.target)
    if isinstance(node, ast.Compare):
        if any(isinstance(each, (ast.Is, ast.IsNot)) for each in node.ops):  # n is 7 is false for Dynamo
            return any(number(each) is not None for each in (node.left, *node.comparators))
        # n * 0.1 * 10 is n for sympy, and another number for Python.
        literals = [_literals_in(each, function, uses) for each in (node.left, *node.comparators)]
        return any(len(each) > 1 and any(type(value) is float for value in each) for each in literals)
    if not isinstance(node, ast.Call) or dotted(node.func) not in ("max", "min", "pow"):
        return False
    # max(n, 1.5) and max(n, m) of an int and a float are floats in a graph, whatever is the larger one.
    return dotted(node.func) == "pow" or not all(_is_of_shape(each, is_int=True) for each in node.args)


def _literals_in(node: ast.expr, function: Function, uses: _Uses) -> List[float]:
    """Return the literal numbers that a number is computed with, also in the variables that it is computed of; none
    where it is a tensor."""
    found: List[float] = []
    seen: Set[str] = set()
    todo: List[ast.AST] = [node]
    while todo:
        each = todo.pop()
        if isinstance(each, ast.Call) or (isinstance(each, ast.expr) and uses.is_tensor(each)):
            continue
        if isinstance(each, ast.Name) and each.id not in seen:
            seen.add(each.id)
            for known in ast.walk(function):
                if isinstance(known, (ast.Assign, ast.AugAssign)):
                    targets = known.targets if isinstance(known, ast.Assign) else [known.target]
                    todo += [known.value] * any(dotted(target) == each.id for target in targets)
        if isinstance(each, ast.Constant) and isinstance(each.value, (int, float)):
            found.append(each.value)
        todo += [each.value] if isinstance(each, ast.Subscript) else ast.iter_child_nodes(each)
    return found


def _is_of_shape(node: ast.expr, *, is_int: bool = False) -> bool:
    """Return whether an expression is computed of shapes and literal numbers alone; ``is_int``: and is an int."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int or (type(node.value) is float and not is_int)
    if isinstance(node, ast.BinOp):
        is_known = not is_int or isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod))
        return is_known and all(_is_of_shape(each, is_int=is_int) for each in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return _is_of_shape(node.operand, is_int=is_int)
    if isinstance(node, ast.Subscript):
        return _is_of_shape(node.value, is_int=is_int)
    known = node.func if isinstance(node, ast.Call) else node
    return (getattr(known, "attr", "") or getattr(known, "id", "")) in _SHAPED


_HALF = re.compile(rb"float16|autocast|\.half\b")
_LOCAL = re.compile(r"L\['(\w+)'\]$")
_FLOAT = re.compile(r"<class 'float'>|== -?(?:\d+\.|\d+e|inf|nan)")
_OF_FLOATS = ("EQUALS_MATCH", "CONSTANT_MATCH", "TYPE_MATCH")
