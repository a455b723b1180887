"""The manifest contains the whole model, and the reader names what it can't read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Union

import pytest

from depyf.report.model.manifest import ForeignManifestError, ManifestError, from_json, json_text, to_json
from depyf.report.model.run import (
    SCHEMA,
    Artifact,
    Call,
    Compilation,
    EntryGuard,
    FailedEntryGuard,
    Function,
    Link,
    ModuleKernel,
    Phase,
    Recompile,
    Run,
    SourceFile,
)


def a_run() -> Run:
    return Run(
        depyf="1",
        rank=0,
        started=1.5,
        command=("a.py", "é"),
        sources=(SourceFile("a.py", "x = 1\n"), SourceFile("lib.py", None, library=True)),
        functions=(Function("f", "M.f", 0, 1, 9), Function("r", "r", 0, 1, 9, resumes=0, resumes_at=4)),
        compilations=(
            Compilation(
                "0/0",
                0,
                calls=(Call(graph="__compiled_fn_1", line=3), Call(function=1, line=4)),
                guards=(EntryGuard("TENSOR_MATCH", "check_tensor(x)", "L['x']", (0, 3)),),
                cache={"fx": "hit"},
                metrics={"co_name": "f", "guard_latency_us": 3},
            ),
        ),
        artifacts=(Artifact("g", "graph", "t", "0/0", links=(Link(3, 4, ((0, 1), (0, 2)), ("sin",)),), runs=False),),
        kernels=(ModuleKernel("k", "cpp_fused_0", "0/0", True, places=((0, 1),)),),
        recompiles=(Recompile("0/1", 0, (FailedEntryGuard("0/0", "L['n'] == 3", "n was 3", "3", "4", (0, 2)),)),),
        phases=(Phase("0/0", "dynamo", 0.0, 1.0), Phase("0/0", "inner", 0.1, 0.5, parent=0)),
        totals={"compile": 1.0},
    )


def test_nothing_is_lost_on_the_way() -> None:
    assert from_json(to_json(a_run())) == a_run()
    assert from_json(to_json(Run())) == Run()


@pytest.mark.parametrize(
    "part",
    [
        EntryGuard("TENSOR_MATCH", 'x["é"]\n\u2028\x7f', "L['x']", (0, 3)),
        EntryGuard("", ""),
        EntryGuard("A", "b", place=(0, 0)),
        Link(1, 2, ((0, 1), (3, 4)), ("a", 'b"')),
        Link(1, 1, ()),
        Link(0, 0, ((0, 1),), ()),
    ],
)
def test_guards_and_links_are_written_as_every_other_part(part: Union[EntryGuard, Link]) -> None:
    run = Run(
        compilations=(Compilation("0/0", 0, guards=(part,)),) if isinstance(part, EntryGuard) else (),
        artifacts=(Artifact("g", "graph", "t", links=(part, part)),) if isinstance(part, Link) else (),
    )
    assert json_text(part) in to_json(run)


def test_a_guard_with_other_values_than_it_should_have_is_written() -> None:
    odd: Any = 5
    run = Run(
        compilations=(Compilation("0/0", 0, guards=(EntryGuard("A", odd, odd, (0,)), EntryGuard("B", "", "", odd))),)
    )  # type: ignore[arg-type]
    (written,) = json.loads(to_json(run))["compilations"]
    assert written["guards"] == [
        {"kind": "A", "text": 5, "source": 5, "place": [0]},
        {"kind": "B", "text": "", "place": 5},
    ]


def test_the_schema_stands_in_the_file() -> None:
    assert json.loads(to_json(Run())) == {"schema": SCHEMA}


def test_what_this_version_does_not_know_is_ignored() -> None:
    data = json.loads(to_json(a_run()))
    data["new"] = 1
    data["functions"][0]["new"] = {"a": 1}
    assert from_json(json.dumps(data)) == a_run()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "{}", '{"schema": "x"}', '{"schema": true}', '{"functions": []}', '{"name":"my app","icons":[]}'],
)
def test_what_is_no_manifest_is_said(text: str) -> None:
    with pytest.raises(ForeignManifestError, match=r"^there\.json: not a manifest of depyf"):
        from_json(text, "there.json")


@pytest.mark.parametrize("more", ['"functions": 3', '"functions": [{"name": 1}]', '"functions": [3]'])
def test_a_manifest_of_another_form_is_damaged(more: str) -> None:
    with pytest.raises(ManifestError, match=r"^there\.json: a damaged manifest"):
        from_json(f'{{"schema": {SCHEMA}, {more}}}', "there.json")


@pytest.mark.parametrize("field", ["seconds", "graph_runs", "graph_run_seconds"])
def test_a_number_that_no_program_has_is_said(field: str) -> None:
    compilation = f'{{"compile_id": "0/0", "{field}": 1{"0" * 4000}}}'
    with pytest.raises(ManifestError, match=r"^there\.json: a damaged manifest \(ValueError: a number is too large"):
        from_json(f'{{"schema": {SCHEMA}, "compilations": [{compilation}]}}', "there.json")


@pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity"])
def test_a_time_that_is_no_number_is_not_known(number: str) -> None:
    parts = {
        "compilations": f'{{"compile_id": "0/0", "function": null, "seconds": {number}}}',
        "findings": f'{{"title": "", "text": "", "seconds": {number}}}',
        "phases": f'{{"compile_id": null, "name": "x", "start": 1.0, "seconds": {number}}}',
    }
    listed = ", ".join(f'"{name}": [{part}]' for name, part in parts.items())
    run = from_json(f'{{"schema": {SCHEMA}, {listed}}}')
    assert [each.seconds for each in (*run.compilations, *run.findings, *run.phases)] == [None, None, 0.0]


F = Function("f", "f", 0, 1, 9)
BASE = Run(sources=(SourceFile("a.py"),), functions=(F,))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (replace(BASE, compilations=(Compilation("0/0", 1),)), "there is no function 1"),
        (replace(BASE, compilations=(Compilation("0/0", -1),)), "there is no function -1"),
        (replace(BASE, compilations=(Compilation("0/0", 0, calls=(Call(function=7),)),)), "there is no function 7"),
        (
            replace(BASE, compilations=(Compilation("0/0", 0, guards=(EntryGuard("K", "t", "", (2, 1)),)),)),
            "no source 2",
        ),
        (
            replace(BASE, recompiles=(Recompile("0/1", 3, (FailedEntryGuard("0/0", "t", "w"),)),)),
            "there is no function 3",
        ),
        (replace(BASE, recompiles=(Recompile("0/1", 0, ()),)), "no guard failed for the recompilation 0/1"),
        (replace(BASE, functions=(replace(F, source=1),)), "there is no source 1"),
        (replace(BASE, functions=(replace(F, resumes=1), replace(F, resumes=0))), "in a circle"),
        (replace(BASE, kernels=(ModuleKernel("k", "n", None, None, places=((1, 1),)),)), "there is no source 1"),
        (replace(BASE, artifacts=(Artifact("g", "graph", "t", links=(Link(1, 1, ((1, 1),)),)),)), "no source 1"),
        (replace(BASE, phases=(Phase(None, "n", 0.0, 1.0, parent=1),)), "there is no phase 1"),
    ],
)
def test_an_index_of_nothing_is_said(run: Run, words: str) -> None:
    assert from_json(to_json(BASE)) == BASE
    with pytest.raises(ManifestError, match=rf"^there\.json: a damaged manifest \(.*{words}"):
        from_json(to_json(run), "there.json")


def test_a_newer_schema_is_said() -> None:
    with pytest.raises(ManifestError, match="newer depyf"):
        from_json(json.dumps({"schema": SCHEMA + 1}))
