"""Print what following each piece of advice changes: rule, program, counts before and after.

    python tools/measure/advice_table.py            # a table in Markdown, and totals
    python tools/measure/advice_table.py enum lora  # rows with one of these words in their names

The rows are those of ``tests/advice``; nothing is printed that was not run.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]


def name_of(rule: object) -> str:
    """Return a rule as it is called in messages: the cause, and the origin of the value."""
    parts = rule if isinstance(rule, tuple) else (rule,)
    return ", ".join(str(getattr(each, "value", each)) for each in parts)


def shown(counts: Mapping[str, int], names: Sequence[str]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in names)


def lines(words: Sequence[str], totals: Counter[str]) -> Iterator[str]:
    """Yield a line for each remedy; ``totals`` counts rows and what they promise."""
    import break_rows
    import guard_rows
    from harness import NOTHING, edited, problems, run

    yield "| rule | program | remedy | before | after |"
    yield "|---|---|---|---|---|"
    for module in (guard_rows, break_rows):
        for row in module.ROWS:
            if words and not any(word in row.name for word in words):
                continue
            reason = row.skip()
            if reason:
                totals["skipped"] += 1
                yield f"| {'; '.join(map(name_of, row.rules))} | {row.name} | skipped: {reason} | | |"
                continue
            totals["rows"] += 1
            totals["wrong"] += bool(problems(row, module.RULES))
            for kind in {each.promise for each in row.remedies}:
                totals[kind] += 1
            before = run(row.program).counts
            for remedy in row.remedies:
                followed = remedy.promise != NOTHING or remedy.edit or remedy.settings
                names = tuple(remedy.after or row.before)
                after = shown(run(edited(row.program, remedy)).counts, names) if followed else "no remedy"
                cells: Any = ("; ".join(map(name_of, row.rules)), row.name, f"{remedy.promise}: {remedy.words}")
                yield f"| {' | '.join(cells)} | {shown(before, names)} | {after} |"


def main() -> None:
    sys.path[:0] = [str(ROOT / "tests" / "advice"), str(ROOT / "src")]
    totals: Counter[str] = Counter()
    for line in lines(sys.argv[1:], totals):
        print(line, flush=True)
    print("\n" + ", ".join(f"{number} {name}" for name, number in totals.items()))


if __name__ == "__main__":
    main()
