"""The supported Pythons are the same in every list: tables, rules, the package's metadata, the README."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from depyf.decompiler.bytecode.opcode_table import known_versions

ROOT = Path(__file__).resolve().parents[3]
NAMES = [f"{major}.{minor}" for major, minor in known_versions()]


def test_every_table_has_rules() -> None:
    folder = ROOT / "src" / "depyf" / "decompiler" / "normal"
    rules = {path.stem for path in folder.glob("v3*.py")}
    differ = rules ^ {"v" + name.replace(".", "") for name in NAMES}
    assert not differ, f"bytecode/tables/cp*.py and normal/v*.py are not of the same Pythons: {sorted(differ)}"
    for name in NAMES:
        assert importlib.import_module(f"depyf.decompiler.normal.v{name.replace('.', '')}").DIALECT


def test_a_version_is_in_every_list() -> None:
    classifiers = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert classifiers == NAMES, "the classifiers of pyproject.toml and decompiler/bytecode/tables/ differ"
    row = f"| CPython, the decompiler | {NAMES[0]} to {NAMES[-1]} |"
    assert row in (ROOT / "README.md").read_text(), f"README.md has no row {row}"
