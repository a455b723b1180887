"""The pipeline: a code object in, verified source out.

``decompile_code`` tries the most readable form first. A form that can't be proved gives way to a plainer one, for
those code objects alone that need it; the last form is a dispatch loop, which every code object has.
"""

from __future__ import annotations

import ast
import enum
import inspect
from types import CodeType
from typing import Dict, List, Mapping, Optional, Tuple

from depyf.flow.copies import undo_copies
from depyf.flow.graph import build
from depyf.lift.items import Function
from depyf.lift.lifter import lift
from depyf.normal.lowering import lower
from depyf.normal.ops import NormalCode
from depyf.result import Decompilation, DecompilationError, LineMap, Verdict
from depyf.source.compiling import compile_like
from depyf.source.deep_stack import with_deep_stack
from depyf.source.definitions import Definer
from depyf.source.source_text import SourceText
from depyf.source.text import to_source
from depyf.structure.structurer import Unstructured, structure
from depyf.verify import Comparison, Finding, compare

__all__ = ["DecompilationError", "decompile_code"]


class Form(enum.IntEnum):
    """How a code object is written, most readable first."""

    READABLE = 0
    PLAIN = 1
    """Without the readability passes."""


def decompile_code(code: CodeType, *, name: Optional[str] = None) -> Decompilation:
    """Decompile and verify one code object; ``name`` is what the function is called in the source.

    Raises ``DecompilationError`` when no source could be made, or only source that is known to differ.
    """
    try:
        return with_deep_stack(lambda: _Decompiler(code, name or code.co_name).run())
    except DecompilationError:
        raise
    except (ValueError, NotImplementedError, Unstructured) as error:
        raise DecompilationError(f"{code.co_name}: {error}") from error


class _Decompiler:
    def __init__(self, code: CodeType, name: str) -> None:
        self.code, self.name = code, name
        self.forms: Dict[CodeType, Form] = {}

    def run(self) -> Decompilation:
        best: Optional[Tuple[SourceText, Comparison]] = None
        while True:
            source = to_source(ast.fix_missing_locations(ast.Module(self._body(), [])))
            comparison = compare(self.code, compile_like(source, self.code, self._filename()))
            if comparison.proved:
                return self._answer(source, comparison)
            if best is None and comparison.finding is Finding.UNVERIFIED:
                best = (source, comparison)
            if not self._simplify(comparison):
                break
        if best is None:
            raise DecompilationError(f"{self.code.co_name}: the source that was made differs: {comparison.reason}")
        return self._answer(*best)

    def _filename(self) -> str:
        return f"<decompiled {self.name}>"

    # --- the tree ----------------------------------------------------------------------------------------------------

    def _body(self) -> List[ast.stmt]:
        definer = Definer(self._statements)
        code, function = self.code, Function(self.code)
        if code.co_name == "<module>" and not code.co_flags & inspect.CO_OPTIMIZED:
            return definer.function_body(code)
        if code.co_name == "<lambda>":
            return [ast.Expr(definer.lambda_(function))]
        if not code.co_flags & inspect.CO_OPTIMIZED:
            function.class_arguments = ([], [])
        return [definer.definition(function, self.name)]

    def _statements(self, code: CodeType) -> Tuple[NormalCode, List[ast.stmt]]:
        normal = lower(code)
        flow = build(normal)
        undo_copies(flow)
        statements = structure(lift(flow), flow)
        return normal, statements

    def _simplify(self, comparison: Comparison) -> bool:
        """Choose a plainer form for what was not proved; whether there was one."""
        return False

    # --- the answer --------------------------------------------------------------------------------------------------

    def _answer(self, source: SourceText, comparison: Comparison) -> Decompilation:
        verdict = comparison.finding.verdict
        assert verdict is not None
        return Decompilation(
            self.code, self.name, source.text, source.tree, verdict, comparison.reason, LineMap({}, {}), source
        )
