"""The edits of ``depyf fix`` by text: what they change, and what they refuse although it looks alike."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Dict, List

import pytest

pytest.importorskip("libcst", reason="libcst is not installed, which depyf fix edits source with")

from edit_cases import edited, function, problem_at, project_of

from depyf.base.quick_dataclass import replace
from depyf.diagnosis.break_advice import BreakCause
from depyf.diagnosis.guard_advice import GuardCause
from depyf.fixing.branches import where_for_branch, where_for_item
from depyf.fixing.dynamic import dynamic_compile, dynamic_source, dynamic_sources, with_dynamic
from depyf.fixing.edits import Change, NoEdit, Project, applied
from depyf.fixing.prints import move_print
from depyf.fixing.problems import Problem
from depyf.fixing.reasons import REASONS
from depyf.fixing.remedies import REMEDIES, edits_for, why_no_edit
from depyf.fixing.settings import inserted, setting
from depyf.report.model.run import (
    BREAK,
    LIMIT,
    RECOMPILATION,
    Compilation,
    EntryGuard,
    FailedEntryGuard,
    Recompile,
    Run,
)


def where(folder: Path, body: str) -> str:
    """The body of ``f(x)`` after the edit of its first ``if``."""
    source = function(body)
    line = next(at for at, text in enumerate(source.splitlines(), 1) if f" {text}".find(" if ") >= 0)
    return textwrap.dedent(edited(project_of(folder, source), where_for_branch, problem_at(line)).split("\n", 2)[2])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "# why\nif x.sum() > 0:\n    y = x * 2  # twice\nelse:\n    y = -x\nreturn y  # done",
            "# why\n# twice\ny = torch.where(x.sum() > 0, x * 2, -x)\nreturn y  # done\n",
        ),
        ("if (x > 1).any(): return x + 1\nreturn x / 2", "return torch.where((x > 1).any(), x + 1, x / 2)\n"),
        (
            "if torch.isnan(x).any():\n    return x.relu()\nelse:\n    return torch.relu(-x)",
            "return torch.where(torch.isnan(x).any(), x.relu(), torch.relu(-x))\n",
        ),
        (
            "y = x * 2\nprint(y)\nif y.max() < y.mean():\n    y = y + 1\nreturn y",
            "y = x * 2\nprint(y)\ny = torch.where(y.max() < y.mean(), y + 1, y)\nreturn y\n",
        ),
        (
            "if not torch.isfinite(x).all():\n    x = x * 0\nelse:\n    x = x + 1\nreturn x",
            "x = torch.where(torch.isfinite(x).all(), x + 1, x * 0)\nreturn x\n",
        ),
        (
            "if x.sum().item() > 0.5: return x + 1\nreturn -x",
            "return torch.where(x.sum() > 0.5, x + 1, -x)\n",
        ),
        ("if bool((x > 1).any()): return x + 1\nreturn -x", "return torch.where((x > 1).any(), x + 1, -x)\n"),
        (
            "norm = x.std()\nif 2 < float(norm): return x + 1\nreturn -x",
            "norm = x.std()\nreturn torch.where(2 < norm, x + 1, -x)\n",
        ),
        (
            "bad = torch.isnan(x).any()\nz = (x * 2 if bad else x / 2) + 1",
            "bad = torch.isnan(x).any()\nz = (torch.where(bad, x * 2, x / 2)) + 1\n",
        ),
        ("y = x * 2\nreturn y + 1 if y.sum() > 0 else y", "y = x * 2\nreturn torch.where(y.sum() > 0, y + 1, y)\n"),
        (
            "with torch.no_grad():\n    y = x.exp() / x if x.sum() > 0 else x ** 2\nreturn y",
            "with torch.no_grad():\n    y = torch.where(x.sum() > 0, x.exp() / x, x ** 2)\nreturn y\n",
        ),
        (
            "for _ in range(2):\n    x = x - 1\n    if x.mean() > 0:\n        x = 2 * x\nreturn x",
            "for _ in range(2):\n    x = x - 1\n    x = torch.where(x.mean() > 0, 2 * x, x)\nreturn x\n",
        ),
    ],
)
def test_a_branch_whose_sides_are_pure_becomes_where(tmp_path: Path, before: str, after: str) -> None:
    assert where(tmp_path, before) == after


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("if x.sum() > 0:\n    y = 1 / x\nelse:\n    y = x * 2", "divides by a tensor"),
        ("if x.sum() > 0:\n    y = x / 0\nelse:\n    y = x * 2", "divides by zero"),
        ("if x.sum() > 0:\n    y = x.sqrt()\nelse:\n    y = x * 2", "gradients NaN"),
        ("if x.sum() > 0:\n    y = x * x\nelse:\n    y = x * 2", "multiplies two tensors"),
        ("if x.sum() > 0:\n    y = x ** 2\nelse:\n    y = x * 2", "gradient may be NaN"),
        ("if x.sum() > 0:\n    y = x * 1e39\nelse:\n    y = x * 2", "large constant"),
        ("if x.sum() > 0:\n    y = x + w\nelse:\n    y = x * 2", "one variable alone"),
        ("if x.sum() > 0:\n    y = w * 3\nelse:\n    y = x * 2", "different variables"),
        ("if x.sum() > 0:\n    y = torch.rand(3)\nelse:\n    y = x * 2", "a call of torch.rand"),
        ("if x.sum() > 0:\n    y = helper(x)\nelse:\n    y = x * 2", "a call of helper"),
        ("if x.sum() > 0:\n    y = x[0]\nelse:\n    y = x * 2", "Subscript"),
        ("if x.sum() > 0:\n    y = 1.0\nelse:\n    y = x * 2", "a number"),
        ("if x.sum() > 0:\n    seen.append(1)\n    y = x + 1\nelse:\n    y = x * 2", "more than one assignment"),
        ("if x.sum() > 0:\n    x.mul_(2)", "more than one assignment"),
        ("if x.sum() > 0:\n    x += 1", "more than one assignment"),
        ("if x.sum() > 0:\n    self.y = x * 2", "more than one assignment"),
        ("if x.sum() > 0:\n    y = x + 1\nelse:\n    z = x * 2", "do not assign the same variable"),
        ("if x.sum() > 0:\n    y = x + 1\nelif x.sum() < -1:\n    y = x\nelse:\n    y = x * 2", "more than one"),
        ("if x.sum() > 0:\n    return x + 1\ny = x\nreturn y", "what follows the if is no return"),
        ("if x.sum() > 0:\n    x = x * 2\nreturn x", "x as it is"),
        ("y = x\nif x.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("y = x.view(-1)\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("y = self.norm(x)\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("y = +x\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("y = x * 2\nkeep.append(y)\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("y = x * 2\nz = y\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("if x.sum().item() > 0.1:\n    y = x + 1\nelse:\n    y = x * 2", "a constant that all dtypes have"),
        ("if x.sum().item() > -1:\n    y = x + 1\nelse:\n    y = x * 2", "a constant that all dtypes have"),
        ("if x.max().item() > w.max():\n    y = x + 1\nelse:\n    y = x * 2", "a constant that all dtypes have"),
        ("if int(x.sum()) > 0:\n    y = x + 1\nelse:\n    y = x * 2", "the test is not known"),
        ("n = x.sum()\nn = w\nif n > 0:\n    y = x + 1\nelse:\n    y = x * 2", "the test is not known"),
        ("n = x.sum()\nn.unsqueeze_(0)\nif n > 0:\n    y = x + 1\nelse:\n    y = x * 2", "the test is not known"),
        ("for n in x.sum(), w:\n    if n > 0:\n        return x + 1\n    return x * 2", "the test is not known"),
        ("def bool(x): ...\nif bool(x.any()):\n    y = x + 1\nelse:\n    y = x * 2", "the test is not known"),
        (
            "from a import *\nif bool(torch.isnan(x).any()):\n    y = x + 1\nelse:\n    y = -x",
            "bool is not the builtin",
        ),
        (
            "def bool(x): ...\nif bool(torch.isnan(x).any()):\n    y = x + 1\nelse:\n    y = -x",
            "bool is not the builtin",
        ),
        ("y = x * 2\nif y.sum() > 0:\n    z = y + 1\nelse:\n    z = y\ny += 1\nreturn z", "y as it is"),
        ("y = x * 2\nreturn g(y, y + 1 if y.sum() > 0 else y)", "y as it is"),
        ("try:\n    y = x * 2\n    return y + 1 if y.sum() > 0 else y\nfinally:\n    y += 1", "y as it is"),
        ("y = x * 2\nz = y + 1 if y.sum() > 0 else y\ny += 1\nreturn z", "y as it is"),
        ("return x + 1 if x.sum() > 0 else x.exp()", "a call of x.exp"),
        ("return 2.0 if x.sum() > 0 else 0.5", "a number"),
        (
            "with torch.no_grad():\n    torch.set_grad_enabled(a)\n    y = x + 1 if x.sum() > 0 else 1 / x",
            "divides by a tensor",
        ),
        ("with torch.no_grad():\n    yield\n    y = x + 1 if x.sum() > 0 else 1 / x", "divides by a tensor"),
        ("with torch.no_grad():\n    y = lambda x: x + 1 if x.sum() > 0 else 1 / x", "divides by a tensor"),
        ("with torch.no_grad():\n    y = 0\ny = x + 1 if x.sum() > 0 else 1 / x", "divides by a tensor"),
        ("with torch.no_grad(), torch.autocast(b):\n    y = x + 1 if x.sum() > 0 else x.exp()", "a call of x.exp"),
        ("with torch.no_grad(), torch.inference_mode(False):\n    y = -x if x.sum() > 0 else 1 / x", "divides by a"),
        ("with torch.inference_mode(False):\n    y = x + 1 if x.sum() > 0 else 1 / x", "divides by a tensor"),
        ("with torch.no_grad():\n    y = x + 1 if x.sum() > 0 else x.clamp(0)", "a call of x.clamp"),
        ("y = self.relu() if x.sum() > 0 else self + 1", "methods of the program"),
        ("if x:\n    y = x + 1\nelse:\n    y = x * 2", "the test is not known"),
        ("if x > 0:\n    y = x + 1\nelse:\n    y = x * 2", "the test is not known"),
        ("if x.any():\n    y = x + 1\nelse:\n    y = x * 2", "the test is not known"),
        ("if x.sum(0) > 0:\n    y = x + 1\nelse:\n    y = x * 2", "the test is not known"),
        ("if x.sum() > 0 and flag:\n    y = x + 1\nelse:\n    y = x * 2", "the test is not known"),
        ("if x.sum() > len(w):\n    y = x + 1\nelse:\n    y = x * 2", "the test is not known"),
        ("y = self.mean()\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("def g():\n    a.append(y)\ny = x * 2\ng()\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("h = lambda: y\ny = x * 2\nz = h()\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("global y\ny = x * 2\ng()\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("y = x * 2\nz = locals()\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("y = x * 2\nprint((z := y))\nif y.sum() > 0:\n    y = y * 2\nreturn y", "y as it is"),
        ("y = x * 2\nprint(y)\nif y.sum() > 0:\n    y = y * 2\nreturn y\ndef print(*a): ...", "y as it is"),
        ("if x.sum() > 0:\n    y = x + 1\nelse:\n    y = x * 2\nfrom mine import torch", "torch is not the module"),
        ("torch = x\nif x.sum() > 0:\n    y = x + 1\nelse:\n    y = x * 2", "torch is not the module"),
    ],
)
def test_a_branch_whose_sides_are_not_known_to_be_pure_is_refused(tmp_path: Path, body: str, why: str) -> None:
    with pytest.raises(NoEdit, match=why.replace("(", "\\(")):
        where(tmp_path, body)


@pytest.mark.parametrize(
    ("decorators", "is_edited"),
    [
        ("@torch.no_grad()\n@torch.compile", True),
        ("@torch.compile(backend='eager')\n@torch.inference_mode()", True),
        ("@torch.no_grad()\n@register", False),
        ("@torch.enable_grad()\n@torch.no_grad()", False),
        ("@torch.compile", False),
    ],
)
def test_a_function_without_gradients_may_divide_in_a_side(tmp_path: Path, decorators: str, is_edited: bool) -> None:
    source = f"import torch\n{decorators}\ndef f(x):\n    return 1 / x if x.sum() > 0 else x + 1\n"
    line = source.count("\n")
    if is_edited:
        after = edited(project_of(tmp_path, source), where_for_branch, problem_at(line))
        assert after.endswith("    return torch.where(x.sum() > 0, 1 / x, x + 1)\n")
        return
    with pytest.raises(NoEdit, match="divides by a tensor"):
        where_for_branch(problem_at(line), project_of(tmp_path, source))


def test_an_item_in_a_test_is_a_branch_and_any_other_is_none(tmp_path: Path) -> None:
    source = function("n = x.sum().item()\nif x.sum().item() > 0:\n    y = x + 1\nelse:\n    y = x * 2")
    project = project_of(tmp_path, source)
    assert "y = torch.where(x.sum() > 0, x + 1, x * 2)" in edited(project, where_for_item, problem_at(4))
    with pytest.raises(NoEdit, match=r"^$"):
        where_for_item(problem_at(3), project)


def test_an_elif_and_two_conditional_expressions_are_not_replaced(tmp_path: Path) -> None:
    source = function("if flag:\n    y = x\nelif x.sum() > 0:\n    y = x + 1\nelse:\n    y = x * 2")
    with pytest.raises(NoEdit, match="no if statement"):
        where_for_branch(problem_at(5), project_of(tmp_path, source))
    two = function("y = (x + 1 if x.sum() > 0 else x * 2) + (x + 1 if x.sum() > 1 else x * 2)")
    with pytest.raises(NoEdit, match="no single conditional expression"):
        where_for_branch(problem_at(3), project_of(tmp_path, two))


def test_the_variant_for_eager_mode_raises_where_the_sides_are_of_two_kinds(tmp_path: Path) -> None:
    source = function("if x.sum() > 0:\n    y = x + 1\nelse:\n    y = x * 2\nreturn y")
    project = project_of(tmp_path, source)
    probe = applied(where_for_branch(problem_at(3), project).probe, project.source)["train.py"].decode()
    assert "(lambda c, a, b: torch.where(c, a, b) if" in probe
    assert "else 1 / 0)(x.sum() > 0, x + 1, x * 2)" in probe


STATEMENT = "torch._dynamo.config.allow_rnn = True"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '"""Doc."""\n# c\nimport os\nimport torch  # t\nimport a\n\nx = 1\n',
            f'"""Doc."""\n# c\nimport os\nimport torch  # t\nimport a\n{STATEMENT}\n\nx = 1\n',
        ),
        ("import torch.nn as nn\nx = 1", f"import torch.nn as nn\nimport torch\n{STATEMENT}\nx = 1"),
        (
            "from __future__ import annotations\nx = 1\n",
            f"from __future__ import annotations\nimport torch\n{STATEMENT}\nx = 1\n",
        ),
        ("import torch.nn\r\nx = 1\r\n", f"import torch.nn\r\n{STATEMENT}\r\nx = 1\r\n"),
    ],
)
def test_a_setting_stands_after_the_imports(before: str, after: str) -> None:
    assert inserted(before.encode(), "a.py", STATEMENT).decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "import os\nos.a = 1\nfrom torch import nn\nimport b\nx = 1\n",
            f"import os\nos.a = 1\nfrom torch import nn\nimport b\nimport torch\n{STATEMENT}\nx = 1\n",
        ),
        (
            "import os\nos.a = 1\nimport torch as t\nx = 1\n",
            f"import os\nos.a = 1\nimport torch as t\nimport torch\n{STATEMENT}\nx = 1\n",
        ),
    ],
)
def test_torch_is_not_imported_before_the_program_imports_it(before: str, after: str) -> None:
    assert inserted(before.encode(), "a.py", STATEMENT).decode() == after
    with pytest.raises(NoEdit, match="not all of its imports stand together"):
        inserted(b"import os\nos.a = 1\nfrom model import f\n", "a.py", STATEMENT)


def test_a_setting_imports_the_compiler_not_before_its_environment_variables_are_set(tmp_path: Path) -> None:
    make = setting(STATEMENT)
    for text in ("os.environ['A'] = 'b'", "os.environ.setdefault('A', 'b')", "def f():\n    os.putenv('A', 'b')"):
        with pytest.raises(NoEdit, match="sets environment variables"):
            make(problem_at(1), project_of(tmp_path, f"import os\nimport torch\n{text}\n"))
    make(problem_at(1), project_of(tmp_path, "import os\nos.environ['A'] = '1'\nimport torch\n"))
    make(problem_at(1), project_of(tmp_path, "import os\nimport torch\na = os.environ['A'], os.environ.get('B')\n"))


def test_an_edit_keeps_the_encoding_of_the_file(tmp_path: Path) -> None:
    source = "# -*- coding: latin-1 -*-\n" + function("if x.sum() > 0:  # \xe9\n    return x * 2\nreturn -x  # \xf6")
    project = project_of(tmp_path, "")
    (tmp_path / "train.py").write_bytes(source.encode("latin-1"))
    changes = where_for_branch(problem_at(4), project).changes
    after = applied(changes, project.source)["train.py"]
    assert after.decode("latin-1").endswith("    # \xe9\n    # \xf6\n    return torch.where(x.sum() > 0, x * 2, -x)\n")


def test_a_setting_is_refused_where_the_program_sets_it_or_has_its_own_torch(tmp_path: Path) -> None:
    make = setting(STATEMENT)
    with pytest.raises(NoEdit, match="the program uses allow_rnn itself"):
        make(problem_at(1), project_of(tmp_path, "import torch\ntorch._dynamo.config.allow_rnn = False\n"))
    with pytest.raises(NoEdit, match="torch is a variable"):
        make(problem_at(1), project_of(tmp_path, "import torch as t\ntorch = t\n"))


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        (2, "@torch.compile\ndef f(x): ...\n", "@torch.compile(dynamic=True)\ndef f(x): ...\n"),
        (
            3,
            "@torch.compile(backend='eager',)\ndef f(x): ...\n",
            "@torch.compile(backend='eager',dynamic=True)\ndef f(x): ...\n",
        ),
        (2, "net.compile(backend='eager')\n", "net.compile(backend='eager', dynamic=True)\n"),
        (
            3,
            "from torch import compile\n@compile\ndef f(x): ...\n",
            "from torch import compile\n@compile(dynamic=True)\ndef f(x): ...\n",
        ),
        (2, "é = torch.compile(g)(torch.ones(3))  # c\n", "é = torch.compile(g, dynamic=True)(torch.ones(3))  # c\n"),
    ],
)
def test_dynamic_is_given_to_torch_compile(line: int, before: str, after: str) -> None:
    assert with_dynamic(f"import torch\n{before}".encode(), "a.py", line).decode() == f"import torch\n{after}"


@pytest.mark.parametrize(
    "source",
    ["g = torch.compile(g, dynamic=False)", "g = torch.compile(g, **k)", "torch.compile(a); torch.compile(b)", "g(1)"],
)
def test_dynamic_is_not_given_where_the_program_decides(source: str) -> None:
    with pytest.raises(NoEdit):
        with_dynamic(f"import torch\n{source}\n".encode(), "a.py", 2)


def test_one_size_is_made_dynamic_by_the_name_of_its_variable(tmp_path: Path) -> None:
    problem = Problem(RECOMPILATION, GuardCause.SIZE.value, "train.py", 2, "", "", "")
    problem = replace(problem, checked="size of x in dimensions 0 and 2")
    source = "import torch\nf = torch.compile(g)\n"
    after = edited(project_of(tmp_path, source), dynamic_source, problem)
    assert "\ntorch.compiler.config.dynamic_sources += \",L['x']:0,L['x']:2\"\n" in after
    for other, checked, why in (
        (source, "size of self.weight in dimension 0", "not the size or the number of a variable"),
        (source + "torch._dynamo.mark_static(x)\n", problem.checked, "decides itself"),
        (source + "h = torch.compile(g, dynamic=False)\n", problem.checked, "decides itself"),
    ):
        with pytest.raises(NoEdit, match=why):
            dynamic_source(replace(problem, checked=checked), project_of(tmp_path, other))


def test_sizes_that_varied_are_made_dynamic_together(tmp_path: Path) -> None:
    """``x`` and ``y`` have one batch size: while one of them is a constant, the other is."""
    problem = Problem(RECOMPILATION, GuardCause.SIZE.value, "train.py", 2, "", "", "")
    problem = replace(problem, checked="size of y in dimension 0")
    project = project_of(tmp_path, "import torch\nf = torch.compile(g)\n")

    def varied(*checked: str, before: str = "7") -> Project:
        failed = tuple(FailedEntryGuard("0/0", "", "", before, "3", checked=each) for each in checked)
        sizes = {"L['x']": "[7, 7, 4]", "L['z']": "[5, 17, 7]", "L['s']": "[s0]", "G['w']": "[7]"}
        guards = [EntryGuard("TENSOR_MATCH", f"check_tensor({at}, size={size}, a)", at) for at, size in sizes.items()]
        compiled = Compilation("0/0", None, guards=(*guards, EntryGuard("ID_MATCH", "size=[7]", "L['i']")))
        return replace(project, run=Run(compilations=(compiled,), recompiles=(Recompile("0/1", 0, failed),)))

    for project_now, sources in (
        (varied("size of y in dimension 0", "n", "size of x in dimensions 0 and 1"), "x0 x1 y0 z2"),
        (varied("size of y in dimension 0", "n", before="9"), ""),
        (varied("size of y in dimension 0", "size of self.weight in dimension 0", before="9"), ""),
        (varied("size of y in dimension 0", before="5"), "y0 z0"),
    ):
        if sources:
            named = ",".join(f"L['{each[0]}']:{each[1]}" for each in sources.split())
            after = edited(project_now, dynamic_sources, problem)
            assert f'\ntorch.compiler.config.dynamic_sources += ",{named}"\n' in after
        else:
            with pytest.raises(NoEdit, match="no other size"):
                dynamic_sources(problem, project_now)


def test_dynamic_needs_the_place_of_the_call(tmp_path: Path) -> None:
    problem = Problem(RECOMPILATION, GuardCause.SIZE.value, "train.py", 2, "", "", "")
    with pytest.raises(NoEdit, match="not known"):
        dynamic_compile(problem, project_of(tmp_path, "import torch\n"))


@pytest.mark.parametrize(
    "body",
    [
        'print("x", x.sum())\nx += 1\nreturn x',
        'print(f"{x.shape} {x.mean()}")\nhelper(x)\nreturn x',
        "y = x * 2\nprint(y)\nreturn torch.cat([y, x.sum(0)])",
        "print(x.shape[0], x.dtype, len(x), 1)\nreturn x",
        'print(f"{tuple(x.shape)}")\nx += 1\nreturn x',
    ],
)
def test_print_may_be_moved_where_nothing_changes_what_it_prints(tmp_path: Path, body: str) -> None:
    after = edited(project_of(tmp_path, function(body)), move_print, problem_at(3, BreakCause.PRINT))
    assert after.startswith("import torch\ntorch._dynamo.config.reorderable_logging_functions.add(print)\ndef f(x):")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("y = x * 2\nprint(y)\ny += 1\nreturn y", "line 5 may change it"),
        ("print(x)\nx.mul_(2)\nreturn x", "calls something that may change it"),
        ("print(x)\nx[0] = 1\nreturn x", "assigns to a part"),
        ("print(x)\nhelper(x)\nreturn x", "calls something that may change it"),
        ("print(x)\ntorch.relu_(x)\nreturn x", "calls something that may change it"),
        ("print(x)\ntorch.add(x, 1, out=x)\nreturn x", "calls something that may change it"),
        ("print(x.view(-1))\nreturn x", "may be changed in place"),
        ("print(self.norm(x))\nx += 1\nreturn x", "may be changed in place"),
        ("y = self.norm(x)\nprint(y)\nreturn y", "calls something that may change it"),
        ("print(x)\nF.relu(x, True)\nreturn x", "calls something that may change it"),
        ("print(x)\ntorch.ops.mine.fill(x)\nreturn x", "calls something that may change it"),
        ("print(self.weight)\nreturn x", "may be changed in place"),
        ("print(str(x))\nx += 1", "may be changed in place"),
        ("y = x\nprint(y)\nreturn x", "another name"),
        ("print(w)\nreturn x", "no variable of the function"),
        ("print(x.sum(), file=log)\nreturn x", "leaves out the arguments with names"),
        ("print = log\nprint(x.sum())\nreturn x", "of its own"),
        ("sys.stdout.write('a')\nprint(x.sum())\nreturn x", "uses stdout"),
        ("print(x.sum())\nother(x)\nreturn x\ndef other(x):\n    print(x)\n    x.add_(1)", "train.py:7"),
        (
            "print('a')\nshow(x)\nx += 1\nreturn x\ndef show(v):\n    print(v)",
            "train.py:8 is in a function, lambda or comprehension",
        ),
        ("print('a')\nreturn x\n@torch.compile\ndef show(v):\n    print(v)\n    v += 1", "v, which train.py:7 prints"),
        ("print('a')\nreturn x\nbuiltins.print = log", "of its own"),
        ("print('a')\nlog = print\nlog(x)\nx += 1\nreturn x", "gives print another name"),
        ("print(self.mean())\nself.b += 1\nreturn x", "may be changed in place"),
        ("print(x)\nF.relu(x, inplace)\nreturn x", "calls something that may change it"),
    ],
)
def test_print_is_not_moved_where_it_could_print_something_else(tmp_path: Path, body: str, why: str) -> None:
    with pytest.raises(NoEdit, match=why):
        move_print(problem_at(3, BreakCause.PRINT), project_of(tmp_path, function(body)))


def test_a_finding_without_an_edit_says_why(tmp_path: Path) -> None:
    for cause, why in (
        (BreakCause.LOGGING, "no mechanical edit for this finding: Dynamo can leave methods of loggers out"),
        (BreakCause.WARNING, "no mechanical edit for this finding: no setting keeps the text"),
    ):
        problem = problem_at(4, cause)
        assert list(edits_for(problem, project_of(tmp_path, function("return x")))) == []
        assert why_no_edit(problem).startswith(why)
    with_edits = {cause for remedy in REMEDIES for cause in remedy.causes}
    known = {each.value for kind in (BreakCause, GuardCause) for each in kind if each.value}
    assert known - with_edits == set(REASONS)


def test_a_print_that_may_be_traced_into_another_function_is_not_moved(tmp_path: Path) -> None:
    lost = "Dynamo \\(PyTorch 2.13\\) prints nothing there"
    project = project_of(tmp_path, function("y = x * 2\nprint(y)\nreturn y"))
    with pytest.raises(NoEdit, match=lost):
        move_print(problem_at(4, BreakCause.PRINT, frames=2), project)
    inner = ("[print(i) for i in range(3)]", "g = lambda: print(1)\ng()", "def g(): print(1)\ng()", "helper(x)")
    (tmp_path / "mine.py").write_text("def helper(x):\n    print('h')\n")
    for body in inner:
        project = project_of(
            tmp_path, "from mine import helper\n" + function(f"print(1)\n{body}\nreturn x"), compiled=3
        )
        with pytest.raises(NoEdit, match=lost):
            move_print(problem_at(4, BreakCause.PRINT), project)


def test_changes_of_a_file_are_made_from_its_end(tmp_path: Path) -> None:
    source = function(
        "a = x\nif x.sum() > 0:\n    y = x + 1\nelse:\n    y = x * 2\nif x.sum() > 1:\n    return y + 1\nreturn y * 2"
    )
    project = project_of(tmp_path, source)
    changes: List[Change] = [
        *setting(STATEMENT)(problem_at(1), project).changes,
        *where_for_branch(problem_at(4), project).changes,
        *where_for_branch(problem_at(8), project).changes,
    ]
    assert applied(changes, project.source)["train.py"].decode() == (
        f"import torch\n{STATEMENT}\ndef f(x):\n    a = x\n    y = torch.where(x.sum() > 0, x + 1, x * 2)\n"
        "    return torch.where(x.sum() > 1, y + 1, y * 2)\n"
    )


def test_no_program_with_an_lstm_gets_allow_rnn(tmp_path: Path) -> None:
    for name, is_refused in (("GRU", False), ("LSTM", True)):
        (tmp_path / "net.py").write_text(f"import torch\nm = torch.nn.{name}(2, 3)\n")
        (make,) = edits_for(problem_at(3, BreakCause.RNN), project_of(tmp_path, "import torch\nimport net\nx = 1\n"))
        if not is_refused:
            assert make().changes
            continue
        with pytest.raises(NoEdit, match="raises where a backend with AOTAutograd"):
            make()


@pytest.mark.parametrize(
    ("made", "is_refused"),
    [
        ("nn.GRU(3, 4, 2, dropout=0.0, batch_first=True)", False),
        (
            "class RNN(nn.Module):\n    def f(self):\n        self.dropout = nn.GRU(3, 4)\n        super(RNN, self)",
            False,
        ),
        ("def f(m: nn.GRU):\n    return isinstance(m, (nn.GRU, nn.RNN))\nm = nn.RNN(3, 4)", False),
        ("nn.GRU(3, 4, 2, dropout=0.3)", True),
        ("nn.GRU(3, 4, 2, dropout=p)", True),
        ("nn.GRU(3, 4, 2, True, False, 0.3)", True),
        ("nn.GRU(3, 4, **options)", True),
        ("nn.GRU(*options)", True),
        ("m = nn.GRU(3, 4)\nm.dropout = 0.3", True),
        ("m = nn.GRU(3, 4)\nsetattr(m, 'dropout', 0.3)", True),
        ("m = nn.GRU(3, 4)\nm = torch.load('m.pt', weights_only=False)", True),
        ("m = nn.GRU(3, 4)\nk = nn.GRU\nk(3, 4, dropout=0.3)", True),
        ("m = nn.GRU(3, 4)\nclass Own(nn.GRU):\n    pass", True),
        ("m = nn.GRU(3, 4)\nfrom torch.nn import GRU as G\nG(3, 4, dropout=0.3)", True),
        ("m = nn.GRU(3, 4)\ngetattr(nn, 'RNN')(3, 4, dropout=0.3)", True),
        ("m = nn.GRU(3, 4)\ngetattr(nn, kind)(3, 4, dropout=0.3)", True),
        ("from library import model\nm = model()", True),
        ("class RNN(nn.Module):\n    pass\nm = RNN(3)", True),
    ],
)
def test_a_recurrent_network_that_may_have_a_dropout_is_not_compiled(
    tmp_path: Path, made: str, is_refused: bool
) -> None:
    project = project_of(tmp_path, f"import torch\nfrom torch import nn\n{made}\n")
    (make,) = edits_for(problem_at(3, BreakCause.RNN), project)
    if not is_refused:
        assert make().changes
        return
    with pytest.raises(NoEdit, match="draws other random numbers"):
        make()


def test_an_edit_keeps_the_byte_order_mark_and_the_ends_of_lines(tmp_path: Path) -> None:
    text = "\ufeffimport torch\n\ndef f(x):\n\tif x.sum() > 0:  # é\n\t\treturn x * 2\n\treturn -x\n"
    project = project_of(tmp_path, "")
    (tmp_path / "train.py").write_bytes(text.replace("\n", "\r\n").encode("utf-8"))
    edits = where_for_branch(problem_at(4), project), setting(STATEMENT)(problem_at(1), project)
    after = applied([change for each in edits for change in each.changes], project.source)["train.py"]
    assert after.decode("utf-8").split("\r\n") == [
        "\ufeffimport torch", STATEMENT, "", "def f(x):", "\t# é", "\treturn torch.where(x.sum() > 0, x * 2, -x)", "",
    ]  # fmt: skip


def test_each_remedy_is_for_causes_that_exist_and_a_limit_has_none(tmp_path: Path) -> None:
    known = {each.value for kind in (BreakCause, GuardCause) for each in kind}
    assert all(remedy.causes and remedy.causes <= known for remedy in REMEDIES)
    project = project_of(tmp_path, "import torch\n")
    found: Dict[str, int] = {
        kind: len(list(edits_for(Problem(kind, BreakCause.ITEM.value, "train.py", 1, "", "", ""), project)))
        for kind in (BREAK, LIMIT)
    }
    assert found == {BREAK: 3, LIMIT: 0}
    between = f"{GuardCause.SIZE.value} (value that goes from one graph to the next)"
    assert len(list(edits_for(Problem(RECOMPILATION, between, "train.py", 1, "", "", ""), project))) == 4
