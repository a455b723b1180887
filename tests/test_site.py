"""The documentation site builds, strict: every link and anchor leads somewhere. Needs what ``make docs`` installs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("material")
pytest.importorskip("mkdocstrings")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """A gallery of one page, in the place of those that take minutes to write."""
    folder = tmp_path / "gallery"
    folder.mkdir()
    (folder / "one.html").write_text("<!doctype html><title>one</title>")
    row = '[{"name": "one", "title": "One", "program": "a program", "headline": "1 graph"}]'
    (folder / "gallery.json").write_text(row)
    return folder


def build(configuration: Path, gallery: Path) -> subprocess.CompletedProcess[str]:
    site = gallery.parent / "site"
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(configuration), "-d", str(site)],
        cwd=ROOT,
        env={**os.environ, "GALLERY": str(gallery), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_site_builds_and_has_what_is_generated(gallery: Path) -> None:
    done = build(ROOT / "mkdocs.yml", gallery)
    assert done.returncode == 0, done.stderr
    site = gallery.parent / "site"
    assert "install-hook" in (site / "command-line" / "index.html").read_text()
    interface = (site / "api" / "index.html").read_text()
    assert "Return the cache entry that" in interface
    assert "depyf.find_nonfinite" in interface
    assert 'href="one.html"' in (site / "gallery" / "index.html").read_text()
    assert (site / "gallery" / "one.html").exists()
    assert "What never" in (site / "security" / "index.html").read_text()
    assert "https://fonts" not in (site / "index.html").read_text()


def test_a_link_that_leads_nowhere_fails(gallery: Path) -> None:
    docs = gallery.parent / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Home\n\n[gone](gone.md), [no heading](#none)\n")
    configuration = gallery.parent / "mkdocs.yml"
    text = (ROOT / "mkdocs.yml").read_text().split("nav:\n  - Home")[0]
    text = text.replace("hooks: [tools/site/hooks.py]\n", "").replace("docs_dir: docs", f"docs_dir: {docs}")
    configuration.write_text(text)
    done = build(configuration, gallery)
    assert done.returncode == 1
    assert "gone.md" in done.stderr
    assert "none" in done.stderr
