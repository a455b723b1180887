"""Load an earlier dump as the page needs it."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Optional, Tuple

from depyf.report.model.manifest import from_json
from depyf.report.model.run import Artifact, Run


def dumped(folder: Path) -> Tuple[Run, Callable[[Artifact], Optional[str]]]:
    """The run that ``folder/manifest.json`` describes, and the texts of its artifacts."""
    run = from_json((folder / "manifest.json").read_text(encoding="utf-8"))

    def text_of(artifact: Artifact) -> Optional[str]:
        path = folder / artifact.path if artifact.path else None
        return path.read_text(encoding="utf-8") if path is not None and path.is_file() else artifact.text

    return run, text_of
