"""The inventory of a tree: names and kinds of nodes, whatever fields a newer Python adds to them."""

from __future__ import annotations

import ast
from typing import Any, ClassVar, List

import pytest

from depyf.decompiler.bytecode import syntax_trees
from depyf.decompiler.source.inventory import bits_of, child_fields, take_inventory
from depyf.decompiler.source.rewriting import Rewriter, replaced


class _Nothing(Rewriter):
    """Visits all nodes and changes none."""


class _NewerImport(ast.Import):
    _fields = ("names", "is_new")
    _field_types: ClassVar[Any] = {"names": List[ast.alias], "is_new": int}


def newer_module() -> ast.Module:
    statement = _NewerImport(names=[ast.alias(name="os", asname=None)], is_new=1)
    return ast.Module(body=[statement], type_ignores=[])


def test_a_field_of_a_newer_python_that_is_no_node_is_skipped() -> None:
    inventory = take_inventory(newer_module())
    assert inventory.names == {"os"}
    assert inventory.kinds & bits_of(_NewerImport)
    assert [type(each).__name__ for each in syntax_trees.walk(newer_module())] == ["Module", "_NewerImport", "alias"]
    assert _Nothing().visit(newer_module()).body


@pytest.mark.skipif(not hasattr(ast.Import, "_field_types"), reason="node classes have no types of fields before 3.13")
def test_fields_without_nodes_are_known() -> None:
    classes = [each for each in vars(ast).values() if isinstance(each, type) and issubclass(each, (ast.expr, ast.stmt))]
    without = {
        (cls.__name__, field)
        for cls in classes
        for field in child_fields(cls)
        if "ast." not in str(cls._field_types.get(field, "ast."))  # type: ignore[attr-defined,unused-ignore]
    }
    texts = {("Global", "names"), ("Nonlocal", "names"), ("MatchClass", "kwd_attrs"), ("Interpolation", "str")}
    assert without - texts == set()


def test_the_contents_of_a_statement_are_those_of_all_blocks_in_it() -> None:
    loop = "while x:\n        try:\n            a = -1\n        except b:\n            return 1 << 2"
    tree = ast.parse(f"def f():\n    {loop}\ng(0)")
    inventory = take_inventory(tree)
    function, call = (inventory.contents[id(each)] for each in tree.body)
    inner = bits_of(ast.FunctionDef, ast.While, ast.Try, ast.ExceptHandler, ast.UnaryOp, ast.Return, ast.BinOp)
    assert function & inner == inner
    assert call & inner == 0
    assert [bool(each & bits_of(ast.Call)) for each in (function, call)] == [False, True]


class _Seen(Rewriter):
    def __init__(self) -> None:
        self.lines: List[str] = []

    def visit_stmt(self, node: ast.stmt) -> ast.stmt:
        self.lines.append(ast.unparse(node).splitlines()[0])
        return self.rewrite_children(node)


@pytest.mark.skipif(not hasattr(ast, "unparse"), reason="prints what was visited")
def test_statements_without_the_wanted_classes_are_skipped_and_later_ones_are_visited() -> None:
    tree = ast.parse("if a:\n    b()\n    [c for d in e]\n")
    contents = take_inventory(tree).contents
    outer: Any = tree.body[0]
    changed = ast.Module([replaced(outer, body=[ast.Expr(ast.Name("new")), *outer.body])], [])
    seen = _Seen()
    seen.visit_holders(changed, contents, bits_of(ast.ListComp))
    assert seen.lines == ["if a:", "new", "[c for d in e]"]


@pytest.mark.parametrize(
    "other", ["a.b(1, c=[d])", "a.b(True, c=[d])", "a.b(1.0, c=[d])", "a.b(1, c=[d, e])", "a.b(1)"]
)
def test_trees_are_equal_where_their_dumps_are(other: str) -> None:
    one, two = ast.parse("a.b(1, c=[d])"), ast.parse(other)
    assert syntax_trees.equal(one, two) == (ast.dump(one) == ast.dump(two))
