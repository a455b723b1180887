"""The patterns of ``match`` to text."""

from __future__ import annotations

import ast

from depyf.source.printing.expressions import BIT_OR, BIT_XOR, TEST, Expressions, methods


class Patterns(Expressions):
    """Writes patterns. Their classes are new in 3.10."""

    def _MatchValue(self, node: ast.MatchValue, level: int) -> str:
        return self.text(node.value)

    def _MatchSingleton(self, node: ast.MatchSingleton, level: int) -> str:
        return repr(node.value)

    def _MatchSequence(self, node: ast.MatchSequence, level: int) -> str:
        return f"[{self.items(node.patterns)}]"

    def _MatchStar(self, node: ast.MatchStar, level: int) -> str:
        return f"*{node.name or '_'}"

    def _MatchMapping(self, node: ast.MatchMapping, level: int) -> str:
        items = [f"{self.text(key)}: {self.text(pattern)}" for key, pattern in zip(node.keys, node.patterns)]
        rest = [] if node.rest is None else [f"**{node.rest}"]
        return f"{{{', '.join(items + rest)}}}"

    def _MatchClass(self, node: ast.MatchClass, level: int) -> str:
        named = [f"{name}={self.text(pattern)}" for name, pattern in zip(node.kwd_attrs, node.kwd_patterns)]
        return f"{self.text(node.cls)}({', '.join([*map(self.text, node.patterns), *named])})"

    def _MatchAs(self, node: ast.MatchAs, level: int) -> str:
        if node.pattern is None:
            return node.name or "_"
        text = f"{self.text(node.pattern, BIT_OR)} as {node.name}"
        return f"({text})" if level > TEST else text

    def _MatchOr(self, node: ast.MatchOr, level: int) -> str:
        text = " | ".join([self.text(pattern, BIT_XOR) for pattern in node.patterns])
        return f"({text})" if level > BIT_OR else text


methods.add(Patterns)
