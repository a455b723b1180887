"""Show the output of every stage of the decompiler for one function.

    python tools/show/explain_stages.py heapq:heappush            # any function that `depyf decompile` finds
    python tools/show/explain_stages.py --document FILE --check   # are the stages in a document those of its example?
    python tools/show/explain_stages.py --document FILE --write   # put them there

A document names its example, and every stage, in a comment above a fenced block: ``<!-- stage: bytecode -->``.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Dict, Iterator, List, Optional

from depyf.decompiler import decompile_code
from depyf.decompiler.flow.copies import undo_copies
from depyf.decompiler.flow.graph import Block, Branch, FlowGraph, For, Jump, Region, build
from depyf.decompiler.lift.lifter import lift
from depyf.decompiler.lift.nodes import LiftedGraph, Node
from depyf.decompiler.normal.disassembly import disassembly
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import Instr, Op
from depyf.decompiler.source.printing.statements import unparse
from depyf.decompiler.structure.sequences import structure
from depyf.sweep.targets import find_target

EXAMPLE = "example"


def stages(code: CodeType) -> Dict[str, str]:
    """Return the output of each stage as text, in the order in which they run."""
    flow = build(lower(code))
    found = {"bytecode": "\n".join(disassembly(code)), "flow": "\n".join(_flow_lines(flow))}
    undo_copies(flow)
    found["copies"] = "\n".join(_flow_lines(flow))
    lifted = lift(flow)
    found["lifted"] = "\n".join(_lifted_lines(lifted))
    found["structured"] = _text_of(structure(lifted, flow))
    answer = decompile_code(code)
    found["source"] = answer.source.rstrip("\n")
    found["verdict"] = f"{answer.verdict.value}{': ' if answer.reason else ''}{answer.reason}"
    return found


# --- graphs


def _flow_lines(flow: FlowGraph) -> Iterator[str]:
    for block in flow.blocks.values():
        yield f"B{block.id}{_guard(block.region)}{' (implicit return)' if block.implicit else ''}"
        operations = "; ".join(_operation(instr) for instr in block.ops)
        yield from textwrap.wrap(operations, 110, initial_indent="    ", subsequent_indent="    ")
        yield from _end_of(block)


def _operation(instr: Instr) -> str:
    return instr.op.name if instr.arg is None and instr.op is not Op.CONST else f"{instr.op.name} {instr.arg!r}"


_OUTCOMES = {"truth": ("true", "false")}


def _end_of(block: Block) -> Iterator[str]:
    term = block.term
    if isinstance(term, Jump):
        yield f"    -> B{term.target}"
    elif isinstance(term, Branch):
        positive, negative = _OUTCOMES.get(term.test.value, (term.test.value, f"not {term.test.value}"))
        truth, falsehood = (term.target, term.fall) if term.jump_when else (term.fall, term.target)
        yield f"    {positive} -> B{truth}, {negative} -> B{falsehood}"
    elif isinstance(term, For):
        yield f"    next item -> B{term.body}, none left -> B{term.exhausted}"


def _guard(region: Optional[Region]) -> str:
    return "" if region is None else f", guarded by the handler B{region.entry}"


def _lifted_lines(lifted: LiftedGraph) -> Iterator[str]:
    for node in sorted(lifted.nodes.values(), key=lambda each: (each.offset < 0, each.offset)):
        yield f"N{node.id}{_guard(node.region).replace('B', 'N')}{_leaves(node)}"
        for statement in node.statements:
            text = _text_of([statement]) if isinstance(statement, ast.stmt) else _shown(statement)
            yield from (f"    {line}" for line in text.splitlines())
        yield f"    {_shown(node.terminator)}"


def _leaves(node: Node) -> str:
    return "".join(f", leaves the region of N{region.entry}" for region in node.leaves)


def _shown(value: Any) -> str:
    if isinstance(value, ast.expr):
        return _text_of([ast.Expr(value)])
    if is_dataclass(value):
        # the source span is shown in the listing
        known = [each.name for each in fields(value) if each.name != "span"]
        shown = [name for name in known if getattr(value, name) not in (None, False, (), -1)]
        return f"{type(value).__name__}({', '.join(f'{name}={_shown(getattr(value, name))}' for name in shown)})"
    return repr(value)


class _Placeholders(ast.NodeTransformer):
    """Replaces a node that is not syntax yet, such as a function that is not decompiled so far, by a name."""

    def visit(self, node: ast.AST) -> Any:
        if type(node).__module__ in ("ast", "_ast"):
            return self.generic_visit(node)
        name = ast.Name(f"<{type(node).__name__}>", ast.Load())
        return ast.Expr(name) if isinstance(node, ast.stmt) else name


def _text_of(statements: List[Any]) -> str:
    module = ast.Module([_Placeholders().visit(each) for each in statements], [])
    return unparse(ast.fix_missing_locations(module)).strip("\n")


# --- documents

_BLOCK = re.compile(r"(<!-- stage: (?P<name>\w+) -->\n```\w*\n)(?P<text>.*?)(\n```)", re.DOTALL)


def explained(document: str) -> str:
    """Return ``document`` with the stages of its example."""
    blocks = {match["name"]: match["text"] for match in _BLOCK.finditer(document)}
    module = compile(blocks[EXAMPLE], "<example>", "exec", dont_inherit=True)
    code = next(each for each in module.co_consts if isinstance(each, CodeType))
    texts = {**stages(code), EXAMPLE: blocks[EXAMPLE]}
    unknown = sorted(blocks.keys() - texts.keys())
    if unknown:
        raise ValueError(f"there are no stages named {', '.join(unknown)}")
    return _BLOCK.sub(lambda match: f"{match[1]}{texts[match['name']]}{match[4]}", document)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", metavar="MODULE:FUNCTION")
    parser.add_argument("--document", type=Path, metavar="FILE")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.document is not None:
        document = options.document.read_text()
        true = explained(document)
        if options.write:
            options.document.write_text(true)
        elif true != document:
            print(f"{options.document} is not what the stages answer: run this with --write", file=sys.stderr)
            return 1
        return 0
    if options.target is None:
        parser.error("name a function or a document")
    for name, text in stages(find_target(options.target).code).items():
        print(f"--- {name}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
