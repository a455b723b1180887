"""The names of a dump's files are written and parsed in one module, and every written name is parsed."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Iterator, Optional, Tuple, get_args

import pytest

from depyf.torch_trace import file_names

SOURCE = Path(__file__).resolve().parents[2] / "src" / "depyf"

CASES = [
    (file_names.graph_file("__compiled_fn_1", "Forward_graph", 0), "graph", "Forward_graph", "0"),
    (file_names.graph_file("__compiled_fn_-1", "before.split-2", 3), "graph", "before.split-2", "3"),
    (file_names.kernel_file("__compiled_fn_1", 12), "kernels", None, "12"),
    (file_names.wrapper_file("__compiled_fn_1", "runtime_wrapper", 0), "wrapper", "runtime_wrapper", "0"),
    (file_names.transformed_file(4, "f_for_2"), "transformed", None, "4"),
    (file_names.full_code_file("f_1", 7), "full_code", None, "7"),
    (file_names.passes_file("__compiled_fn_1", 2), "passes", None, "2"),
    *((file_names.note_file(note, 0), "note", note, "0") for note in get_args(file_names.Note)),
]


@pytest.mark.parametrize("mark", ["", file_names.rank_mark(2), file_names.process_mark(11)])
@pytest.mark.parametrize(("name", "kind", "stage", "number"), CASES)
def test_what_is_written_is_parsed(name: str, kind: str, stage: Optional[str], number: str, mark: str) -> None:
    name = file_names.marked(name, mark) if mark else name
    found = next(iter(file_names.kinds_of(name).values()))
    assert found.kind == kind
    assert found.parts.get("stage") == stage
    assert found.parts["number"] == number
    assert (found.parts["mark"] or "") == mark


def test_names_are_those_of_the_first_depyf() -> None:
    """People and other tools look for these."""
    assert [name for name, *_ in CASES] == [
        "__compiled_fn_1.Forward_graph.0.py",
        "__compiled_fn_-1.before.split-2.3.py",
        "__compiled_fn_1.kernel_12.py",
        "__compiled_fn_1.AOT_runtime_wrapper.0.py",
        "__transformed_code_4_for_f_for_2.py",
        "full_code_for_f_1_7.py",
        "__compiled_fn_1.passes_2.md",
        *(f"{note}_0.txt" for note in get_args(file_names.Note)),
    ]
    assert {"eager_fallbacks", "missing_stages"} <= set(get_args(file_names.Note))
    assert [file_names.page_file(), file_names.index_file(), file_names.manifest_file(".rank_1")] == [
        "index.html",
        "index.md",
        "manifest.rank_1.json",
    ]


def test_every_file_is_written_here_and_is_documented() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    written = {name for name in vars(file_names) if name.endswith("_file")}
    untested = written - set(re.findall(r"file_names\.(\w+_file)\(", text))
    assert not untested, f"CASES lacks {sorted(untested)}"
    page = (Path(__file__).resolve().parents[2] / "docs" / "dump.md").read_text(encoding="utf-8")
    documented = [
        re.escape(name) for row in re.findall(r"^\| (`.*?) \|", page, re.M) for name in re.findall("`(.*?)`", row)
    ]
    patterns = [re.sub("<.*?>", r"[\\w.-]+", name) for name in documented]
    names = [
        *(name for name, *_ in CASES),
        file_names.page_file(),
        file_names.index_file(),
        file_names.manifest_file(""),
        file_names.summary_file(),
    ]
    undocumented = [name for name in names if not any(re.fullmatch(pattern, name) for pattern in patterns)]
    assert not undocumented, f"the table of docs/dump.md lacks {undocumented}"


@pytest.mark.parametrize("name", ["notes.txt", "f.py", "__compiled_fn_1.py", "manifest.json", "full_code_for_f.py"])
def test_other_files_are_none_of_a_dump(name: str) -> None:
    assert not file_names.kinds_of(name)


def test_marks_are_read_again() -> None:
    assert file_names.rank_of_mark(file_names.rank_mark(3)) == 3
    assert file_names.rank_of_mark(file_names.process_mark(3)) is None
    assert file_names.is_mark_of_process(file_names.process_mark(3))
    assert file_names.mark_of_manifest(file_names.marked(file_names.manifest_file(), "rank_1")) == "rank_1"


def test_a_graph_is_told_from_what_belongs_to_it() -> None:
    assert file_names.graph_in("__compiled_fn_1.Joint_graph.0.py") == ("__compiled_fn_1", "Joint_graph", "0")
    assert file_names.graph_in("__compiled_fn_1.kernel_0.py") is None
    assert file_names.graph_part("__compiled_fn_1.kernel_0") == "__compiled_fn_1"
    assert file_names.graph_part("__compiled_fn_1.Joint_graph.0") == "__compiled_fn_1.Joint_graph.0"
    assert all(file_names.is_dumped_code(name) for name, kind, *_ in CASES[:1] + CASES[2:6])
    assert not file_names.is_dumped_code("compiled.py")


# Nothing else spells one

PATTERN = re.compile(
    r"\.kernel_|\.AOT_|__transformed_code_|full_code_for_|^\.?(rank|process)_$|^manifest(\*?\.json)?$"
    rf"|^index\.(html|md)$|(?:{'|'.join(get_args(file_names.Note))})_"
)


def spelled(tree: ast.Module) -> Iterator[Tuple[int, str]]:
    """Texts, and pieces of f-strings, that are a part of a file name: no documentation, and no prose."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            if " " not in node.value and PATTERN.search(node.value):
                yield node.lineno, node.value


def test_nothing_else_spells_a_file_name() -> None:
    found = {
        f"{path.relative_to(SOURCE).as_posix()}:{line}": text
        for path in sorted(SOURCE.rglob("*.py"))
        if path != SOURCE / "torch_trace/file_names.py"
        for line, text in spelled(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found, "a function of torch_trace/file_names.py makes or reads the name"
    assert len(list(spelled(ast.parse((SOURCE / "torch_trace/file_names.py").read_text(encoding="utf-8"))))) > 5


def test_a_planted_name_is_found() -> None:
    assert list(spelled(ast.parse('def f(n):\n    "full_code_for_x.py"\n    return f"{n}.kernel_{n}.py"'))) == [
        (3, ".kernel_")
    ]
