"""Change decompiled sources in one place, compile them as the pipeline does, and give them to the verifier."""

from __future__ import annotations

import ast
import difflib
import enum
import random
import warnings
from dataclasses import dataclass
from types import CodeType
from typing import (
    Callable,
    Dict,
    FrozenSet,
    Hashable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    TypeVar,
)

from mutators import MUTATORS, mutated, numbers_at
from mutators.settled import unsettled
from same_bytecode import same_bytecode

from depyf.decompiler import Decompilation, DecompilationError, decompile_code
from depyf.decompiler.bytecode.lines import line_of_offset
from depyf.decompiler.source.compiling.to_code import compile_like
from depyf.decompiler.source.printing.text import to_source
from depyf.decompiler.source.source_text import SourceText
from depyf.decompiler.verify import Finding, compare

Compiled = TypeVar("Compiled")
Key = TypeVar("Key", bound=Hashable)


class Fate(enum.Enum):
    """What became of a mutant."""

    NO_PROGRAM = "no program"
    """The compiler refuses it."""
    SAME_BYTECODE = "same bytecode"
    """The change was compiled away: it is no mutant."""
    REFUSED = "refused"
    """It can't stand in for the original (other free variables), and there is no comparison to make."""
    DIFFERENT = "different"
    UNVERIFIED = "unverified"
    SURVIVED = "survived"
    """The verifier calls it the same."""

    @property
    def is_mutant(self) -> bool:
        return self not in (Fate.NO_PROGRAM, Fate.SAME_BYTECODE)


_FATES = {
    Finding.EXACT: Fate.SURVIVED,
    Finding.EQUIVALENT: Fate.SURVIVED,
    Finding.UNVERIFIED: Fate.UNVERIFIED,
    Finding.DIFFERENT: Fate.DIFFERENT,
}


@dataclass(frozen=True)
class Mutant:
    """One mutant of the code object ``label``: what was done to it, and what the verifier says. ``difference`` is the
    change as a unified diff, for survivors."""

    label: str
    mutator: str
    number: int
    fate: Fate
    reason: str = ""
    difference: Tuple[str, ...] = ()


class Subject:
    """A code object whose decompilation is proved: only that has mutants worth asking about.

    ``prepare`` makes one. Where a variable only ever holds one constant, so that the verifier knows what tests of it
    decide, the constant is hidden in a call first (``mutators.settled``), and it is that code that counts.
    """

    def __init__(
        self, label: str, code: CodeType, answer: Decompilation, unchanged: CodeType, lines: Optional[Set[int]]
    ) -> None:
        self.label, self._code, self._answer, self._unchanged = label, code, answer, unchanged
        self._lines = lines

    @classmethod
    def prepare(cls, label: str, code: CodeType, reached: Optional[FrozenSet[int]] = None) -> Optional[Subject]:
        """Return the subject, or ``None`` where there is no proved decompilation.

        With ``reached``, the lines of the original's file that have run, only what was made of these is changed. Code
        with constants that would have to be hidden is left out then: what runs is another code object.
        """
        answer = _proved(code)
        if answer is None:
            return None
        tree = unsettled(answer.tree)
        if tree is not None and reached is not None:
            return None
        if tree is not None:
            try:
                code = _compiled(_text_of(tree, answer), code)
            except DecompilationError:
                return None
            answer = _proved(code)
            if answer is None:
                return None
        lines = None if reached is None else _lines_of(answer, code, reached)
        return cls(label, code, answer, answer.compile_like(), lines)

    def sites(self) -> Dict[str, Sequence[int]]:
        """Return the numbers of the changes that each mutator can make."""
        found = {name: numbers_at(self._answer.tree, mutator, self._lines) for name, mutator in MUTATORS.items()}
        return {name: numbers for name, numbers in found.items() if numbers}

    def mutant(self, mutator: str, number: int) -> Mutant:
        tree = mutated(self._answer.tree, MUTATORS[mutator], number)
        try:
            source = _text_of(tree, self._answer)
        except DecompilationError as error:
            return Mutant(self.label, mutator, number, Fate.NO_PROGRAM, str(error))
        candidate: Optional[CodeType]
        try:
            candidate = _compiled(source, self._code)
        except DecompilationError as error:
            if error.__cause__ is not None:
                return Mutant(self.label, mutator, number, Fate.NO_PROGRAM, str(error))
            candidate = _quietly(lambda: _on_its_own(source, self._code))
            if candidate is None:
                return Mutant(self.label, mutator, number, Fate.REFUSED, str(error))
        if same_bytecode(self._unchanged, candidate):
            return Mutant(self.label, mutator, number, Fate.SAME_BYTECODE)
        comparison = compare(self._code, candidate)
        fate = _FATES[comparison.finding]
        difference = _difference(self._answer.source, source.text) if fate is Fate.SURVIVED else ()
        return Mutant(self.label, mutator, number, fate, comparison.reason, difference)


class Wanted(NamedTuple):
    """A mutant to make."""

    mutator: str
    number: int


def plan(found: Mapping[Key, Mapping[str, Sequence[int]]], total: int, seed: int) -> Dict[Key, List[Wanted]]:
    """Choose ``total`` of the changes that subjects have (the numbers ``found``): as many of each mutator as of any
    other, as far as there are so many. The choice is always the same for the same arguments."""
    chooser = random.Random(seed)
    by_mutator: Dict[str, List[Tuple[Key, int]]] = {name: [] for name in MUTATORS}
    for key, by_name in found.items():
        for name, numbers in by_name.items():
            by_mutator[name].extend((key, number) for number in numbers)
    wanted: Dict[Key, List[Wanted]] = {key: [] for key in found}
    rarest_first = sorted(by_mutator, key=lambda name: (len(by_mutator[name]), name))
    for at, name in enumerate(rarest_first):
        share = -(-total // (len(rarest_first) - at))
        chosen = chooser.sample(by_mutator[name], min(share, len(by_mutator[name])))
        total -= len(chosen)
        for key, number in sorted(chosen, key=lambda pair: pair[1]):
            wanted[key].append(Wanted(name, number))
    return {key: some for key, some in wanted.items() if some}


def _lines_of(answer: Decompilation, code: CodeType, reached: FrozenSet[int]) -> Set[int]:
    """Return the lines of the decompiled source that hold an operation of the original on a line that was reached."""
    original = line_of_offset(code)
    return {
        line
        for line, offsets in answer.line_map.offsets.items()
        if any(original.get(offset) in reached for offset in offsets)
    }


def _proved(code: CodeType) -> Optional[Decompilation]:
    try:
        answer = decompile_code(code)
    except DecompilationError:
        return None
    return answer if answer.verdict.proved else None


def _compiled(source: SourceText, code: CodeType) -> CodeType:
    return _quietly(lambda: compile_like(source, code, "<mutant>"))


def _quietly(compiled: Callable[[], Compiled]) -> Compiled:
    """Mutants often look like mistakes to the compiler: it warns of ``"a"(b)``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compiled()


def _on_its_own(source: SourceText, code: CodeType) -> Optional[CodeType]:
    """The code object of a function that is called in another way than the original, if it needs nothing around it."""
    if code.co_freevars or source.constants or source.names:
        return None
    module = compile(source.tree, "<mutant>", "exec", dont_inherit=True)
    found = [constant for constant in module.co_consts if isinstance(constant, CodeType)]
    return found[0] if len(found) == 1 and not found[0].co_freevars else None


def _text_of(tree: ast.Module, answer: Decompilation) -> SourceText:
    """``tree`` as the text that is compiled, with what the text of ``answer`` alone does not hold."""
    made = to_source(tree)
    constants = {**answer.text.constants, **made.constants}
    return SourceText(made.text, constants, {**answer.text.names, **made.names})


def _difference(original: str, mutant: str) -> Tuple[str, ...]:
    lines: Sequence[str] = original.splitlines()
    return tuple(difflib.unified_diff(lines, mutant.splitlines(), "original", "mutant", "", "", 3, ""))
