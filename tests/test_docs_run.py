"""The commands and programs of the documentation run, and print what the pages show."""

from __future__ import annotations

from pathlib import Path
from typing import Dict

import pytest
from doc_blocks import blocks_of, failures, fits, unmarked

ROOT = Path(__file__).resolve().parents[1]

FILES: Dict[str, Dict[str, Path]] = {
    "README.md": {"examples": ROOT / "examples"},
    "docs/coming-from.md": {"tests": ROOT / "tests"},
}
"""What a page finds in the folder in which it runs."""

WITHOUT_TORCH = ("docs/decompile.md", "docs/coming-from.md", "docs/verify.md")
"""Pages whose blocks need no PyTorch."""
QUICK = ("README.md", *WITHOUT_TORCH)
"""The others are `slow`."""

ELSEWHERE: Dict[str, str] = {
    "docs/architecture.md": "pictures, and commands for those who work on depyf",
    "docs/decompiler.md": "tests/decompiler/test_explained.py",
    "docs/editors.md": "tests/dynamo/test_editors.py, test_notebooks.py",
    "docs/expect.md": "tests/dynamo/questions/test_expect.py, tests/cli/test_pytest_plugin.py",
    "docs/follow.md": "tests/cli/test_follow.py",
    "docs/manifest.md": "tests/report/model, tests/dynamo/dump/test_manifest.py",
    "docs/report.md": "tests/cli/test_run.py, test_report.py, test_diff.py",
    "docs/shown-of-itself.md": "tests/dynamo/test_shown_of_itself.py",
    "docs/trainers.md": "tests/integrations",
}
"""Pages whose blocks are not run as they stand, and what tests the same. Only older pages: this may get shorter."""

PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if blocks_of(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[
                *([] if name in WITHOUT_TORCH else [pytest.mark.torch]),
                *([] if name in QUICK else [pytest.mark.slow]),
            ],
        )
        for name in PAGES
        if name not in ELSEWHERE
    ],
)
def test_what_a_page_shows_is_what_comes_out(name: str, tmp_path: Path) -> None:
    if name not in WITHOUT_TORCH:
        pytest.importorskip("torch")
    page = (ROOT / name).read_text(encoding="utf-8")
    assert unmarked(page) == []
    found = failures(page, tmp_path, FILES.get(name))
    assert not found, "\n".join(found)


def test_pages_that_are_not_run_are_there_and_have_blocks() -> None:
    assert [name for name in ELSEWHERE if name not in PAGES] == []
    assert len(ELSEWHERE) <= 9


PAGE = """
```console
$ echo one; echo two in 1.25 s
one
...
```

<!-- file: there.py -->
```python
print("a file")
```

```console
$ python there.py
a file
```

```python
print("first")
```

<!-- prints -->
```text
first
```

<!-- exit status: 3 -->
```console
$ exit 3
```

<!-- in: *.py -->
```python
print("a file")
```
"""


def test_a_page_that_is_right_has_no_failures(tmp_path: Path) -> None:
    assert failures(PAGE, tmp_path) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("one\n...", "three\n..."),
        ("a file\n```\n\n```python", "another\n```\n\n```python"),
        ('print("first")', 'print("second")'),
        ('print("first")', "raise ValueError"),
        ("exit status: 3", "exit status: 2"),
        ('*.py -->\n```python\nprint("a file")', '*.py -->\n```python\nprint("no file")'),
    ],
)
def test_what_a_page_says_wrongly_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    assert right in PAGE
    assert failures(PAGE.replace(right, wrong), tmp_path) != []


def test_times_and_what_is_left_out_may_differ() -> None:
    assert fits("step 0: 1.20 s\n...\nend", "step 0: 31.02 s\nmore\nand more\nend\n")
    assert fits("a ... c", "a b c")
    assert not fits("step 0: 1.20 s", "step 1: 1.20 s")
    assert not fits("step 0", "step 0\nstep 1")


def test_shell_blocks_and_marks_without_a_reason_are_found() -> None:
    assert unmarked("```bash\nrm -r x\n```\n") == [2]
    assert unmarked("<!-- not run: -->\n```console\n$ x\n```\n") == [3]
    assert unmarked("<!-- not run: needs a GPU -->\n```console\n$ x\n```\n") == []
