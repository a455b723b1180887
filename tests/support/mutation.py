"""Decompiled sources, changed in one place, compiled as the pipeline does, and shown to the verifier."""

from __future__ import annotations

import ast
import difflib
import enum
import random
import warnings
from dataclasses import dataclass
from types import CodeType
from typing import Callable, Dict, Hashable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar

from mutators import MUTATORS, mutated, sites
from mutators.settled import unsettled
from same_bytecode import same_bytecode

from depyf.decompiler import Decompilation, DecompilationError, decompile_code
from depyf.source.compiling import compile_like
from depyf.source.source_text import SourceText
from depyf.source.text import to_source
from depyf.verify import Finding, compare

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

    def __init__(self, label: str, code: CodeType, answer: Decompilation, unchanged: CodeType) -> None:
        self.label, self._code, self._answer, self._unchanged = label, code, answer, unchanged

    @classmethod
    def prepare(cls, label: str, code: CodeType) -> Optional[Subject]:
        """``None`` where there is no proved decompilation."""
        answer = _proved(code)
        if answer is None:
            return None
        tree = unsettled(answer.tree)
        if tree is not None:
            try:
                code = _compiled(_text_of(tree, answer), code)
            except DecompilationError:
                return None
            answer = _proved(code)
            if answer is None:
                return None
        return cls(label, code, answer, answer.compile_like())

    def sites(self) -> Dict[str, int]:
        """How many changes each mutator can make."""
        found = {name: len(sites(self._answer.tree, mutator)) for name, mutator in MUTATORS.items()}
        return {name: count for name, count in found.items() if count}

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


def plan(counts: Mapping[Key, Mapping[str, int]], total: int, seed: int) -> Dict[Key, List[Wanted]]:
    """Which of the changes that subjects have (``counts``) make up ``total`` mutants: as many of each mutator as of
    any other, as far as there are so many. Always the same for the same arguments."""
    chooser = random.Random(seed)
    by_mutator: Dict[str, List[Tuple[Key, int]]] = {name: [] for name in MUTATORS}
    for key, found in counts.items():
        for name, count in found.items():
            by_mutator[name].extend((key, number) for number in range(count))
    wanted: Dict[Key, List[Wanted]] = {key: [] for key in counts}
    rarest_first = sorted(by_mutator, key=lambda name: (len(by_mutator[name]), name))
    for at, name in enumerate(rarest_first):
        share = -(-total // (len(rarest_first) - at))
        chosen = chooser.sample(by_mutator[name], min(share, len(by_mutator[name])))
        total -= len(chosen)
        for key, number in sorted(chosen, key=lambda pair: pair[1]):
            wanted[key].append(Wanted(name, number))
    return {key: found for key, found in wanted.items() if found}


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
    return SourceText(made.text, made.tree, constants, {**answer.text.names, **made.names})


def _difference(original: str, mutant: str) -> Tuple[str, ...]:
    lines: Sequence[str] = original.splitlines()
    return tuple(difflib.unified_diff(lines, mutant.splitlines(), "original", "mutant", "", "", 3, ""))
