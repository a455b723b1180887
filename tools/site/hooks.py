"""Hooks of MkDocs for the documentation site (``make docs``): pages that are generated, and links of the repository.

The pages of ``docs/`` are read on a forge, too, so their links are those of the repository. Here links to
``README.md``, ``CHANGELOG.md``, ``CONTRIBUTING.md`` and ``SECURITY.md`` become links to pages of the site, and those to
other files links to the repository, or plain text where ``repo_url`` is not set. A line ``<!-- generated: ... -->`` is
replaced by what ``tools/site/generated.py`` makes.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any, Dict

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
GALLERY = Path(os.environ.get("GALLERY", ROOT / "build" / "gallery"))  # a test sets it
sys.path.insert(0, str(Path(__file__).parent))

import generated  # noqa: E402

OF_THE_ROOT: Dict[str, str] = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the repository's root and those of the gallery."""
    for name, page in OF_THE_ROOT.items():
        if page != "index.md":
            files.append(File.generated(config, page, content=relinked((ROOT / name).read_text(), "", config)))
    for page in sorted(GALLERY.rglob("*.html")):
        name = page.relative_to(GALLERY.parent).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(page)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Return the text with generated parts, and with the site's links."""
    if page.file.generated_by is None:
        markdown = relinked(markdown, "docs", config)
    return generated.filled(markdown, GALLERY)


def relinked(text: str, folder: str, config: Any) -> str:
    """Return ``text``, a page in ``folder`` of the repository, with links to pages of the site."""

    def replaced(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        path, hash_mark, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        if path in OF_THE_ROOT:
            return f"{picture}[{words}]({OF_THE_ROOT[path]}{hash_mark}{anchor})"
        if path.startswith("docs/"):
            return f"{picture}[{words}]({path[len('docs/') :]}{hash_mark}{anchor})"
        if config.repo_url:
            return f"{picture}[{words}]({config.repo_url}/blob/main/{path}{hash_mark}{anchor})"
        return words

    return LINK.sub(replaced, text)
