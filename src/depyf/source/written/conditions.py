"""``not (a and b)`` or ``not a or not b``: which of them fits between the columns of its operands.

    if not (a and b):           if not a or not b:

Both are the same two jumps. Between the end of ``a`` and the beginning of ``b`` stand five characters on the left and
eight on the right.
"""

from __future__ import annotations

import ast
from typing import Any, Iterator, List, Optional, Tuple

from depyf.lift.build import negate
from depyf.lift.places import first_place, jump_of, place_of
from depyf.quick_dataclass import dataclass
from depyf.source.rewriting import Node, Rewriter, replaced

_CHANGE = 0.25
"""What a form costs that is not the one it was lifted to: a tie leaves everything as it is."""
_NOT = 0.2
"""What each ``not`` costs."""
_MOST = 9
"""How many characters are believed to be missing, or too many."""
_DOUBT = 0.6
"""What a form costs that does not fit."""
_UNFIT = 0.7
"""What it costs not to stand below the operand before: there are other layouts."""
_LONGEST = 12
"""How many operands are tried in groups."""


def with_written_conditions(tree: Node) -> Node:
    """``tree`` with each condition in the form that its columns fit best."""
    written: Node = _Conditions().visit(tree)
    return written


def with_written_negations(tree: Node) -> Node:
    """``tree`` with each condition that is ``not (a and b)`` in the form that its columns fit best.

    What stands before the first operand says where the statement begins.
    """
    written: Node = _Negations().visit(tree)
    return written


class _Conditions(Rewriter):
    """Only where the truth of an expression counts and nothing else of it."""

    def visit_If(self, node: ast.If) -> object:
        return self._tested(node)

    def visit_While(self, node: ast.While) -> object:
        return self._tested(node)

    def visit_IfExp(self, node: ast.IfExp) -> object:
        return self._tested(node)

    def visit_Assert(self, node: ast.Assert) -> object:
        return self._tested(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node = self.rewrite_children(node)
        ifs = [_best(test) for test in node.ifs]
        return node if all(one is two for one, two in zip(ifs, node.ifs)) else replaced(node, ifs=ifs)

    def _tested(self, node: Any) -> object:
        node = self.rewrite_children(node)
        test = self.best(node.test)
        if test is node.test:
            return node
        changed = replaced(node, test=test)
        changed.__dict__.pop("start", None)  # it was known by the test
        return changed

    def best(self, test: ast.expr) -> ast.expr:
        """``test`` in the form that fits best."""
        return _best(test)


class _Negations(_Conditions):
    def best(self, test: ast.expr) -> ast.expr:
        negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        return _best(test) if negated and type(test.operand) is ast.BoolOp else test  # type: ignore[attr-defined]

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        return self.rewrite_children(node)


@dataclass
class _Form:
    """One way to write a condition. ``opens`` and ``closes``: how many characters stand before its first operand and
    behind its last one; ``first`` and ``last`` are these."""

    expr: ast.expr
    cost: float
    opens: int
    closes: int
    first: ast.expr
    last: ast.expr

    @property
    def operator(self) -> Optional[type]:
        return type(self.expr.op) if type(self.expr) is ast.BoolOp else None


def _best(test: ast.expr) -> ast.expr:
    if not _may_change(test):
        return test
    forms = _forms(test, negated=False)
    best = min(forms, key=lambda form: form.cost + _misplaced(form))
    return test if ast.dump(best.expr) == ast.dump(test) else best.expr


def _may_change(test: ast.expr) -> bool:
    """Whether ``test`` has operands with columns, and a ``not``, or something that negates one."""
    if type(test) not in (ast.BoolOp, ast.UnaryOp):
        return False
    found = list(_operands(test))
    if len(found) < 2:
        return False
    return any(negated for _, negated in found) and all(_columns(operand) is not None for operand, _ in found)


def _operands(test: ast.expr) -> Iterator[Tuple[ast.expr, bool]]:
    """The operands of a condition, and whether each may be one that is negated."""
    if type(test) is ast.BoolOp:
        for value in test.values:
            yield from _operands(value)
    elif type(test) is ast.UnaryOp and isinstance(test.op, ast.Not):
        for operand, _ in _operands(test.operand):
            yield operand, True
    else:
        yield test, isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.IsNot, ast.NotIn, ast.Is, ast.In))


def _columns(operand: ast.expr) -> Optional[Tuple[int, int, int, int]]:
    first, place = first_place(operand), place_of(operand)
    if first is None or place is None or first.column is None or place.end_column is None:
        return None
    return first.line, first.column, place.end_line, place.end_column


# --- forms -----------------------------------------------------------------------------------------------------------


def _forms(test: ast.expr, *, negated: bool) -> List[_Form]:
    """The forms of ``test``, or of its opposite: the best one for each operator that it may have on the outside."""
    if type(test) is ast.UnaryOp and isinstance(test.op, ast.Not):
        return _forms(test.operand, negated=not negated)
    if type(test) is not ast.BoolOp:
        expr = negate(test) if negated else test
        nots = negated and isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not)
        plain = _Form(expr, _NOT * nots, 4 * nots, 0, test, test)
        return [plain, *_before_comparison(expr, test)]
    other = _opposite(test.op)
    inside = _joined(test.op, test.values, negated=False)
    outside = _joined(other, test.values, negated=True)
    plain, opposite = (outside, inside) if negated else (inside, outside)
    plain.cost += _CHANGE * negated
    opposite.cost += _CHANGE * (not negated)
    return [plain, _wrapped(opposite)]


def _before_comparison(expr: ast.expr, test: ast.expr) -> List[_Form]:
    """``not a in b`` beside ``a not in b``."""
    opposite = {ast.NotIn: ast.In, ast.IsNot: ast.Is}
    if not isinstance(expr, ast.Compare) or len(expr.ops) != 1 or type(expr.ops[0]) not in opposite:
        return []
    turned = ast.UnaryOp(ast.Not(), replaced(expr, ops=[opposite[type(expr.ops[0])]()]))
    return [_Form(turned, _CHANGE + _NOT, 4, 0, test, test)]


def _opposite(operator: ast.boolop) -> ast.boolop:
    return ast.Or() if isinstance(operator, ast.And) else ast.And()


def _wrapped(form: _Form) -> _Form:
    """``not (...)``."""
    expr = ast.UnaryOp(ast.Not(), form.expr)
    return _Form(expr, form.cost + _NOT, form.opens + 5, form.closes + 1, form.first, form.last)


def _joined(operator: ast.boolop, values: List[ast.expr], *, negated: bool) -> _Form:
    """The best ``a and b and c``: each operand in one of its forms; several may be ``not (a or b)`` together."""
    alone = [_forms(value, negated=negated) for value in values]
    best = _chained(operator, [[(1, form) for form in forms] for forms in alone])
    if best.cost <= _DOUBT or not 2 < len(values) <= _LONGEST:
        return best
    steps: List[List[Tuple[int, _Form]]] = [[(1, form) for form in forms] for forms in alone]
    for start in range(len(values)):
        opposites = [_forms(value, negated=not negated) for value in values[start:]]
        for end in range(start + 2, len(values) + (start > 0)):
            several = [[(1, form) for form in forms] for forms in opposites[: end - start]]
            group = _wrapped(_chained(_opposite(operator), several))
            group.cost += _CHANGE
            steps[start].append((end - start, group))
    return min(best, _chained(operator, steps), key=lambda form: form.cost)


def _chained(operator: ast.boolop, steps: List[List[Tuple[int, _Form]]]) -> _Form:
    """The best chain of forms: from each position, ``steps`` has forms and how many operands they take."""
    ways: List[List[Tuple[float, List[_Form]]]] = [[] for _ in range(len(steps) + 1)]
    ways[0] = [(0.0, [])]
    for position, forms in enumerate(steps):
        for count, form in forms:
            reached = [
                (cost + form.cost + (_misfit(operator, chain, form) if chain else 0.0), [*chain, form])
                for cost, chain in ways[position]
            ]
            if reached:
                ways[position + count].append(min(reached, key=lambda way: way[0]))
    cost, chain = min(ways[-1], key=lambda way: way[0])
    values: List[ast.expr] = []
    for form in chain:
        same = form.operator is type(operator)
        values.extend(form.expr.values if same else [form.expr])  # type: ignore[attr-defined]
    opens, closes = _parentheses(operator, chain[0]), _parentheses(operator, chain[-1])
    expr = ast.BoolOp(operator, values)
    return _Form(expr, cost, chain[0].opens + opens, chain[-1].closes + closes, chain[0].first, chain[-1].last)


# --- how well a form fits --------------------------------------------------------------------------------------------


def _misplaced(form: _Form) -> float:
    """How far the first operand of a condition is from where it would be, if the place of its statement is known."""
    jump, first = jump_of(form.first), _columns(form.first)
    if jump is None or jump.column is None or first is None or first[0] != jump.line or first[1] <= jump.column:
        return 0.0
    found = first[1] - jump.column - form.opens
    return _evidence(min(abs(found - len(keyword) - 1) for keyword in ("if", "elif", "while", "assert")))


def _evidence(characters: float) -> float:
    """What so many characters too many or too few say. More of them mean that something else stands there."""
    return characters if characters <= _MOST else 0.0


def _parentheses(operator: ast.boolop, form: _Form) -> int:
    """How many parentheses ``form`` needs on each side as an operand of ``operator``."""
    return 1 if isinstance(operator, ast.And) and form.operator is ast.Or else 0


def _may_have(operator: ast.boolop, form: _Form) -> Tuple[int, ...]:
    """How many parentheses ``form`` may have: people write them around ``and`` in ``or``, too."""
    if isinstance(operator, ast.Or) and form.operator is ast.And:
        return (0, 1)
    return (_parentheses(operator, form),)


def _misfit(operator: ast.boolop, chain: List[_Form], right: _Form) -> float:
    """How many characters are missing between the last operand in ``chain`` and the first of ``right``, or too many."""
    left = chain[-1]
    before, behind, above = _columns(left.last), _columns(right.first), _columns(left.first)
    if before is None or behind is None or above is None:
        return 0.0
    word = len("and ") if isinstance(operator, ast.And) else len("or ")
    if before[2] == behind[0]:
        parentheses = [(closes, opens) for closes in _may_have(operator, left) for opens in _may_have(operator, right)]
        if isinstance(left.expr, ast.Compare) and isinstance(right.expr, ast.Compare):
            parentheses.append((1, 1))
        found = [
            behind[1] - end - (left.closes + closes + 1 + word + opens + right.opens)
            for end in _ends(left.last, before[3])
            for closes, opens in parentheses
        ]
        return _evidence(min(map(abs, found)))
    # the operator begins a line, below the operator before, or below the first operand
    if len(chain) > 1:
        earlier = _columns(chain[-2].last)
        if earlier is None or earlier[2] == above[0]:
            return 0.0
        shifts = [-left.opens - opens for opens in _may_have(operator, left)]
    else:
        shifts = [word, word - left.opens]
    fits = any(
        behind[1] - above[1] == opens + right.opens + shift for opens in _may_have(operator, right) for shift in shifts
    )
    return 0.0 if fits else _UNFIT


def _ends(operand: ast.expr, end: int) -> List[int]:
    """Where an operand ends. The jumps that test for None have no place for ``is None``."""
    if isinstance(operand, ast.Compare) and place_of(operand) == place_of(operand.left):
        return [end + len(" is None"), end + len(" is not None")]
    return [end]
