"""``not (a and b)`` or ``not a or not b``, by the columns of the operands.

    if not (a and b):           if not a or not b:

Both are the same two jumps. There are five characters between ``a`` and ``b`` on the left and eight on the right.
"""

from __future__ import annotations

import ast
from typing import Any, Dict, Iterator, List, Optional, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.syntax_trees import equal
from depyf.decompiler.lift.build import is_not, negate
from depyf.decompiler.lift.node_attributes import attributes_of
from depyf.decompiler.lift.spans import first_operand, first_span, jump_of, span_of
from depyf.decompiler.source.inventory import Contents, bits_of
from depyf.decompiler.source.rewriting import Node, Rewriter, replaced

_BRANCHING, _NEGATING = bits_of(ast.BoolOp), bits_of(ast.UnaryOp)
_CHANGE = 0.25
"""The cost of a form other than the lifted one: in a tie nothing changes."""
_NOT = 0.2
"""The cost of each ``not``."""
_MOST = 9
"""The largest number of missing or surplus characters that is taken as evidence."""
_DOUBT = 0.6
"""The cost of a form that does not fit."""
_UNFIT = 0.7
"""The cost of not being below the previous operand: there are other layouts."""
_TURNED = 1.5
"""The cost of ``not a is b`` in place of ``a is not b``: more than two layouts that do not fit, so that only characters
between operands on one line show it."""
_KNOT = 0.5
"""The cost of ``not (not a or b)`` and ``not (a or not (b and c))``."""
_LONGEST = 12
"""The largest number of operands that are tried in groups."""


def restore_conditions(tree: Node, contents: Contents) -> Node:
    """Return ``tree`` with each condition in the form that fits its columns best."""
    return _Groups().visit_holders(_Conditions().visit_holders(tree, contents, _BRANCHING), contents, _BRANCHING)


def restore_negations(tree: Node, contents: Contents) -> Node:
    """Return ``tree`` with each condition that is ``not (a and b)`` in the form that fits its columns best. The
    characters in front of the first operand give the start of the statement."""
    return _Negations().visit_holders(tree, contents, _NEGATING)


class _Conditions(Rewriter):
    """Rewrites tests: expressions whose truth alone is used."""

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
        ifs = [_best(test, after_keyword=False) for test in node.ifs]
        return node if all(one is two for one, two in zip(ifs, node.ifs)) else replaced(node, ifs=ifs)

    def _tested(self, node: Any) -> object:
        node = self.rewrite_children(node)
        test = self.best(node.test, after_keyword=not isinstance(node, ast.IfExp))
        if test is node.test:
            return node
        changed = replaced(node, test=test)
        attributes_of(changed).pop("start", None)  # it was derived from the test
        return changed

    def best(self, test: ast.expr, *, after_keyword: bool) -> ast.expr:
        """Return ``test`` in the form that fits best."""
        return _best(test, after_keyword=after_keyword)


class _Negations(_Conditions):
    def best(self, test: ast.expr, *, after_keyword: bool) -> ast.expr:
        negated = is_not(test) and type(test.operand) is ast.BoolOp  # type: ignore[attr-defined]
        return _best(test, after_keyword=after_keyword) if negated else test

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        return self.rewrite_children(node)


class _Groups(Rewriter):
    """Writes ``a and (b and c)``, which compiles like ``a and b and c``."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        node = self.rewrite_children(node)
        spaces = _spaces(node) if len(node.values) > 2 else []
        # a and (b and c)       one character more than `` and `` in front of ``b``, none after it. In front of the last
        #                       operand it would be a parenthesis around that operand alone.
        if 1 not in spaces[:-1]:
            return node
        start = spaces.index(1) + 1
        if any(space != 0 for space in spaces[start:]):
            return node  # the parenthesis may be closed there
        return replaced(node, values=[*node.values[:start], ast.BoolOp(node.op, node.values[start:])])


def _spaces(node: ast.BoolOp) -> List[Optional[int]]:
    """Return the number of surplus characters between each operand and the next one; ``None`` if it is unknown."""
    columns = _Columns()
    found: List[Optional[int]] = []
    word = len(" and ") if isinstance(node.op, ast.And) else len(" or ")
    for left, right in zip(node.values, node.values[1:]):
        operand, opens = first_operand(right)
        last = left.operand if isinstance(left, ast.UnaryOp) else left
        before, after = columns[last], columns[operand]
        surplus: Optional[int] = None
        chosen = isinstance(right, ast.BoolOp) and isinstance(node.op, ast.And)  # ``or``, in parentheses
        opens += chosen
        simple = ast.BoolOp not in (last.__class__, operand.__class__) and (chosen or not isinstance(right, ast.BoolOp))
        # Only between operands on one line, neither of which may have parentheses of its own.
        if simple and before is not None and after is not None and before[2] == after[0]:
            surplus = min((after[1] - end - word - opens for end in _ends(last, before[3])), key=abs)
        found.append(surplus)
    return found


@dataclass
class _Form:
    """One form of a condition. ``opens`` and ``closes``: the number of characters before its first operand and after
    its last one; ``first`` and ``last`` are these."""

    expr: ast.expr
    cost: float
    opens: int
    closes: int
    first: ast.expr
    last: ast.expr

    @property
    def operator(self) -> Optional[type]:
        return type(self.expr.op) if type(self.expr) is ast.BoolOp else None


def _best(test: ast.expr, *, after_keyword: bool) -> ast.expr:
    """Return ``test`` in the form that fits best. ``after_keyword``: it follows the keyword of its statement."""
    if type(test) not in (ast.BoolOp, ast.UnaryOp):
        return test
    columns = _Columns()
    if not _may_change(test, columns):
        return test
    forms = _forms(test, columns, negated=False)
    best = min(forms, key=lambda form: form.cost + (_misplaced(form, columns) if after_keyword else 0.0))
    return test if equal(best.expr, test) else best.expr


def _may_change(test: ast.expr, columns: _Columns) -> bool:
    """Return whether the operation ``test`` has operands with columns, and a ``not``, or an operator that negates
    one."""
    found = list(_operands(test))
    if len(found) < 2:
        return False
    return any(negated for _, negated in found) and all(columns[operand] is not None for operand, _ in found)


def _operands(test: ast.expr) -> Iterator[Tuple[ast.expr, bool]]:
    """Yield the operands of a condition, and whether each may be negated."""
    if type(test) is ast.BoolOp:
        for value in test.values:
            yield from _operands(value)
    elif type(test) is ast.UnaryOp and isinstance(test.op, ast.Not):
        for operand, _ in _operands(test.operand):
            yield operand, True
    else:
        yield test, isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.IsNot, ast.NotIn, ast.Is, ast.In))


class _Columns(Dict[ast.expr, Optional[Tuple[int, int, int, int]]]):
    """(line, column, end line, end column) of each operand of a condition; ``None`` if unknown."""

    def __missing__(self, operand: ast.expr) -> Optional[Tuple[int, int, int, int]]:
        first, place = first_span(operand), span_of(operand)
        if first is None:
            # [x for x in y if x or z]      STORE_FAST_LOAD_FAST x x; TO_BOOL; POP_JUMP_IF_TRUE 1
            #
            # The two instructions that became one (3.13) have the span of the first one; the jump has the test's.
            first = place = jump_of(operand)
        known = None
        if first is not None and place is not None and first.column is not None and place.end_column is not None:
            known = first.line, first.column, place.end_line, place.end_column
        self[operand] = known
        return known


# --- forms -----------------------------------------------------------------------------------------------------------


def _forms(test: ast.expr, columns: _Columns, *, negated: bool) -> List[_Form]:
    """Return the forms of ``test``, or of its opposite: the best one for each possible outermost operator."""
    if type(test) is ast.UnaryOp and isinstance(test.op, ast.Not):
        return _forms(test.operand, columns, negated=not negated)
    if type(test) is not ast.BoolOp:
        expr = negate(test) if negated else test
        nots = negated and isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not)
        plain = _Form(expr, _NOT * nots, 4 * nots, 0, test, test)
        return [plain, *_before_comparison(expr, test)]
    # ``a and b`` is itself, or ``not (not a or not b)``; its opposite is ``not a or not b``, or ``not (a and b)``.
    # ``inside`` has the operator that was lifted, so the other one costs a change.
    other = _opposite(test.op)
    inside = _joined(test.op, test.values, columns, negated=False)
    outside = _joined(other, test.values, columns, negated=True)
    plain, opposite = (outside, inside) if negated else (inside, outside)
    plain.cost += _CHANGE * negated
    opposite.cost += _CHANGE * (not negated)
    return [plain, _wrapped(opposite)]


def _before_comparison(expr: ast.expr, test: ast.expr) -> List[_Form]:
    """Return ``not a in b`` as an alternative to ``a not in b``, if ``expr`` is that."""
    opposite = {ast.NotIn: ast.In, ast.IsNot: ast.Is}
    if not isinstance(expr, ast.Compare) or len(expr.ops) != 1 or type(expr.ops[0]) not in opposite:
        return []
    turned = ast.UnaryOp(ast.Not(), replaced(expr, ops=[opposite[type(expr.ops[0])]()]))
    return [_Form(turned, _TURNED, 4, 0, test, test)]


def _opposite(operator: ast.boolop) -> ast.boolop:
    return ast.Or() if isinstance(operator, ast.And) else ast.And()


def _wrapped(form: _Form) -> _Form:
    """Return ``not (...)``."""
    expr = ast.UnaryOp(ast.Not(), form.expr)
    first, *others = form.expr.values  # type: ignore[attr-defined]
    knot = is_not(first) or any(is_not(each) and isinstance(each.operand, ast.BoolOp) for each in others)
    return _Form(expr, form.cost + _NOT + _KNOT * knot, form.opens + 5, form.closes + 1, form.first, form.last)


def _joined(operator: ast.boolop, values: List[ast.expr], columns: _Columns, *, negated: bool) -> _Form:
    """Return the best ``a and b and c``: each operand in one of its forms; several may be ``not (a or b)`` together.

    Grouping takes cubic time, so it is tried only where no form of single operands fits, and for a few operands.
    """
    alone = [_forms(value, columns, negated=negated) for value in values]
    best = _chained(operator, [[(1, form) for form in forms] for forms in alone], columns)
    if best.cost <= _DOUBT or not 2 < len(values) <= _LONGEST:
        return best
    # a and not b and not c and d       operands 1 and 2 as one group: a and not (b or c) and d
    steps: List[List[Tuple[int, _Form]]] = [[(1, form) for form in forms] for forms in alone]
    for start in range(len(values)):
        opposites = [_forms(value, columns, negated=not negated) for value in values[start:]]
        for end in range(start + 2, len(values) + (start > 0)):
            several = [[(1, form) for form in forms] for forms in opposites[: end - start]]
            group = _wrapped(_chained(_opposite(operator), several, columns))
            group.cost += _CHANGE
            steps[start].append((end - start, group))
    return min(best, _chained(operator, steps, columns), key=lambda form: form.cost)


def _chained(operator: ast.boolop, steps: List[List[Tuple[int, _Form]]], columns: _Columns) -> _Form:
    """Return the best chain of forms: from each position, ``steps`` has forms and how many operands they take.

    This is the shortest path through the positions. How well a form fits depends on the form before it, so ``ways``
    keeps the cheapest chain for each last form, not for each position alone.
    """
    ways: List[List[Tuple[float, List[_Form]]]] = [[] for _ in range(len(steps) + 1)]
    ways[0] = [(0.0, [])]
    for position, forms in enumerate(steps):
        for count, form in forms:
            reached = [
                (cost + form.cost + (_misfit(operator, chain, form, columns) if chain else 0.0), [*chain, form])
                for cost, chain in ways[position]
            ]
            if reached:
                ways[position + count].append(min(reached, key=lambda way: way[0]))
    cost, chain = min(ways[-1], key=lambda way: way[0])
    # A form with the same operator has no parentheses: its operands become operands of the chain.
    values: List[ast.expr] = []
    for form in chain:
        same = form.operator is type(operator)
        values.extend(form.expr.values if same else [form.expr])  # type: ignore[attr-defined]
    opens, closes = _parentheses(operator, chain[0]), _parentheses(operator, chain[-1])
    expr = ast.BoolOp(operator, values)
    return _Form(expr, cost, chain[0].opens + opens, chain[-1].closes + closes, chain[0].first, chain[-1].last)


# --- how well a form fits --------------------------------------------------------------------------------------------


def _misplaced(form: _Form, columns: _Columns) -> float:
    """Return how far the first operand of a statement's condition is from its column after the keyword; 0 if the
    statement has no span."""
    jump, first = jump_of(form.first), columns[form.first]
    if jump is None or jump.column is None or first is None or first[0] != jump.line or first[1] <= jump.column:
        return 0.0
    # The jump has the span of the statement (up to 3.11), which begins with the keyword.
    found = first[1] - jump.column - form.opens
    # A condition on several lines is often in parentheses.
    last = columns[form.last]
    spaces = (1, 2) if last is not None and last[2] > first[0] else (1,)
    return _evidence(min(abs(found - len(word) - space) for word in _KEYWORDS for space in spaces))


_KEYWORDS = ("if", "elif", "while", "assert")


def _evidence(characters: float) -> float:
    """Return the weight of missing or surplus characters. A larger number means that there is other text."""
    return characters if characters <= _MOST else 0.0


def _parentheses(operator: ast.boolop, form: _Form) -> int:
    """Return how many parentheses ``form`` needs on each side as an operand of ``operator``."""
    return 1 if isinstance(operator, ast.And) and form.operator is ast.Or else 0


def _may_have(operator: ast.boolop, form: _Form) -> Tuple[int, ...]:
    """Return how many parentheses ``form`` may have: they are common around ``and`` in ``or``, too."""
    if isinstance(operator, ast.Or) and form.operator is ast.And:
        return (0, 1)
    return (_parentheses(operator, form),)


def _misfit(operator: ast.boolop, chain: List[_Form], right: _Form, columns: _Columns) -> float:
    """Return how many characters are missing or surplus between the last operand in ``chain`` and the first of
    ``right``."""
    left = chain[-1]
    before, after, above = columns[left.last], columns[right.first], columns[left.first]
    if before is None or after is None or above is None:
        return 0.0
    word = len("and ") if isinstance(operator, ast.And) else len("or ")
    if before[2] == after[0]:
        # Both on one line: the text between them is closing parentheses, " and ", then "not (" and other openings.
        parentheses = [(closes, opens) for closes in _may_have(operator, left) for opens in _may_have(operator, right)]
        if isinstance(left.expr, ast.Compare) and isinstance(right.expr, ast.Compare):
            parentheses.append((1, 1))
        found = [
            after[1] - end - (left.closes + closes + 1 + word + opens + right.opens)
            for end in _ends(left.last, before[3])
            for closes, opens in parentheses
        ]
        return _evidence(min(map(abs, found)))
    # Else the operator starts a line, below the previous operator, or below the first operand;
    if left.operator is type(operator):
        # The operands of ``left`` are operands of the chain.
        last: ast.expr = left.expr.values[-1]  # type: ignore[attr-defined]
        if above[0] == before[0]:
            return 0.0
        above, shifts = before, [-4 * is_not(last)]
    elif len(chain) > 1:
        earlier = columns[chain[-2].last]
        if earlier is None or earlier[2] == above[0]:
            return 0.0
        shifts = [-left.opens - opens for opens in _may_have(operator, left)]
    else:
        # or the operator ends a line, and the second operand is below the first one.
        shifts = [word, word - left.opens, -left.opens]
    fits = any(
        after[1] - above[1] == opens + right.opens + shift for opens in _may_have(operator, right) for shift in shifts
    )
    return 0.0 if fits else _UNFIT


def _ends(operand: ast.expr, end: int) -> List[int]:
    """Return the possible ends of an operand. The jumps that test for None have no span for ``is None``."""
    if isinstance(operand, ast.Compare) and span_of(operand) == span_of(operand.left):
        return [end + len(" is None"), end + len(" is not None")]
    return [end]
