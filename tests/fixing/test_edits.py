"""The edits of ``depyf fix`` by text: what they change, and what they refuse although it looks alike."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Callable, Dict, List

import pytest

pytest.importorskip("libcst", reason="libcst is not installed, which depyf fix edits source with")

from depyf.base.quick_dataclass import replace
from depyf.diagnosis.break_advice import BreakCause
from depyf.diagnosis.guard_advice import GuardCause
from depyf.fixing.branches import where_for_branch, where_for_item
from depyf.fixing.dynamic import dynamic_compile, dynamic_source, with_dynamic
from depyf.fixing.edits import Change, Edit, NoEdit, Project, applied
from depyf.fixing.items import detach_number
from depyf.fixing.prints import move_print
from depyf.fixing.problems import Problem
from depyf.fixing.reasons import REASONS
from depyf.fixing.remedies import REMEDIES, edits_for, why_no_edit
from depyf.fixing.settings import inserted, setting
from depyf.report.model.run import BREAK, LIMIT, RECOMPILATION, Compilation, EntryGuard, Run


def project_of(folder: Path, source: str, *, compiled: int = 2) -> Project:
    (folder / "train.py").write_text(source, encoding="utf-8")
    return Project(str(folder), "train.py", ["train.py"], Run(), {"train.py": [compiled]})


def problem_at(line: int, cause: BreakCause = BreakCause.BRANCH, frames: int = 1) -> Problem:
    return Problem(BREAK, cause.value, "train.py", line, "", "about", "words", frames=frames)


def edited(project: Project, make: Callable[[Problem, Project], Edit], problem: Problem) -> str:
    edit = make(problem, project)
    return applied(edit.changes, project.source)["train.py"].decode()


def function(body: str) -> str:
    return "import torch\ndef f(x):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


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
            "norm = x.norm()\nif 2 < float(norm): return x + 1\nreturn -x",
            "norm = x.norm()\nreturn torch.where(2 < norm, x + 1, -x)\n",
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("n = x.abs().max().item()  # n\nreturn x / n", "n = x.abs().max().detach()  # n\nreturn x / n\n"),
        (
            "y = x * 2\nn = float(torch.mean(y))\nreturn n - y * 3 + w",
            "y = x * 2\nn = torch.mean(y).detach()\nreturn n - y * 3 + w\n",
        ),
        ("return (x - x.mean().item()).relu() + w", "return (x - x.mean().detach()).relu() + w\n"),
        (
            "n = x.norm().item()\nz = x * n\nreturn n + x.relu()",
            "n = x.norm().detach()\nz = x * n\nreturn n + x.relu()\n",
        ),
    ],
)
def test_a_number_that_is_used_with_its_own_tensor_alone_stays_a_tensor(
    tmp_path: Path, before: str, after: str
) -> None:
    source = function(before)
    line = next(at for at, text in enumerate(source.splitlines(), 1) if "item()" in text or "float(" in text)
    project = project_of(tmp_path, source)
    assert textwrap.dedent(edited(project, detach_number, problem_at(line)).split("\n", 2)[2]) == after
    probe = applied(detach_number(problem_at(line), project).probe, project.source)["train.py"].decode()
    assert ".is_floating_point() and " in probe
    assert "else 1 / 0)" in probe


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("n = x.max().item()\nreturn x / n, n", "uses the number otherwise"),
        ("n = x.sum().item()\nreturn x * n", "uses the number otherwise"),
        ("return x * float(x.max())", "uses the number otherwise"),
        ("n = x.max().item()\nreturn n / x", "uses the number otherwise"),
        ("n = x.max().item()\nreturn x / (n + 1)", "uses the number otherwise|a number"),
        ("n = x.max().item()\nreturn w / n", "with another tensor than x"),
        ("n = x.max().item()\nreturn x / n + n * w", "with another tensor than x"),
        ("n = x.max().item()\nreturn self.fc(x) / n", "a call of self.fc"),
        ("n = x.max().item()\nif n > 0:\n    return x / n", "uses the number otherwise"),
        ("n = x.max().item()\nreturn x ** n", "uses the number otherwise"),
        ("n = x.max().item()\nn = 2\nreturn x * n", "n has other values"),
        ("n = x.max().item()\nx = x.double()\nreturn x * n", "x is not known to be one tensor"),
        ("n = x.max().item()\nx.data = w\nreturn x * n", "x is not known to be one tensor"),
        ("for y in w:\n    n = y.max().item()\n    z = y * n", "a loop assigns it|not known to be one tensor"),
        ("while w:\n    y = w()\n    n = y.max().item()\n    z = y * n", "a loop assigns it"),
        ("n = x.max().item()\ng = lambda: x * n\nreturn g", "x is not known to be one tensor"),
        ("n = x.argmax().item()\nreturn x * n", "is not known to have the dtype"),
        ("n = x.max(0).item()\nreturn x * n", "is not known to have the dtype"),
        ("n = (x > 0).sum().item()\nreturn x * n", "is not known to have the dtype"),
        ("n = x.any().item()\nreturn x * n", "is not known to have the dtype"),
        ("n = x.item()\nreturn x * n", "is not known to have the dtype"),
        ("n = int(x.max())\nreturn x * n", "is not known to have the dtype"),
        ("n = x.max().item()\nreturn x.add(n)", "uses the number otherwise"),
        ("n = x.max().item()\nx += n\nreturn x", "x is not known to be one tensor"),
        ("n = x.max().item()\nw.append(n)\nreturn x * n", "uses the number otherwise"),
        ("with torch.autocast('cpu'):\n    return x * x.sum().item()", "uses autocast"),
        ("float = g\nreturn x * float(x.sum())", "torch or float is another thing"),
    ],
)
def test_a_number_that_anything_else_may_see_stays_a_number(tmp_path: Path, body: str, why: str) -> None:
    source = function(body)
    reads = ("item()", "float(", "int(")
    line = next(at for at, text in enumerate(source.splitlines(), 1) if any(each in text for each in reads))
    with pytest.raises(NoEdit, match=why):
        detach_number(problem_at(line), project_of(tmp_path, source))


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


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("try:\n    return int(x.item())\nexcept ValueError:\n    return 0", "the try at train.py:3"),
        ("try:\n    return inner(x)\nexcept ValueError:\n    return 0", "the try at train.py:3"),
        ("return g(x)\ndef g(x):\n    try:\n        return x.item()\n    except OSError: ...", "the try at train.py:5"),
        ("with contextlib.suppress(ValueError):\n    return x.item()", "the with at train.py:3"),
        ("n = x.item()\nassert n >= 0\nreturn n", "the assert at train.py:4"),
        ("y = x[x > 0]\nassert y.shape[0] > 0\nreturn y", "the assert at train.py:4"),
        ("return x.item()\ng = torch.compile(h)\ndef h(x):\n    assert x.item()", "the assert at train.py:6"),
        ("n = x.item()\nif a:\n    n = x.max().item()\nreturn n", "train.py:5 reads a number"),
        ("n = x.item()\nif a:\n    n = float(w)\nreturn n", "train.py:5 reads a number"),
        ("n = x.item()\nreturn max(n, 1.5)", "train.py:4 uses a number"),
        ("n = x.item()\nm = n + 1\nreturn m or 5", "train.py:5 uses a number"),
        ("return 2 if x.item() else 3", "train.py:3 uses a number"),
        ("n = x.sum().item()\nif n != n:\n    return x\nreturn x * n", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * (n - n)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * (n * 0)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * (0 / n)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * (n + 1e16 - 1e16)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nm = n + 1e16\nreturn x * (m - 1e16)", "train.py:5 uses a number"),
        ("n = x.sum().item()\nreturn alpha * n * x", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn x * self.rate(x, n)", "train.py:4 uses a number"),
        ("n = x.sum().item()\nself.n = n\nreturn x", "train.py:4 assigns a value"),
        ("n = x.sum().item()\nn = n * 2\nreturn x * n", "train.py:3 assigns a value"),
        ("n = x.sum().item()\nreturn g(x) * n\ndef g(x):\n    return 0.0", "train.py:4 uses a number"),
        ("n = x.sum().item()\nreturn [x[:n]]", "train.py:4 uses a number"),
        ("n = x.sum().item()\nx = 2.0\nreturn x * n", "train.py:5 uses a number"),
        ("y = h(x)\nreturn x * (y - y)\ndef h(x):\n    return x.item()", "train.py:6 reads a number"),
        ("return x[w]", "how the line reads the number"),
    ],
)
def test_what_is_captured_may_not_raise_where_the_function_would_see_it(tmp_path: Path, body: str, why: str) -> None:
    *_, make = edits_for(problem_at(3, BreakCause.ITEM), project_of(tmp_path, function(body)))
    with pytest.raises(NoEdit, match=why):
        make()


def test_a_number_that_a_helper_returns_is_not_captured(tmp_path: Path) -> None:
    source = function("y = h(x)\nreturn x * (y - y)\ndef h(x):\n    return x.item()").replace("\n    def h", "\ndef h")
    source = source.replace("        return x.item()", "    return x.item()")
    *_, make = edits_for(problem_at(6, BreakCause.ITEM), project_of(tmp_path, source))
    with pytest.raises(NoEdit, match=r"train.py:6 uses a number"):
        make()


@pytest.mark.parametrize(
    "body",
    [
        "n = x.item()\nm = x.max().item()\nk = max(1, len(a)) or 3\nreturn x * n + (m / 2) * x, m",
        "n, m = 1, float(x.sum())\nreturn x".replace("n, m = 1, ", "m = "),
        "n = x.abs().max().item()\nreturn self.fc(x) / (n + 1e-6)",
        "y = torch.relu(x)\nn = y.mean().item()\ny -= 1\nz = y.add(n)\nreturn -n * z[:, 0], {'n': n}",
        "n = float(x.sum())\nk = int(x.shape[0] * 0.5)\nreturn (x - 1) * n + k",
    ],
)
def test_numbers_that_the_run_has_read_and_that_are_used_as_usual_may_be_captured(tmp_path: Path, body: str) -> None:
    lines = frozenset(("train.py", line) for line in (3, 4))
    project = replace(project_of(tmp_path, function(body)), found=lines)
    line = next(at for at, text in enumerate(function(body).splitlines(), 1) if "item()" in text or "float(" in text)
    *_, make = edits_for(problem_at(line, BreakCause.ITEM), project)
    assert make().changes


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("i = torch.nonzero(x > 0).squeeze(1)\ny = x[i].float() * 2\nreturn y.sum(), y, i", ""),
        ("y = x[x > 0]\nz = (y > 1)\nreturn {'z': z, 'n': -y.mean()}", ""),
        ("i = torch.nonzero(x > 0).squeeze()\nreturn x[i]", "train.py:3 uses a tensor"),
        ("y = x[x > 0].squeeze(-1)\nreturn y", "train.py:3 uses a tensor"),
        ("y = x[x > 0]\nreturn y * w", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nif y.shape[0]:\n    return y", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nreturn torch.cat([y, w])", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nreturn y.view(-1)", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nreturn y[0]", "train.py:4 uses a tensor"),
        ("y = x[x > 0]\nself.y = y", "train.py:4 assigns a value"),
        ("y = x.mine()\nreturn y", "what makes a shape"),
    ],
)
def test_a_shape_that_depends_on_data_is_captured_where_its_uses_are_known(tmp_path: Path, body: str, why: str) -> None:
    (make,) = edits_for(problem_at(3, BreakCause.DYNAMIC_SHAPE), project_of(tmp_path, function(body)))
    if not why:
        assert make().changes
        return
    with pytest.raises(NoEdit, match=why):
        make()


@pytest.mark.parametrize(
    ("body", "source", "is_edited"),
    [
        ("return x * t", "L['t']", True),
        ("return x.relu() * (t + 1), t", "L['t']", True),
        ("return self.w(x) * self.t", "L['self'].t", True),
        ("return x * min(t, 1)", "L['t']", False),
        ("return x * t ** 2", "L['t']", False),
        ("return x * (1 / (t + 1))", "L['t']", False),
        ("return x * math.sqrt(t)", "L['t']", False),
        ("return x if t != t else x * t", "L['t']", False),
        ("return F.dropout(x, self.t)", "L['self']._modules['a'].t", False),
        ("t = t + 1\nreturn x * t", "L['t']", False),
        ("return x * c['t']", "L['c']['t']", False),
        ("return x * t", "L['g'].__closure__[0].cell_contents", False),
    ],
)
def test_dynamic_makes_no_float_a_part_of_a_graph_that_may_differ_there(
    tmp_path: Path, body: str, source: str, is_edited: bool
) -> None:
    guards = (
        EntryGuard("TENSOR_MATCH", "check_tensor(L['x'])", "L['x']", (0, 3)),
        EntryGuard("EQUALS_MATCH", f"{source} == 0.5", source, (0, 3)),
        EntryGuard("EQUALS_MATCH", "L['self'].eps == 1e-05", "L['self'].eps", None),
    )
    text = function(body).replace("def f(x)", "@torch.compile\ndef f(x, t)")
    run = Run(compilations=(Compilation("0/0", 0, guards=guards),))
    project = replace(project_of(tmp_path, text), run=run)
    problem = replace(problem_at(3), compiled_at=("train.py", 2))
    if is_edited:
        assert "@torch.compile(dynamic=True)" in edited(project, dynamic_compile, problem)
        return
    with pytest.raises(NoEdit, match=r"never NaN or infinite|assigns to t|is a float"):
        dynamic_compile(problem, project)


def test_asserts_of_types_and_a_finally_do_not_matter_for_what_is_captured(tmp_path: Path) -> None:
    body = "assert x.dim() == 1 and isinstance(x, torch.Tensor), 'a'\ntry:\n    return x.item()\nfinally:\n    pass"
    *_, make = edits_for(problem_at(5, BreakCause.ITEM), project_of(tmp_path, function(body)))
    assert make().changes


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
        (source, "size of self.weight in dimension 0", "is not that of a variable"),
        (source + "torch._dynamo.mark_static(x)\n", problem.checked, "decides itself"),
        (source + "h = torch.compile(g, dynamic=False)\n", problem.checked, "decides itself"),
    ):
        with pytest.raises(NoEdit, match=why):
            dynamic_source(replace(problem, checked=checked), project_of(tmp_path, other))


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
    assert len(list(edits_for(Problem(RECOMPILATION, between, "train.py", 1, "", "", ""), project))) == 3
