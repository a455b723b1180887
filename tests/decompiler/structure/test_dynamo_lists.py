"""Lists through which Dynamo moves values are no statements of the source."""

from __future__ import annotations

import ast

from operations import CALL_G, Step, listing, local

from depyf.decompiler.flow.graph import build
from depyf.decompiler.lift.lifter import lift
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.source.passes.plumbing import drop_plumbing
from depyf.decompiler.source.printing.statements import unparse
from depyf.decompiler.structure.sequences import structure


def source(*steps: Step) -> str:
    flow = build(listing(*steps))
    lifted = lift(flow)
    statements = drop_plumbing(structure(lifted, flow), frozenset(), lifted.temporaries)
    return unparse(ast.fix_missing_locations(ast.Module(statements, []))).strip()


def test_a_list_below_another_value_is_extended() -> None:
    """What 2.15 writes: the list of values of a frame is extended while the test of a branch lies above it."""
    assert (
        source(
            *CALL_G,
            local("a"),
            (Op.BUILD, ("list", 1)),
            (Op.CONST, 5),
            local("b"),
            (Op.BUILD, ("list", 1)),
            (Op.UPDATE, ("list", 2)),
            (Op.POP,),
            (Op.LIST_TO_TUPLE,),
            (Op.CALL_EX, (False, "below")),
            (Op.RETURN,),
        )
        == "return g(a, *[b])"
    )
