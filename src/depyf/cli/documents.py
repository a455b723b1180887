"""``depyf docs`` and ``depyf example``: the documentation and the example programs that the package carries.

The folders ``docs`` and ``examples`` are at the top of the repository, and in ``depyf/share`` of an installed package
(``pyproject.toml``). ``rich``, if it is installed, lays a page out for the terminal. The parser of Markdown that comes
with ``rich`` makes the HTML of ``--web``.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Dict, Iterator

import depyf
from depyf.base.late_regex import regex
from depyf.base.messages import error_line
from depyf.base.regular_files import write_whole
from depyf.cli.parsing import did_you_mean

FIRST_PAGE = "index"
_NOT_EXAMPLES = ("show_dump",)  # what `make demo` prints a dump with
_LINK = regex(r'(?<=<a href=")(?:\.\./|docs/)*([\w.-]+)\.md')
_NOT_TEXT = regex(r"^!\[[^\]]*\]\([^)]*\)\n+|^<!--.*?-->\n?", re.MULTILINE)
_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 sans-serif;max-width:52rem;margin:2rem auto}"
    "pre{overflow-x:auto;padding:.6rem;border:1px solid #8886}code{font-size:.9em}"
    "img{max-width:100%}table{border-collapse:collapse}"
    "td,th{border:1px solid #8886;padding:.25rem .5rem;vertical-align:top}"
)


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``docs`` and ``example`` to the subparsers of the command line."""
    docs = commands.add_parser(
        "docs",
        help="show a page of the documentation, in the terminal or in a browser",
        description="Prints PAGE of the documentation of this version, or the names of all pages. With --web all pages "
        "are written as HTML into a temporary folder, and PAGE is opened in a browser; nothing is loaded from "
        "elsewhere. Exit status 2 for a page that there is not.",
    )
    docs.set_defaults(run=_show_page)
    docs.add_argument("page", metavar="PAGE", nargs="?", help="tutorial, calls, compare, ... (all names: no PAGE)")
    docs.add_argument("--web", action="store_true", help="open the pages in a browser")
    example = commands.add_parser(
        "example",
        help="write an example program into this folder, to try depyf on",
        description="Writes the example program NAME.py, or prints the names of all examples. Exit status 2 for an "
        "example that there is not, and when the file exists already.",
    )
    example.set_defaults(run=_write_example)
    example.add_argument("name", metavar="NAME", nargs="?", help="branch, training, ... (all names: no NAME)")
    example.add_argument("-o", "--output", metavar="FILE", help="the file to write (NAME.py)")


def _folder(name: str) -> Path:
    """Return the folder ``name`` of the installed package, or the folder ``name`` of the imported checkout."""
    package = Path(depyf.__file__).parent
    found = next((each for each in (package / "share" / name, package.parents[1] / name) if each.is_dir()), None)
    if found is None:
        raise FileNotFoundError(f"this installation has no {name}: it was made without pip, or files are missing")
    return found


def _titles(files: Dict[str, str]) -> Iterator[str]:
    width = max(map(len, files))
    return (f"  {name:<{width}}  {title}" for name, title in files.items())


def _pages() -> Dict[str, str]:
    """Return the text of each page by its name, the first page first."""
    files = sorted(_folder("docs").glob("*.md"), key=lambda path: (path.stem != FIRST_PAGE, path.stem))
    return {path.stem: path.read_text(encoding="utf-8") for path in files}


def _unknown(kind: str, name: str, known: Dict[str, str]) -> int:
    error_line(f"depyf: there is no {kind} {name!r}{did_you_mean(name, known)}")
    return 2


def _show_page(options: argparse.Namespace) -> int:
    pages = _pages()
    page = None if options.page is None else os.path.basename(options.page).rpartition(".md")[0] or options.page
    if page is not None and page not in pages:
        return _unknown("page", page, pages)
    if options.web:
        return _open(pages, page or FIRST_PAGE)
    if page is None:
        print("Pages (depyf docs PAGE prints one, depyf docs --web opens all in a browser):")
        headings = (re.search(r"^# +(.+)$", text, re.MULTILINE) for text in pages.values())
        for line in _titles(dict(zip(pages, (found.group(1) if found else "" for found in headings)))):
            print(line)
        return 0
    text = _NOT_TEXT.sub("", pages[page])
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.markdown import Markdown
        except ImportError:  # Markdown reads well as it is
            pass
        else:
            console = Console()
            with console.pager(styles=True):
                console.print(Markdown(text))
            return 0
    print(text)
    return 0


def _open(pages: Dict[str, str], page: str) -> int:
    """Write all pages as HTML, and open one; where there is no browser, name its file."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        error_line("depyf: depyf docs --web needs rich: pip install rich")
        return 2
    folder = Path(tempfile.mkdtemp(prefix="depyf_docs_"))
    pictures = _folder("docs").as_uri()
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")

    def linked(match: re.Match[str]) -> str:
        target = match.group(1)
        known = target if target in pages else target.lower()  # CHANGELOG.md and SECURITY.md are pages, too
        return f"{known}.html" if known in pages else match.group()

    names = " · ".join(f'<a href="{name}.html">{name}</a>' for name in pages)
    for name, text in pages.items():
        body = _LINK.sub(linked, parser.render(text)).replace('src="screenshots/', f'src="{pictures}/screenshots/')
        title = html.escape(name)
        (folder / f"{name}.html").write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>depyf: {title}</title>'
            f"<style>{_STYLE}</style><nav>{names}</nav><hr><main>{body}</main></html>\n",
            encoding="utf-8",
        )
    path = folder / f"{page}.html"
    print(path)
    if not webbrowser.open(path.as_uri()):
        error_line("depyf: no browser could be started; open the file above")
    return 0


def _write_example(options: argparse.Namespace) -> int:
    files = {
        path.stem: path.read_text(encoding="utf-8")
        for path in sorted(_folder("examples").glob("*.py"))
        if path.stem not in _NOT_EXAMPLES
    }
    if options.name is None:
        print("Examples (depyf example NAME writes one):")
        for line in _titles({name: text.partition("\n")[0].strip('"') for name, text in files.items()}):
            print(line)
        return 0
    name = options.name.rpartition(".py")[0] or options.name
    if name not in files:
        return _unknown("example", name, files)
    path: str = options.output or f"{name}.py"
    if os.path.lexists(path):
        error_line(f"depyf: {path} exists already; name another file with -o")
        return 2
    write_whole(path, [files[name]])
    print(f"{path}: run it with    depyf run {path}")
    return 0
