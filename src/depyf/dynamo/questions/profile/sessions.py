"""A session for one question: what is compiled is recorded, and no dump stays."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from typing import Iterator

from depyf.dynamo.capture.hub import capture
from depyf.dynamo.capture.session import Session
from depyf.dynamo.store.directory import DumpDirectory


@contextlib.contextmanager
def own_session() -> Iterator[Session]:
    """Record what is compiled in the block. Compiled code stays where PyTorch has put it."""
    directory = tempfile.mkdtemp(prefix="depyf_profile_")
    session = Session(DumpDirectory.at(directory), clean_wild_fx_code=True, log_bytecode=False, stepping=False)
    try:
        capture.start(session)
        yield session
    finally:
        capture.drop(session)
        shutil.rmtree(directory, ignore_errors=True)
