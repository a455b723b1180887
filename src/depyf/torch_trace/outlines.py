"""What identifies a graph in its printed text: the names of its inputs and results, in order.

PyTorch prints one statement a line, so the lines are enough; a syntax tree of a large graph is half a million objects.
A text of another form is parsed.
"""

from __future__ import annotations

import ast
import re
from typing import Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.syntax import parse


@dataclass(frozen=True)
class Outline:
    """What identifies a graph in any printed form: the names of its inputs and results, in order."""

    inputs: Tuple[str, ...]
    results: Tuple[str, ...]


@dataclass(frozen=True)
class Forward:
    """One graph in a text: its outline, and the types that are printed for its inputs."""

    outline: Outline
    types: Mapping[str, str]


_UNBOXED_INPUT = regex(r"^([ ]+)(\w+) = next\(", re.MULTILINE)

_BOXED_HEAD = regex(r"^def forward\(self, (\w+)\):\n(?:    \w+ = [^\n]*\n)*    \1\.clear\(\)\n", re.MULTILINE)
_BOXED_RESULT = regex(r"^    return [^\n]*$", re.MULTILINE)
_GRAPH = regex(
    r"""^(?P<margin>[ ]*)def[ ]forward\((?:self[^\n]*|\n(?:(?P=margin)[ ][^\n]*\n)*(?P=margin))\):\n
    (?P<body>(?:(?P=margin)[ ]{4}(?!return\b)[^\n]*\n|\n)*)
    (?P=margin)[ ]{4}return[ ](?:\(\n(?:(?P=margin)[ ]{5}[^\n]*\n)*(?P=margin)[ ]{4}\)$|[^\n]*$)""",
    re.MULTILINE | re.VERBOSE,
)

_CLASS = regex(r"( *)class \w+\([\w.]+\):\Z")
_FORWARD = regex(r"( *)def forward\(self(?:, ([^\\]*))?\):\Z")
_INPUT = regex(r"([^\W\d]\w*)(?:: \"([^\"]*)\")?(?:, |\Z)")
_ASSIGNMENT = regex(r"([^\W\d]\w*)(?: ?: ?(?:\"[^\"]*\"|[\w.]+))? = (?!=)")
_ELEMENT = regex(r" +([^\"'#\\]*(?:: \"[^\"\\]*\")?),(?:  # .*)?\Z")
_RELEASE = regex(r"(?:[^\W\d]\w* = )+None\Z")


def forwards(text: str) -> List[Forward]:
    """Return every ``forward`` in the text of a graph file, the whole graph first."""
    found = _by_lines(text)
    return list(_by_syntax(text)) if found is None else found


def with_input_types(readable: str, typed: Sequence[Forward]) -> str:
    """Return ``readable`` with the types that the graph ``typed`` gives its inputs, where boxed inputs are unpacked."""
    types = typed[0].types if typed else {}

    def typed_line(match: re.Match[str]) -> str:
        annotation = types.get(match.group(2))
        return match.group(0) if annotation is None else f'{match.group(1)}{match.group(2)}: "{annotation}" = next('

    return _UNBOXED_INPUT.sub(typed_line, readable)


def boxed(readable: str, code: str) -> Optional[str]:
    """Return the graph ``readable`` with the arguments and the ``return`` of ``code``, which takes its inputs out of a
    list: what torch prints of ``code``, if both are the same graph. None for texts of another form.
    """
    head, result, graph = _BOXED_HEAD.search(code), _BOXED_RESULT.search(code), _GRAPH.search(readable)
    if head is None or result is None or graph is None:
        return None
    # The head and the ``return`` of the boxed form, with the body of the readable one.
    lines = [f"{graph.group('margin')}{line}\n" for line in head.group().splitlines()]
    last = f"{graph.group('margin')}{result.group()}"
    return f"{readable[: graph.start()]}{''.join(lines)}{graph.group('body')}{last}{readable[graph.end() :]}"


def _by_lines(text: str) -> Optional[List[Forward]]:
    """Return the graphs of a text in which each line is a whole statement, ``None`` for any other."""
    found: List[Forward] = []
    results: List[str] = []
    margin: Optional[str] = None
    lines = iter(text.split("\n"))
    for each in lines:
        line = _folded(each, lines)
        if line is None:
            return None
        bare = line.lstrip(" ")
        if not bare or bare[0] == "#" or (margin is None and bare.startswith(("import ", "from "))):
            continue
        indentation = line[: len(line) - len(bare)]
        # A statement of the body: ``add = torch.ops.aten.add.Tensor(x, y);  x = y = None``
        if indentation == margin:
            if not _add_results(bare, results):
                return None
            continue
        if found:  # the one before ends
            found[-1] = _with_results(found[-1], results)
        results, margin = [], None
        # Any other indentation ends the body: then a class, or another ``def forward``, has to follow.
        if _CLASS.match(line):
            continue
        forward = _head(line)
        if forward is None:
            return None
        found.append(forward)
        margin = indentation + "    "
    if found:
        found[-1] = _with_results(found[-1], results)
    return found or None


def _folded(line: str, lines: Iterator[str]) -> Optional[str]:
    """Return a line; with those that follow where torch prints each argument, or each result, on a line of its own."""
    if not line.endswith(("def forward(", " return (")):
        return line
    end = line[: len(line) - len(line.lstrip(" "))] + ("):" if line.endswith("forward(") else ")")
    elements: List[str] = []
    for each in lines:
        if each == end:
            return f"{line}{', '.join(elements)}{end.lstrip(' ')}"
        match = _ELEMENT.match(each)
        if match is None:
            return None
        elements.append(match.group(1))
    return None


def _with_results(forward: Forward, results: Sequence[str]) -> Forward:
    known = forward.outline
    return Forward(Outline(known.inputs, (*known.results, *results)), forward.types)


def _head(line: str) -> Optional[Forward]:
    """Return the inputs in the line of a ``def``; ``None`` for another line, and one with other parameters."""
    match = _FORWARD.match(line)
    if match is None:
        return None
    inputs, types, rest, at = [], {}, match.group(2) or "", 0
    while at < len(rest):
        each = _INPUT.match(rest, at)
        if each is None:
            return None
        inputs.append(each.group(1))
        if each.group(2) is not None:
            types[each.group(1)] = each.group(2)
        at = each.end()
    return Forward(Outline(tuple(inputs), ()), types)


def _add_results(statements: str, results: List[str]) -> bool:
    """Add the names that the statements of a line assign; return False if they are ambiguous."""
    while True:
        statement, separator, rest = statements.partition(";  ")
        if statement.count("'") % 2 or statement.count('"') % 2 or "\\" in statement:
            return False
        if _RELEASE.match(statement) is None:
            match = _ASSIGNMENT.match(statement)
            if match is not None:
                results.append(match.group(1))
            elif statement.startswith(("if ", "for ", "with ", "while ", "try:", "def ", "class ")):
                return False
        if not separator:
            return True
        statements = rest


def _by_syntax(text: str) -> Iterator[Forward]:
    classes: List[ast.AST] = [parse(text)]
    for node in classes:  # grows while it is walked: graphs of control flow are classes in classes
        for child in getattr(node, "body", ()):
            if isinstance(child, ast.FunctionDef) and child.name == "forward":
                yield _of_tree(child)
            elif isinstance(child, ast.ClassDef):
                classes.append(child)


def _of_tree(function: ast.FunctionDef) -> Forward:
    arguments = function.args.args
    types = {
        argument.arg: argument.annotation.value
        for argument in arguments
        if isinstance(argument.annotation, ast.Constant) and isinstance(argument.annotation.value, str)
    }
    inputs = tuple(argument.arg for argument in arguments[1:])
    return Forward(Outline(inputs, tuple(_assigned(function.body))), types)


def _assigned(body: List[ast.stmt]) -> Iterator[str]:
    for statement in body:
        value = getattr(statement, "value", None)
        if value is None or (isinstance(value, ast.Constant) and value.value is None):
            continue
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            yield statement.targets[0].id
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id
