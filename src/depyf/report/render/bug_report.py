"""A run as one archive for an issue tracker: versions, page, manifest and a script, without names and values."""

from __future__ import annotations

import os
import zipfile
from typing import Dict, Iterable, Mapping, Optional

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass, replace
from depyf.report.model.manifest import to_json
from depyf.report.model.run import Run
from depyf.report.read.own_files import MARKDOWN_MARK
from depyf.report.read.reading import Loaded
from depyf.report.render.markdown import index_markdown
from depyf.report.render.page import render_page
from depyf.report.render.run_without_values import BugReportHiding, made_by_torch, run_without_values
from depyf.report.render.scrubbing import everywhere, scrubber_for, texts_in
from depyf.torch_trace.file_names import index_file, manifest_file, page_file

_PACKAGES = regex(r"^(.*[/\\](?:site|dist)-packages)[/\\]")
_STANDARD = regex(r"^(.*[/\\]lib[/\\]python\d\.\d+)[/\\]")


@dataclass(frozen=True)
class MachineNames:
    """What names a machine and its user: environment variables, home folder, user name, host name."""

    environment: Mapping[str, str]
    home: str
    user: str
    host: str


class NotScrubbedError(ValueError):
    """Something that is to be replaced is still in a file: nothing is written."""


def bug_report(
    loaded: Loaded, machine: MachineNames, script: str, versions: str, *, with_values: bool
) -> Dict[str, str]:
    """Return the files of the archive. Raises ``NotScrubbedError``."""
    run = loaded.run
    whole = replace(run, artifacts=tuple(replace(each, text=loaded.text_of(each), path=None) for each in run.artifacts))
    scrub = scrubber_for(
        machine.environment,
        machine.home,
        machine.user,
        machine.host,
        list(texts_in(whole)),
        _folders(run, loaded.directory),
    )
    if not with_values:
        whole, script = run_without_values(whole, BugReportHiding()), made_by_torch(script)
    # The page, the index and the manifest are made of the scrubbed run: nothing unscrubbed gets into them.
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


def _about(*, with_values: bool, with_script: bool) -> str:
    # What is left out, what is kept: the reader decides whether to publish the archive.
    left = [
        "home folders, user names and the host name, wherever they were (~, <user>, <host>)",
        "folders of the program, of packages and of the dump (<program>, <packages>, <python>, <dump>)",
        "values of environment variables that look like secrets (<NAME>)",
    ]
    if not with_values:
        left += [
            "texts in quotes and comments of the program's own source, and of code made from it",
            "texts in quotes and fractional numbers in reasons and notes, messages of exceptions",
            "all values that guards compare, and keys of dicts (<str 1>: equal values have the same number)",
            "values of options of the command line, PyTorch's metrics of compilations",
        ]
    kept = [
        "names of functions, variables, files and options; sizes, and whole numbers in code and messages",
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
