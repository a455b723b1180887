"""The page, the index and the manifest of runs that were read, as files."""

from __future__ import annotations

import os
from typing import Dict, Iterable, List, Optional, Sequence
from urllib.parse import quote

from depyf.base.quick_dataclass import replace
from depyf.base.regular_files import write_whole
from depyf.report.diff.comparison import RunComparison
from depyf.report.diff.comparison_output import as_differences, tables_of
from depyf.report.diff.rank_groups import Difference
from depyf.report.diff.rank_summary import summary_json
from depyf.report.model.manifest import json_parts, without_texts
from depyf.report.model.run import Run
from depyf.report.read.own_files import MARKDOWN_MARK, check
from depyf.report.read.ranks import Ranks
from depyf.report.read.reading import Loaded
from depyf.report.render.flow_file import flow_markdown, flow_svg
from depyf.report.render.markdown import index_markdown
from depyf.report.render.markdown_text import fenced, inline
from depyf.report.render.page import page_parts
from depyf.report.render.perfetto import perfetto_trace
from depyf.torch_trace import file_names


def write_report(ranks: Ranks, output: Optional[str], trace: Optional[str] = None, flow: Optional[str] = None) -> str:
    """Write the page of these runs, and beside it ``index.md`` and the manifests; return the path of the page.

    ``output`` is a file with the ending ``.html``, or a directory. Without one the page goes into the directory of the
    first run's dump, and for logs into the current one. ``trace`` is a file (``.json``) for the phases as a trace of
    Perfetto's, ``flow`` one for what calls go through (``.md``: Mermaid charts; ``.svg``: a drawing). Raises
    ``OSError``, before anything is written when a file that depyf has not written would be replaced.
    """
    runs = ranks.runs
    page = output or runs[0].directory or "."
    if not page.endswith((".html", ".htm")):
        page = os.path.join(page, file_names.page_file())
    directory = os.path.dirname(page) or "."
    index = file_names.index_file(os.path.splitext(page)[0])
    # A manifest for each run, unless its own is beside the page, or in the folder of its process.
    manifests = {}
    for each in runs:
        beside = each.directory is not None and os.path.realpath(each.directory) == os.path.realpath(directory)
        if not (beside and each.has_manifest) and not _is_in_process_folder(each, directory):
            mark = f".{each.name.replace(' ', '_')}" if len(runs) > 1 else ""
            run = without_texts(each.run) if beside else _with_texts(each)
            manifests[os.path.join(directory, file_names.manifest_file(mark))] = run
    # All names are checked before the first file is written.
    check([page, index, *manifests, *filter(None, (trace, flow))])
    os.makedirs(directory, exist_ok=True)
    # Of many ranks the first difference is how many compiled the same.
    head = ranks.in_numbers()
    apart = [*([head] if head is not None else []), *ranks.differences()]
    _write(page, page_parts([(each.run, each.text_of) for each in runs], apart, [each.name for each in runs]))
    _write(index, [_index(runs, apart)])
    for path, run in manifests.items():
        _write(path, json_parts(run))
    if trace:
        _write(trace, [perfetto_trace([(each.name, each.run) for each in runs])])
    if flow:
        named = [(each.name, each.run) for each in runs]
        address = quote(os.path.relpath(page, os.path.dirname(flow) or "."))
        _write(flow, [flow_svg(named, address) if flow.endswith(".svg") else flow_markdown(named)])
    return page


def write_summaries(ranks: Ranks, directory: str) -> List[str]:
    """Write the summary of each rank, and nothing else; return the paths. Raises ``OSError``, as ``write_report``.

    Ranks of one number, of several launches, get files of their own.
    """
    seen: Dict[str, int] = {}
    paths = []
    for each in ranks.summaries:
        mark = "" if each.rank is None else f".{file_names.rank_mark(each.rank)}"
        seen[mark] = number = seen.get(mark, 0) + 1
        name = file_names.summary_file(mark if number == 1 else f"{mark}.{number}")
        paths.append(os.path.join(directory, name))
    check(paths)
    os.makedirs(directory, exist_ok=True)
    for path, summary in zip(paths, ranks.summaries):
        _write(path, [summary_json(summary)])
    return paths


def _is_in_process_folder(loaded: Loaded, directory: str) -> bool:
    """Return whether the run is in the folder of its process, in this directory: it is read from there."""
    if loaded.directory is None:
        return False
    parent, name = os.path.split(os.path.realpath(loaded.directory))
    return parent == os.path.realpath(directory) and file_names.is_process_folder(name)


def _index(runs: Sequence[Loaded], apart: Sequence[Difference]) -> str:
    """Return ``index.md``: where the ranks differ, and a section for each."""
    lines = [MARKDOWN_MARK, ""]
    if len(runs) > 1 or apart:
        lines += ["# Where the ranks differ", ""]
        for each in apart:
            lines += [f"## {inline(each['title'])}", "", inline(each["text"]), ""]
            for name, text in each["ranks"].items():
                lines += [f"{inline(name)}:", "", *fenced(text), ""]
        if not apart:
            lines += ["They compiled the same, in the same order.", ""]
    for loaded in runs:
        lines += [f"# {inline(loaded.name)}", ""] if len(runs) > 1 else []
        lines += [index_markdown(loaded.run)]
    return "\n".join(lines)


def _with_texts(loaded: Loaded) -> Run:
    """Return the run with its texts in the manifest, which is not beside its files."""
    if loaded.directory is None:
        return loaded.run
    artifacts = (replace(each, text=loaded.text_of(each), path=None) for each in loaded.run.artifacts)
    return replace(loaded.run, artifacts=tuple(artifacts))


def write_comparison(before: Loaded, after: Loaded, comparison: RunComparison, path: str) -> None:
    """Write the page that shows two runs and what changed from one to the other. Raises ``OSError``."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    runs = [(each.run, each.text_of) for each in (before, after)]
    _write(path, page_parts(runs, as_differences(comparison), [before.name, after.name], tables_of(comparison)))


def _write(path: str, parts: Iterable[str]) -> None:
    write_whole(os.path.realpath(path), parts)  # a link stays one
