"""What guards of a cache entry require, in a few short lines: those that failed first, then plain values."""

from __future__ import annotations

from typing import Dict, List

from depyf.diagnosis.guard_groups import GROUPS, group_of
from depyf.diagnosis.guard_sources import as_written, in_words
from depyf.report.model.run import Compilation, FailedGuard, Run

MOST_CONDITIONS = 3
_LONGEST = 120


class Conditions:
    """The conditions of the entries of a run; failed guards are indexed once."""

    def __init__(self, run: Run) -> None:
        self._failed: Dict[str, List[FailedGuard]] = {}
        for recompile in run.recompiles:
            for failed in recompile.failed:
                if failed.entry is not None:
                    self._failed.setdefault(failed.entry, []).append(failed)

    def of(self, entry: Compilation) -> List[str]:
        """Return the conditions of an entry that say most, each once; ``and N more`` ends a list that is cut."""
        found = dict.fromkeys(self.failed(entry))
        found.update(dict.fromkeys(_symbol(text) for text in entry.dynamic))
        for guard in entry.guards:
            left, equals, right = guard.text.partition(" == ")
            if not equals or "\n" in right or left.strip() != guard.source:
                continue
            if GROUPS[group_of(guard.kind, guard.source, guard.text)].name == "Values":
                name = as_written(guard.source)
                if f"{name}: {right.strip()}" not in found and name != right.strip():
                    found[f"{name} == {right.strip()}"] = None
        lines = [each[:_LONGEST] for each in found]
        if len(lines) > MOST_CONDITIONS:
            lines[MOST_CONDITIONS - 1 :] = [f"and {len(lines) - MOST_CONDITIONS + 1} more conditions"]
        return lines

    def failed(self, entry: Compilation) -> List[str]:
        """Return the conditions that did not hold for a call, with the values that the entry was compiled for."""
        return [
            f"{each.checked}: {each.before}" if each.checked and each.before is not None else each.checked or each.text
            for each in self._failed.get(entry.compile_id, ())
        ]


def _symbol(text: str) -> str:
    """Return a symbol of a dynamic shape: ``s77: L['x'].size()[0]`` is ``dynamic: size of x in dimension 0 (s77)``, so
    that what is cut in a narrow box is its symbol."""
    name, _, source = text.partition(": ")
    return f"dynamic: {in_words(source)} ({name})" if source else text
