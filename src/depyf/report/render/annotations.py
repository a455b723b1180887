"""Findings as annotations of source lines: commands of GitHub Actions, and SARIF for editors and code scanning.

GitHub: https://docs.github.com/actions/reference/workflow-commands-for-github-actions. SARIF 2.1.0:
https://docs.oasis-open.org/sarif/sarif/v2.1.0.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple
from urllib.parse import quote

from depyf.answers.shadowed import DROPPED, STALE, WRONG
from depyf.base.visible import visible
from depyf.report.model.headline import cost_of
from depyf.report.model.places import place_text
from depyf.report.model.run import BREAK, ERROR, FALLBACK, LIMIT, RECOMPILATION, Finding, Run

_LEVELS = {
    **dict.fromkeys((ERROR, STALE, DROPPED, WRONG), "error"),
    **dict.fromkeys((BREAK, RECOMPILATION, FALLBACK, LIMIT), "warning"),
}
"""By kind of finding; the others are facts to know, not to mend."""

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def github_annotations(runs: Sequence[Run], root: str) -> Iterator[str]:
    """Yield a workflow command for each finding; ``root`` is the directory of the checkout, to which paths are
    relative. A finding outside of it has no line that GitHub could show: its text names the line."""
    for run, finding in _findings(runs):
        level = _level(finding).replace("note", "notice")
        path, line = _location(run, finding, root)
        text = _text(finding) if _is_inside(path) else f"{_text(finding)} ({place_text(run, finding.place)})"
        yield github_annotation(level, path, line, finding.title, text)


def github_annotation(level: str, path: Optional[str], line: int, title: str, text: str) -> str:
    """Return one workflow command, with the line only if ``path`` is relative to the checkout."""
    where = f"file={_escaped(path or '', ':,')},line={line}," if _is_inside(path) else ""
    return visible(f"::{level} {where}title={_escaped(title, ':,')}::{_escaped(text)}")


def _is_inside(path: Optional[str]) -> bool:
    return path is not None and not os.path.isabs(path)


def sarif(runs: Sequence[Run], root: str, version: str) -> Dict[str, object]:
    """Return the findings as a SARIF log, for JSON; ``version`` is depyf's, ``root`` as for GitHub."""
    results: List[Dict[str, object]] = []
    for run, finding in _findings(runs):
        path, line = _location(run, finding, root)
        result: Dict[str, object] = {
            "ruleId": finding.kind.lower().replace(" ", "-") or "finding",
            "level": _level(finding),
            "message": {"text": f"{finding.title}. {_text(finding)}".strip()},
            "properties": {"count": finding.count, "compileId": finding.compile_id, "seconds": finding.seconds},
        }
        if path is not None:
            inside = _is_inside(path)
            relative = quote(Path(path).as_posix(), safe="/,")
            file = {"uri": relative, "uriBaseId": "ROOT"} if inside else {"uri": Path(path).as_uri()}
            result["locations"] = [{"physicalLocation": {"artifactLocation": file, "region": {"startLine": line}}}]
        results.append(result)
    rules = [{"id": rule} for rule in dict.fromkeys(str(each["ruleId"]) for each in results)]
    driver = {"name": "depyf", "version": version, "rules": rules}
    base = {"ROOT": {"uri": f"{Path(root).as_uri()}/"}}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "originalUriBaseIds": base, "results": results}],
    }


def _findings(runs: Sequence[Run]) -> Iterator[Tuple[Run, Finding]]:
    """Yield each finding once: ranks have the same."""
    seen = set()
    for run in runs:
        for each in run.findings:
            key = (each.title, each.text, place_text(run, each.place))
            if key not in seen:
                seen.add(key)
                yield run, each


def _level(finding: Finding) -> str:
    return _LEVELS.get(finding.kind, "note")


def _text(finding: Finding) -> str:
    cost = cost_of(finding).lstrip(", ")
    return f"{finding.text} It cost {cost} of compile time." if finding.seconds and cost else finding.text


def _location(run: Run, finding: Finding, root: str) -> Tuple[Optional[str], int]:
    """Return the path of the finding, relative to ``root`` if it is inside, and the line; None if it has no file."""
    if finding.place is None or not 0 <= finding.place[0] < len(run.sources):
        return None, 0
    path, line = run.sources[finding.place[0]].path, finding.place[1]
    return (relative_to(root, path) if os.path.isabs(path) else None), line


def relative_to(root: str, path: str) -> str:
    """Return a path relative to ``root`` if it is inside, else as a whole."""
    whole, base = os.path.realpath(path), os.path.realpath(root)
    return os.path.relpath(whole, base) if Path(base) in Path(whole).parents else whole


def _escaped(text: str, more: str = "") -> str:
    """Return text for a workflow command, in which a line break would begin another command."""
    for letter in "%\r\n" + more:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
