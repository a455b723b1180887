"""A run as one archive for an issue tracker: versions, page, manifest and a script, without names and values."""

from __future__ import annotations

import os
import re
import zipfile
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar, cast

from depyf.file_names import index_file, manifest_file, page_file
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass, replace
from depyf.report.model.cache_lookup import CacheLookup
from depyf.report.model.manifest import to_json
from depyf.report.model.run import Artifact, Run
from depyf.report.read.own_files import MARKDOWN_MARK
from depyf.report.read.reading import Loaded
from depyf.report.render.markdown import index_markdown
from depyf.report.render.page import render_page
from depyf.report.render.scrubbing import (
    HIDDEN,
    everywhere,
    scrubber_for,
    texts_in,
    without_literals,
    without_literals_of_line,
    without_values,
)

_PACKAGES = re_compile(r"^(.*[/\\](?:site|dist)-packages)[/\\]")
_STANDARD = re_compile(r"^(.*[/\\]lib[/\\]python\d\.\d+)[/\\]")

Part = TypeVar("Part")


@dataclass(frozen=True)
class Machine:
    """What names a machine and its user: environment variables, home folder, user name, host name."""

    environment: Mapping[str, str]
    home: str
    user: str
    host: str


class NotScrubbedError(ValueError):
    """Something that is to be replaced is still in a file: nothing is written."""


def bug_report(loaded: Loaded, machine: Machine, script: str, versions: str, *, with_values: bool) -> Dict[str, str]:
    """Return the files of the archive. Raises ``NotScrubbedError``."""
    run = loaded.run
    whole = replace(run, artifacts=tuple(_with_text(loaded, each) for each in run.artifacts))
    scrub = scrubber_for(
        machine.environment,
        machine.home,
        machine.user,
        machine.host,
        list(texts_in(whole)),
        _folders(run, loaded.directory),
    )
    if not with_values:
        whole, script = _without_values(whole), _made_by_torch(script)
    whole = everywhere(scrub, whole)
    files = {
        "README.txt": _about(with_values=with_values, with_script=bool(script)),
        "versions.txt": scrub(versions),
        page_file(): render_page(whole, lambda artifact: artifact.content),
        index_file(): f"{MARKDOWN_MARK}\n\n{index_markdown(whole)}",
        manifest_file(): to_json(whole),
    }
    if script:
        files["script.py"] = scrub(script)
    # Page and index are made of the run and of depyf's own words, which may be a name or a secret of somebody.
    checked: Dict[str, Iterable[str]] = {manifest_file(): texts_in(whole), "versions.txt": [files["versions.txt"]]}
    checked["script.py"] = [files["script.py"]] if script else []
    for name, texts in checked.items():
        if any(map(scrub.left, texts)):
            raise NotScrubbedError(f"{name} still has something that is to be replaced; nothing is written")
    return files


def write_archive(files: Mapping[str, str], path: str) -> None:
    """Write a zip file, without times and names of this machine. Raises ``OSError``."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(f"depyf_bug_report/{name}", (2000, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text.encode("utf-8", "backslashreplace"), zipfile.ZIP_DEFLATED)


def _with_text(loaded: Loaded, artifact: Artifact) -> Artifact:
    return replace(artifact, text=loaded.text_of(artifact), path=None)


def _folders(run: Run, directory: Optional[str]) -> Dict[str, str]:
    """Return the names that the report has for the folders of the program, of installed packages and of the dump."""
    found: Dict[str, str] = {}
    for source in run.sources:
        for pattern, name in ((_PACKAGES, "<packages>"), (_STANDARD, "<python>")):
            match = pattern.match(source.path)
            if match is not None:
                found[match.group(1)] = name
                break
        else:
            if not source.library and os.path.isabs(source.path):
                found[os.path.dirname(source.path)] = "<program>"
    if directory is not None:
        found[os.path.abspath(directory)] = "<dump>"
    return found


def _without_values(run: Run) -> Run:
    """Return the run without values of the program; sizes and other whole numbers, which guards check, stay."""
    sources = tuple(
        each if each.library or each.text is None else replace(each, text=without_literals(each.text))
        for each in run.sources
    )
    return replace(
        run,
        sources=sources,
        compilations=_quoting_nothing(
            [
                replace(each, guards=_quoting_nothing(each.guards, "text"), metrics={}, restarts=_hidden(each.restarts))
                for each in run.compilations
            ],
            "failure",
            "verdict_reason",
        ),
        recompiles=_quoting_nothing(
            [
                replace(each, failed=_quoting_nothing(each.failed, "text", "words", "checked", "before", "now"))
                for each in run.recompiles
            ],
            "advice",
        ),
        command=_command(run.command),
        breaks=_quoting_nothing(
            [replace(each, hints=_hidden(each.hints)) for each in run.breaks], "reason", "explanation", "advice"
        ),
        fallbacks=_quoting_nothing(run.fallbacks, "cause", "reason", "advice"),
        cudagraph_skips=_quoting_nothing(run.cudagraph_skips, "reason", "advice"),
        cache_lookups=tuple(map(_lookup, run.cache_lookups)),
        cache_settings=(),
        cudagraph_rerecords=_quoting_nothing(run.cudagraph_rerecords, "reason", "advice"),
        shapes=_quoting_nothing(run.shapes, "text", "reason"),
        findings=_quoting_nothing(run.findings, "title", "text"),
        notes=_hidden(run.notes),
        failures=_hidden(run.failures),
        artifacts=tuple(_artifact(each) for each in run.artifacts),
    )


def _lookup(each: CacheLookup) -> CacheLookup:
    """Return a look-up without the values in its key, which are those of settings."""
    changed = tuple(replace(part, before="...", now="...") for part in each.changed)
    return replace(each, reason=without_values(each.reason), changed=changed, parts=(), settings=None)


def _hidden(texts: Sequence[str]) -> Tuple[str, ...]:
    return tuple(map(without_values, texts))


def _quoting_nothing(parts: Sequence[Part], *names: str) -> Tuple[Part, ...]:
    """Return parts of a run without the values in their texts of these names; an unknown text stays None."""
    found = []
    for part in parts:
        texts = {name: getattr(part, name) for name in names}
        hidden = {name: without_values(text) for name, text in texts.items() if text is not None}
        found.append(replace(cast(Any, part), **hidden))
    return tuple(found)


def _artifact(artifact: Artifact) -> Artifact:
    """Return the artifact without literals if it has the program's code or values; PyTorch's own code stays."""
    text = artifact.content
    if text is None:
        return artifact
    if artifact.kind in ("transformed", "full_code"):
        return replace(artifact, text=without_literals(text))
    if artifact.kind in ("graph", "kernels", "wrapper", "passes"):
        return replace(artifact, text=_made_by_torch(text))
    return replace(artifact, text=without_values(text))


_QUOTED_LINE = re_compile(r"(, code: )(.*)$", re.MULTILINE)


def _made_by_torch(text: str) -> str:
    """Return code that PyTorch has made, which has to run; the lines of the program that it quotes lose literals."""
    return _QUOTED_LINE.sub(lambda match: match.group(1) + without_literals_of_line(match.group(2)), text)


def _command(command: Sequence[str]) -> Tuple[str, ...]:
    """Return the program and the names of its options; values may be anything."""
    kept: List[str] = list(command[:2])
    for each in command[2:]:
        kept.append(each.partition("=")[0] + (f"={HIDDEN}" if "=" in each else "") if each.startswith("-") else HIDDEN)
    return tuple(kept)


def _about(*, with_values: bool, with_script: bool) -> str:
    left = [
        "home folders, user names and the host name, wherever they were (~, <user>, <host>)",
        "folders of the program, of packages and of the dump (<program>, <packages>, <python>, <dump>)",
        "values of environment variables that look like secrets (<NAME>)",
    ]
    if not with_values:
        left += [
            "texts in quotes and comments of the program's own source, and of code made from it",
            "texts in quotes and fractional numbers in guards, reasons and notes",
            "values of options of the command line, PyTorch's metrics of compilations",
        ]
    kept = [
        "names of functions, variables, files and options; whole numbers (sizes)",
        "the code of kernels, wrappers, passes and graphs (script.py, too), with the texts in it",
        "common words that are user names, too (root, user, admin, ...) are replaced in paths only",
    ]
    lines = ["A bug report made by depyf: open index.html; manifest.json is read by `depyf report`.", ""]
    lines += ["Left out:", *(f"- {each}" for each in left), "", "Kept, look whether you want to publish it:"]
    lines += [f"- {each}" for each in kept]
    if not with_script:
        lines += [
            "",
            "No script: it takes PyTorch and one graph; where there are several, name one: depyf bug-report DIR GRAPH.",
        ]
    return "\n".join(lines) + "\n"
