"""Entry point: compare the behaviour of two code objects and of the code objects nested in them."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from types import CodeType
from typing import TYPE_CHECKING, AbstractSet, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.decompiler.bytecode.code import Code, docstring, is_code, parameter_names
from depyf.decompiler.bytecode.nesting import Names, names_of, qualified_name
from depyf.decompiler.hints import Hints
from depyf.decompiler.normal.across import beyond_comparison, docstring_today, in_common_terms
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import Instr, NormalCode, Op
from depyf.decompiler.verify.comparison import Comparison, Finding, Matched, MismatchError
from depyf.decompiler.verify.constants import constant_key, holds_nan, nan_objects
from depyf.decompiler.verify.program import Program
from depyf.decompiler.verify.settings import Settings
from depyf.decompiler.verify.signature import (
    nested_difference,
    signature_difference,
    visible_futures,
    visible_names,
    visible_nans,
)

if TYPE_CHECKING:
    from depyf.decompiler.verify.product import Product

Around = Optional[Tuple[Names, Names]]

_NO_HINTS = Hints()


def compare(
    original: Code,
    candidate: Code,
    *,
    hints: Hints = _NO_HINTS,
    renamed: Optional[Mapping[str, str]] = None,
    check_docstring: bool = True,
    always_prove: bool = False,
    assumed: AbstractSet[int] = frozenset(),
    lowered: Callable[[Code], NormalCode] = lower,
) -> Comparison:
    """Compare how ``original`` and ``candidate`` behave; both are bytecode of the running Python.

    ``hints`` are assumptions about the original, not about code nested in it:
    ``droppable``: local variables of the original that the candidate need not have (temporaries that a tool made);
    it may also release their values earlier.
    ``stable_globals``: globals that are bound and do not change while the code runs, so that the time of reading
    them does not matter (what Dynamo installs: compiled functions, resume functions).
    ``tuple_results``: stable globals that return a tuple of a known length when called, so that unpacking the
    tuple is not observable.

    ``renamed``: from local names of the candidate to local names of the original that are not identifiers.
    ``check_docstring=False`` is for code objects that no function is made from, such as Dynamo's.
    ``always_prove`` skips the fast path: identical operations are proved EQUIVALENT, not reported EXACT.
    ``assumed``: the ``id`` of code objects nested in the original that are assumed to be equivalent; their signatures
    and closures are compared. The result is then conditional: not a proof of the whole.
    ``lowered`` returns the normal form of a code object, for a caller that has it already.

    Same behaviour means: the same observable operations in the same order with the same operands on every path,
    exceptions included; the same values in the variables that both have, and the same values kept alive, whenever other
    code runs. The operands of an operation are treated as alive while it runs, on both sides. Not compared:
    asynchronous exceptions, audit events, line numbers, stack depth, the identity of constant tuples, the order of
    constant sets where it is not fixed, the order in which values are dropped between two operations, and the name of
    the outermost code object. The value of a global name is assumed to be kept alive by it, and MAKE_FUNCTION to get a
    closure of cells: it checks none, where a call of the class of functions raises.
    """
    settings = Settings(
        hints.droppable,
        dict(renamed or {}),
        hints.stable_globals,
        dict(hints.tuple_results),
        check_docstring,
        always_prove,
        assumed,
    )
    return Comparer(settings, lowered).compare(original, candidate, None)


def same_docstring(original: Code, candidate: Code) -> bool:
    """Return whether functions made from the two have the same docstring."""
    return bool(docstring_today(original, candidate) == docstring(candidate))


# --- fast paths: both have the same bytecode, or the same operations

CompareCodes = Callable[[Code, Code], Comparison]

_FIELDS = [
    "co_code", "co_names", "co_varnames", "co_cellvars", "co_freevars", "co_exceptiontable", "co_flags", "co_argcount",
    "co_posonlyargcount", "co_kwonlyargcount",
]  # fmt: skip
"""What an instruction's meaning depends on, beside the constants. ``co_exceptiontable`` is new in 3.11."""

_facts = attrgetter(*[field for field in _FIELDS if hasattr(CodeType, field)])


def same_bytecode(original: Code, candidate: Code) -> Optional[Dict[int, CodeType]]:
    """Return the code objects among the constants of ``candidate``, by the ``id`` of the original's, if both have the
    same bytecode on the same names and constants, else ``None``.

    The normal forms of such code objects are the same, so that the candidate's need not be made. The code objects among
    the constants are not compared here.
    """
    if not (type(original) is type(candidate) is CodeType) or len(original.co_consts) != len(candidate.co_consts):
        return None
    if _facts(original) != _facts(candidate):
        return None
    inner: Dict[int, CodeType] = {}
    for mine, theirs in zip(original.co_consts, candidate.co_consts):
        if type(mine) is type(theirs) is CodeType:
            # One code object in the original, two in the candidate: which one an operation loads is unknown here.
            if inner.setdefault(id(mine), theirs) is not theirs:
                return None
        elif mine is not theirs and (constant_key(mine) != constant_key(theirs) or holds_nan(mine)):
            return None
    return inner


def nested_comparisons(
    original: NormalCode, inner: Dict[int, CodeType], compare_codes: CompareCodes
) -> List[Comparison]:
    """Return the comparisons of the code objects that ``original`` loads with those that ``inner`` has for them."""
    if not inner:
        return []
    loaded = (instr.arg for instr in original.ops if instr.op is Op.CONST)
    return [compare_codes(code, inner[id(code)]) for code in loaded if id(code) in inner]


def same_operations(original: Program, candidate: Program, compare_codes: CompareCodes) -> Optional[List[Comparison]]:
    """Return the comparisons of the nested code objects if all operations are the same, else ``None``."""
    if len(original.ops) != len(candidate.ops):
        return None
    if nan_objects(original.ops) != nan_objects(candidate.ops) or original.open_tests != candidate.open_tests:
        return None
    nested: List[Comparison] = []
    for mine, theirs in zip(original.ops, candidate.ops):
        if mine.op is not theirs.op or mine.target != theirs.target or mine.handler != theirs.handler:
            return None
        if mine.op is not Op.CONST:
            if mine.arg != theirs.arg:
                return None
        elif mine.arg is not theirs.arg:
            if is_code(mine.arg) and is_code(theirs.arg):
                nested.append(compare_codes(mine.arg, theirs.arg))
            elif constant_key(mine.arg) != constant_key(theirs.arg):
                return None
    return nested


# --- one pair


class Comparer:
    """The comparisons of one pair and its nested pairs, each made once. ``record`` gets each simulation proof."""

    def __init__(
        self,
        settings: Settings,
        lowered: Callable[[Code], NormalCode],
        record: Optional[Callable[[Program, Program, Product], None]] = None,
    ) -> None:
        self._settings = settings
        self._lowered = lowered
        self._record = record

    def compare(self, original: Code, candidate: Code, around: Around) -> Comparison:
        children: List[Comparison] = []
        name = qualified_name(original) if around is None else around[0].within(original)

        def answer(finding: Finding, reason: str = "", matched: Matched = tuple) -> Comparison:
            ids = id(original), id(candidate)
            return Comparison(
                finding, reason, matched, tuple(children), name, *ids, changes=frozenset().union(*changes)
            )

        def nested(mine: Code, theirs: Code) -> Comparison:
            key = (id(mine), id(theirs))
            if key not in known:
                if not inside:
                    inside.append((names_of(original), names_of(candidate)))
                known[key] = self.compare(mine, theirs, inside[0])
                children.append(known[key])
            return known[key]

        changes: List[FrozenSet[str]] = []
        known: Dict[Tuple[int, int], Comparison] = {}
        inside: List[Tuple[Names, Names]] = []
        # 1. Facts that no operation shows: signature, flags, docstring.
        difference = self._difference_of_facts(original, candidate, around)
        if difference is not None:
            return answer(Finding.DIFFERENT, difference)
        if around is not None and id(original) in self._settings.assumed:
            return answer(Finding.EQUIVALENT)
        try:
            # 2. Identical bytecode: the candidate need not be lowered, and only nested code objects are left to
            # compare.
            normal, inner = self._lowered(original), self._same_bytecode(original, candidate)
            if inner is None:
                mine, theirs = self._programs(original, candidate, around, changes)
        except synchronous(ValueError) as error:
            return answer(Finding.UNVERIFIED, f"malformed bytecode: {error}")
        if inner is not None:
            return answer(*_of_same_operations(normal.ops, normal.ops, nested_comparisons(normal, inner, nested)))
        # 3. What the operations show only to ``locals()``, or to code that is compiled at run time.
        seen = visible_names(mine, theirs) or visible_futures(mine, theirs)
        if seen is not None:
            return answer(Finding.UNVERIFIED, seen)
        # 4. The same operations after lowering, with ``renamed`` names mapped.
        if not self._settings.always_prove:
            found = same_operations(mine, theirs, nested)
            if found is not None:
                return answer(*_of_same_operations(mine.ops, theirs.ops, found))
        # 5. The simulation proof.
        return self._prove(mine, theirs, nested, answer, is_nested=around is not None)

    def _prove(
        self,
        mine: Program,
        theirs: Program,
        nested: CompareCodes,
        answer: Callable[..., Comparison],
        *,
        is_nested: bool,
    ) -> Comparison:
        nan = visible_nans(mine, theirs)
        if nan is not None:
            return answer(Finding.UNVERIFIED, nan)
        from depyf.decompiler.verify.product import Product  # most code is proved without it

        try:
            settings = self._settings.of_nested_code() if is_nested else self._settings
            product = Product(mine, theirs, nested, list(parameter_names(mine.code)), settings)
            if self._record is not None:
                self._record(mine, theirs, product)
            pairs = product.prove()
            return answer(Finding.EQUIVALENT, "", lambda: pairs)
        except MismatchError as mismatch:
            return _of_mismatch(mismatch, answer, beyond_comparison(mine.normal, theirs.normal))

    def _same_bytecode(self, original: Code, candidate: Code) -> Optional[Dict[int, CodeType]]:
        return None if self._settings.always_prove or self._settings.renamed else same_bytecode(original, candidate)

    def _difference_of_facts(self, original: Code, candidate: Code, around: Around) -> Optional[str]:
        difference = signature_difference(original, candidate, self._settings.renamed)
        if difference is None and around is not None:
            difference = nested_difference(original, candidate, around, self._settings.renamed)
        if difference is None and (around is not None or self._settings.check_docstring):
            mine, theirs = docstring_today(original, candidate), docstring(candidate)
            if mine != theirs:
                difference = f"the docstrings differ: {mine!r} in the original, {theirs!r} in the candidate"
        return difference

    def _programs(
        self, original: Code, candidate: Code, around: Around, changes: List[FrozenSet[str]]
    ) -> Tuple[Program, Program]:
        parents = around or (None, None)
        mine, theirs, used = in_common_terms(self._lowered(original), self._lowered(candidate))
        changes.append(used)
        return Program(mine, {}, parents[0]), Program(theirs, self._settings.renamed, parents[1])


def _of_mismatch(
    mismatch: MismatchError, answer: Callable[[Finding, str], Comparison], beyond: Optional[str]
) -> Comparison:
    """Return the comparison for a proof that failed. ``beyond``: why the two can't be compared."""
    if beyond is not None:
        return answer(Finding.UNVERIFIED, beyond)
    return replace(answer(mismatch.finding, mismatch.reason), overdue=tuple(sorted(mismatch.overdue)))


def _of_same_operations(
    mine: Sequence[Instr], theirs: Sequence[Instr], nested: Sequence[Comparison]
) -> Tuple[Finding, str, Matched]:
    """Return the finding for identical operations: the worst finding of the ``nested`` code objects."""
    worst = max(nested, key=_severity, default=None)
    finding = Finding.EXACT if worst is None else worst.finding
    reason = "" if worst is None or worst.proved else f"in {worst.original_name}: {worst.reason}"
    return finding, reason, lambda: [(one.offset, other.offset) for one, other in zip(mine, theirs)]


def _severity(comparison: Comparison) -> int:
    return [Finding.EXACT, Finding.EQUIVALENT, Finding.UNVERIFIED, Finding.DIFFERENT].index(comparison.finding)
