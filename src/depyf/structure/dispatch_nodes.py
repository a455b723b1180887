"""The dispatcher's statements for one node: what it computes, and its terminator."""

from __future__ import annotations

import ast
from typing import List

from depyf.lift.nodes import (
    Accumulate,
    BindException,
    Condition,
    Goto,
    Loop,
    MatchTest,
    Node,
    Overridden,
    PopException,
    Raise,
    Reraise,
    Return,
    WithEnter,
)
from depyf.structure.accumulation import AccumulateStatement
from depyf.structure.dispatch_contexts import Context, Kind
from depyf.structure.dispatch_edges import is_with_enter
from depyf.structure.dispatch_match import cases_of, match_statement
from depyf.structure.dispatch_regions import write_with
from depyf.structure.dispatch_scope import Scope
from depyf.structure.dispatch_states import Arrival, End, Live, merged
from depyf.structure.dispatch_writer import Writer, Written
from depyf.structure.unstructured import Unstructured


def write_node(writer: Writer, id: int, scope: Scope, depth: int) -> Written:
    if id in writer.written:
        raise Unstructured(f"node {id} (offset {writer.nodes[id].offset}) would be written twice")
    writer.written.add(id)
    node = writer.nodes[id]
    result = _statements_of(writer, node)
    part, falls = _write_terminator(writer, node, scope, depth)
    return result + part, falls


def _statements_of(writer: Writer, node: Node) -> List[ast.stmt]:
    result: List[ast.stmt] = []
    for index, statement in enumerate(node.statements):
        if isinstance(statement, ast.stmt):
            result.append(statement)
        elif isinstance(statement, Accumulate):
            add = AccumulateStatement()
            add.kind, add.key, add.element = statement.kind, statement.key, statement.element
            result.append(add)
        elif isinstance(statement, BindException):
            if statement.target is not None and not _begins_clause(writer, node.id, statement, index):
                raise Unstructured(f"node {node.id} stores the handled exception in the middle of its handler")
        elif not isinstance(statement, (PopException, WithEnter)):
            raise Unstructured(f"node {node.id} exits a with statement in the middle of its code")
    return result


def _begins_clause(writer: Writer, id: int, bind: BindException, index: int) -> bool:
    clauses = writer.edges.clauses(Context(Kind.TRY, bind.handler))
    return index == 0 and any(clause.start == id and clause.name is not None for clause in clauses)


def _write_terminator(writer: Writer, node: Node, scope: Scope, depth: int) -> Written:
    term = node.terminator
    if isinstance(term, Goto):
        if is_with_enter(node):
            enter = node.statements[-1]
            assert isinstance(enter, WithEnter)
            return write_with(writer, enter, term.target, scope, depth)
        way = writer.edges.way(scope.level, term.target)
        return ([ast.Return(way.returned)], {}) if way.returned is not None else ([], {way.target: Arrival()})
    if isinstance(term, Condition):
        if term.keep:
            raise Unstructured(f"node {node.id} keeps the value it tests")
        body, falls = _arm(writer, term.fall, scope, depth)
        orelse, more = _arm(writer, term.target, scope, depth)
        return [ast.If(term.test, body, orelse)], merged(falls, more)
    if isinstance(term, Loop):
        return writer.write_for(node.id, term, scope, depth)
    if isinstance(term, MatchTest):
        return _write_match(writer, node, term, scope, depth)
    if isinstance(term, Return):
        _check_return(writer, node)
        return [ast.Return(term.value)], {}
    if isinstance(term, Raise):
        return [term.statement], {}
    if isinstance(term, Reraise):
        return _reraise(writer, node, term)
    if isinstance(term, Overridden):  # unreachable
        return [ast.Return(None)], {}
    raise Unstructured(f"node {node.id} ends in a {type(term).__name__} outside of its pattern")


def _write_match(writer: Writer, node: Node, term: MatchTest, scope: Scope, depth: int) -> Written:
    cases = cases_of(writer.nodes, node)
    assert term.subject is not None
    bodies: List[List[ast.stmt]] = []
    falls: Live = {}
    for case in cases:
        body, more = _arm(writer, case.body, scope, depth)
        bodies.append(body)
        falls = merged(falls, more)
    return [match_statement(term.subject, cases, bodies)], falls


def _arm(writer: Writer, target: int, scope: Scope, depth: int) -> Written:
    way = writer.edges.way(scope.level, target)
    if way.returned is not None:
        return [ast.Return(way.returned)], {}
    return writer.jump(way.target, scope, depth + 1)


def _check_return(writer: Writer, node: Node) -> None:
    for context in writer.contexts.paths[node.id]:
        if context.kind is Kind.TRY and (writer.contexts.is_with(context) or writer.contexts.is_finally(context)):
            raise Unstructured(f"node {node.id} returns without leaving {context}")


def _reraise(writer: Writer, node: Node, term: Reraise) -> Written:
    handlers = [context for context in writer.contexts.paths[node.id] if context.kind is Kind.HANDLER]
    if term.value is not None or not handlers or handlers[-1].anchor != term.handler:
        raise Unstructured(f"node {node.id} raises again another exception than the one handled last")
    if writer.contexts.is_finally(handlers[-1]):
        return [], {End(handlers[-1].anchor): Arrival()}
    return [ast.Raise(None, None)], {}
