"""``%load_ext depyf``: ``%%depyf`` dumps what a cell compiles, ``%depyf why f(x)`` explains what a call would do.

Imported by IPython only, on which depyf does not depend.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional, Tuple

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from depyf.answers.why import Why
from depyf.decompiler.syntax import parse
from depyf.dynamo.dump.prepare import prepare_debug
from depyf.dynamo.hooks.patching import replace_attribute
from depyf.dynamo.questions.why import why

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

DIRECTORY = "depyf_notebook"

_USAGE = (
    f"""%%depyf [DIRECTORY] dumps what the cell compiles ({DIRECTORY}); %depyf why f(x) asks what this call would do"""
)
_CALL = "_depyf_arguments"


@magics_class
class DepyfMagics(Magics):
    """The magics of depyf."""

    @line_cell_magic
    def depyf(self, line: str, cell: Optional[str] = None) -> Optional[Why]:
        """Dump what the cell compiles, or (``%depyf why f(x)``) say what a call would do.

        %%depyf [DIRECTORY]
            runs the cell, with what it compiles dumped, and shows the source with what became of each line.
        %depyf why f(x, n=2)
            is ``depyf.why(f, x, n=2)``: the cache entry that the call would hit, and the failing guards of the others.
        """
        if cell is not None:
            self._dump(line.strip() or DIRECTORY, cell)
            return None
        command, _, expression = line.strip().partition(" ")
        if command != "why" or not expression.strip():
            raise UsageError(_USAGE)
        return self._why(expression.strip())

    def _dump(self, directory: str, cell: str) -> None:
        prepared, shell = prepare_debug(directory), self._shell()
        shown: List[List[str]] = []
        with prepared:
            undo = replace_attribute(shell, "_showtraceback", lambda _type, _error, lines: shown.append(lines))
            try:
                result = shell.run_cell(cell)  # type: ignore[no-untyped-call]
            finally:
                undo()
        display(prepared)  # type: ignore[no-untyped-call]
        error = result.error_before_exec or result.error_in_exec
        if error is not None:  # whoever runs the notebook without a reader is to see that it failed
            if shown:  # once, and without the frames of the magic (which IPython shows of a SyntaxError only)
                error._render_traceback_ = lambda: shown[-1]
            raise error

    def _why(self, expression: str) -> Why:
        try:
            call = parse(expression, "eval").body
        except SyntaxError as error:
            raise UsageError(f"%depyf why: {expression}: {error.msg}") from None
        if not isinstance(call, ast.Call):
            raise UsageError(f"%depyf why needs a call, such as f(x); {expression} is not a call")
        function, namespace = self._value(call.func, {}), {_CALL: _arguments}
        call.func = ast.copy_location(ast.Name(_CALL, ast.Load()), call.func)
        arguments = self._value(call, namespace)
        assert isinstance(arguments, tuple)
        positional, by_name = arguments
        return why(function, *positional, **by_name)

    def _value(self, node: ast.expr, more: Mapping[str, object]) -> object:
        code = compile(ast.Expression(node), "<%depyf why>", "eval")
        return eval(code, {**self._shell().user_ns, **more})

    def _shell(self) -> InteractiveShell:
        assert self.shell is not None  # the magics are registered with one
        return self.shell


def _arguments(*positional: object, **by_name: object) -> Tuple[Tuple[object, ...], Dict[str, object]]:
    return positional, by_name


def load(ipython: InteractiveShell) -> None:
    """Register the magics."""
    ipython.register_magics(DepyfMagics)
