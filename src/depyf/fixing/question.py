"""``depyf fix``: run the program twice, make edits for its findings, try each alone and then all together.

The order of the checks is that of their cost: by syntax, whether the finding is gone and none is new, whether the
program does the same, and whether its calls take longer. Edits of statements run once more in eager mode, against the
unchanged program in eager mode: there nothing is compiled, and all results have the same bits.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from typing import Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.fixed import Fixed, FixRow, TriedEdit
from depyf.base.quick_dataclass import dataclass, replace
from depyf.fixing.edits import Edit, NoEdit, Project, applied, require_libcst
from depyf.fixing.problems import Key, Problem, compiled_lines, counted_words, new_problems, problems_of, user_files
from depyf.fixing.remedies import NO_EDIT, edits_for, why_no_edit
from depyf.fixing.sameness import Baseline, baseline_of, slower, why_not_same
from depyf.fixing.trials import CannotTryError, Trial, Trials
from depyf.report.diff.unified import unified
from depyf.report.model.run import Run
from depyf.running.program import UserProgram
from depyf.running.shadowing import command_of

_MORE_SECONDS = 120.0
_STILL_THERE = "the finding is still there"
_IN_NO_FILE = "at an unknown line", "in a library, or in another file outside of the program's folder"


def fix(program: UserProgram, root: str, say: Callable[[str], object] = str) -> Fixed:
    """Return the edits of a program that were kept. ``root`` is its folder, which is the current directory of its runs.
    ``say`` is called with what is done now. Raises ``MissingLibcst`` and ``CannotTryError``."""
    require_libcst()
    with tempfile.TemporaryDirectory(prefix="depyf_fix_") as scratch:
        return _Fixing(program, root, scratch, say).fixed()


@dataclass(frozen=True)
class _Verdict:
    """What the trial of edits gave: ``reason`` is why they are refused, empty if they are kept."""

    reason: str
    after: str = ""
    time: str = ""
    left: FrozenSet[Key] = frozenset()
    """The findings that the program has with the edits."""


class _Fixing:
    def __init__(self, program: UserProgram, root: str, scratch: str, say: Callable[[str], object]) -> None:
        self._program = program
        self._main_file = main_file(program, root)
        self._trials = Trials(root, program, scratch)
        self._say = say
        self._eager: Optional[Trial] = None
        self._verdicts: Dict[Tuple[str, ...], _Verdict] = {}
        self._alone: Dict[Tuple[str, ...], _Verdict] = {}
        """The verdicts of edits that were kept, each tried alone, by the key of the edit."""
        self._removed: Mapping[Tuple[str, ...], Sequence[Problem]] = {}
        """The problems that each kept edit removes, by the key of the edit."""

    def fixed(self) -> Fixed:
        command = tuple(command_of(self._program))
        self._say("running the unchanged program (1 of 2)")
        first = self._trials.run({})
        if first.run is None:
            return Fixed(command, refused=_why_nothing(first))
        problems = problems_of(first.run, self._trials.copy)
        if not problems:
            return Fixed(command, before=counted_words(first.run))
        self._say("running the unchanged program (2 of 2)")
        second = self._trials.run({}, limit=self._limit(first))
        known, why = baseline_of(first, second)
        if known is None:
            return Fixed(command, refused=why, before=counted_words(first.run))
        project = self._project(first.run)
        rows: List[FixRow] = []
        kept: Dict[Tuple[str, ...], Edit] = {}
        removed: Dict[Tuple[str, ...], List[Problem]] = {}
        for problem in problems:
            if any(problem.key not in each.left for each in self._alone.values()):
                # It is gone already.
                rows.append(FixRow(problem.words, problem.place, problem.advice, reason=why_no_edit(problem)))
                continue
            row, edit = self._row(problem, project, known)
            rows.append(row)
            if edit is not None:
                kept[edit.key] = edit
                removed.setdefault(edit.key, []).append(problem)
        self._removed = removed
        return self._together(command, list(zip(problems, rows)), list(kept.values()), project, known)

    def _project(self, run: Run) -> Project:
        copy = self._trials.copy
        files, lines = user_files(run, copy), compiled_lines(run, copy)
        found = frozenset((each.file, each.line, each.cause) for each in problems_of(run, copy))
        return Project(self._trials.original, self._main_file, files, run, lines, found)

    def _row(self, problem: Problem, project: Project, known: Baseline) -> Tuple[FixRow, Optional[Edit]]:
        """Try the edits of one finding until one is kept."""
        row = FixRow(problem.words, problem.place, problem.advice, reason=NO_EDIT)
        if not problem.file:
            return dataclasses.replace(row, reason=f"{NO_EDIT}: it is {_IN_NO_FILE[bool(problem.line)]}"), None
        tried: List[TriedEdit] = []
        reasons: List[str] = []
        for make in edits_for(problem, project):
            try:
                edit = make()
                verdict = self._tried([edit], [problem], project, known)
            except NoEdit as why:
                reasons.append(str(why))
                continue
            before = counted_words(project.run)
            tried.append(TriedEdit(edit.words, before, verdict.after, verdict.time, verdict.reason))
            if not verdict.reason:
                self._alone[edit.key] = verdict
                return FixRow(row.finding, row.place, row.advice, tuple(tried)), edit
        reason = "; ".join(dict.fromkeys(filter(None, reasons))) or ("" if tried else why_no_edit(problem))
        return FixRow(row.finding, row.place, row.advice, tuple(tried), reason), None

    def _tried(self, edits: Sequence[Edit], problems: Sequence[Problem], project: Project, known: Baseline) -> _Verdict:
        """Run the program with edits, and judge. Findings may have edits in common: what refuses the edits for all of
        them is known after one trial, as is which findings are left."""
        key = tuple(part for each in edits for part in (*each.key, ""))
        verdict = self._verdicts.get(key)
        left = verdict is not None and any(each.key in verdict.left for each in problems)
        # An edit that leaves another finding is judged no further: whether it removes this one alone is not known yet.
        if verdict is None or (verdict.reason == _STILL_THERE and not left):
            files = applied([change for each in edits for change in each.changes], project.source)
            self._say(f"trying {' and '.join(each.words for each in edits)}")
            trial = self._trials.run(files, limit=self._limit(known.first))
            verdict = self._judged(trial, files, edits, problems, known)
            if not verdict.reason and any(each.probe for each in edits):
                why = self._differs_in_eager(edits, files, project, known)
                verdict = replace(verdict, reason=why)
            self._verdicts[key] = verdict
        return replace(verdict, reason=_STILL_THERE) if left and not verdict.reason else verdict

    def _judged(
        self,
        trial: Trial,
        files: Mapping[str, bytes],
        edits: Sequence[Edit],
        problems: Sequence[Problem],
        known: Baseline,
    ) -> _Verdict:
        exact_text = any(each.touches_text for each in edits)
        unedited = known.first.run
        if trial.run is None or unedited is None:
            return _Verdict(why_not_same(known, trial, exact_text=exact_text) or "nothing is compiled any more")
        after = counted_words(trial.run)
        left = {each.key for each in problems_of(trial.run, self._trials.copy)}
        remaining = [each for each in problems if each.key in left]
        new = new_problems(unedited, trial.run, self._trials.copy)
        reason = why_not_same(known, trial, exact_text=exact_text)
        if not reason and remaining:
            reason = _STILL_THERE
        if not reason and new:
            reason = new[0]
        asserted = sorted(trial.asserted - known.first.asserted)
        if not reason and asserted:
            reason = f"a graph raises unless {asserted[0]}, which is so in this run and maybe not for other data"
        time = ""
        if not reason:
            reason, time = self._slower(trial, files, known)
        return _Verdict(reason, after, time, frozenset(left))

    def _slower(self, trial: Trial, files: Mapping[str, bytes], known: Baseline) -> Tuple[str, str]:
        """Return why the calls take longer, if two measurements say so (else empty), and the times."""
        reason, time = slower(known, trial)
        if not reason:
            return reason, time
        # The machine may have been busy with something else: both run once more, one after the other.
        self._say("measuring the time again")
        limit = self._limit(known.first)
        before = self._trials.run({}, limit=limit)
        return slower(replace(known, second=before), self._trials.run(files, limit=limit))

    def _differs_in_eager(
        self, edits: Sequence[Edit], files: Mapping[str, bytes], project: Project, known: Baseline
    ) -> str:
        """Return what the edits change where nothing is compiled; empty if they change nothing."""
        limit = self._limit(known.first)
        if self._eager is None:
            self._say("running the unchanged program in eager mode")
            self._eager = self._trials.run({}, eager=True, limit=limit)
        eager = Baseline(self._eager, self._eager, known.unstable, known.masked, known.unseeded)
        for changes in ([change for each in edits for change in each.probe], None):
            self._say("trying the same in eager mode")
            edited = files if changes is None else applied(changes, project.source)
            trial = self._trials.run(edited, eager=True, limit=limit)
            why = why_not_same(eager, trial, exact_text=False, exactly=True)
            if why and changes is not None and "ZeroDivisionError" in trial.err:
                return (
                    "some calls have other tensors than the edit assumes: floating point, and for the sides of a "
                    "branch of the same shape, dtype and device"
                )
            if why:
                return f"in eager mode, {why}"
        return ""

    def _limit(self, first: Trial) -> float:
        return 3 * first.seconds + _MORE_SECONDS

    def _together(
        self,
        command: Tuple[str, ...],
        found_rows: Sequence[Tuple[Problem, FixRow]],
        kept: List[Edit],
        project: Project,
        known: Baseline,
    ) -> Fixed:
        """Try all edits that were kept alone; without the last ones, where they do not go together."""
        rows = [row for _, row in found_rows]
        notes = [f"the numbers of {known.masked} printed lines differ in each run, and are not compared"] * bool(
            known.masked
        )
        notes += [f"{each} differs in each run, and is not compared" for each in known.unstable]
        together: List[Edit] = []
        verdict = _Verdict("")
        todo = [kept, *([each] for each in kept)] if len(kept) > 1 else [kept] if kept else []
        for more in todo:
            more = [each for each in more if each not in together]
            if not more:
                continue
            found = self._alone_or(together, more, project, known)
            if not found.reason:
                together, verdict = [*together, *more], found
            elif len(more) == 1 and together:
                rows = _refused(rows, more[0], f"with the other edits, {found.reason}")
        files = applied([change for each in together for change in each.changes], project.source)
        keys = [problem.key for problem, _ in found_rows]
        return Fixed(
            command,
            tuple(
                dataclasses.replace(row, gone=bool(together) and not row.kept and key not in verdict.left)
                for key, row in zip(keys, rows)
            ),
            self._diff(files, project),
            before=counted_words(project.run),
            after=verdict.after,
            time=verdict.time,
            notes=tuple(notes),
            files=files,
            originals={file: project.source(file) for file in files},
        )

    def _alone_or(self, together: List[Edit], more: List[Edit], project: Project, known: Baseline) -> _Verdict:
        """Return the verdict of edits together, or the known one of a single edit."""
        edits = [*together, *more]
        if len(edits) == 1:
            return self._alone[edits[0].key]
        try:
            problems = [each for edit in edits for each in self._removed[edit.key]]
            return self._tried(edits, problems, project, known)
        except NoEdit as why:
            return _Verdict(str(why))

    def _diff(self, files: Mapping[str, bytes], project: Project) -> str:
        lines: List[str] = []
        for file, after in sorted(files.items()):
            texts = [each.decode("utf-8", "replace") for each in (project.source(file), after)]
            lines += unified(texts[0], texts[1], f"a/{file}", f"b/{file}")
        return "".join(f"{line}\n" for line in lines)


def _refused(rows: Sequence[FixRow], edit: Edit, reason: str) -> List[FixRow]:
    """Return the rows with an edit refused after all."""

    def tried(each: TriedEdit) -> TriedEdit:
        is_it = each.kept and each.edit == edit.words
        return dataclasses.replace(each, reason=reason) if is_it else each

    return [dataclasses.replace(row, tried=tuple(map(tried, row.tried))) for row in rows]


def _why_nothing(trial: Trial) -> str:
    last = [line for line in trial.err.splitlines() if line.strip() and not line.startswith("depyf")]
    if trial.status:
        return f"the program compiled nothing, and ended with exit status {trial.status}: {''.join(last[-1:])}"
    return "the program compiled nothing"


def main_file(program: UserProgram, root: str) -> str:
    """Return the main file of a program, relative to its folder. Raises ``CannotTryError``."""
    base = os.path.realpath(root)
    if program.is_module:
        stem = os.path.join(base, *program.name.split("."))
        names = [f"{stem}.py", os.path.join(stem, "__main__.py")]
    else:
        names = [os.path.join(base, program.name), os.path.join(base, program.name, "__main__.py")]
    path = next((os.path.realpath(each) for each in names if os.path.isfile(each)), "")
    if not path.startswith(base + os.sep) or not path.endswith(".py"):
        raise CannotTryError(
            f"{program.name}: no Python file of this name is in the current directory. depyf fix runs a program in a "
            "copy of the current directory: change into the program's folder, and name it from there"
        )
    return os.path.relpath(path, base)
