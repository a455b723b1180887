"""A session for one question: what is compiled is recorded, and a dump stays only where one was asked for."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from typing import Iterator, Optional

from depyf.dynamo.capture.hub import capture
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.prepare import PrepareDebug
from depyf.dynamo.store.directory import DumpDirectory


@contextlib.contextmanager
def own_session(directory: Optional[str] = None) -> Iterator[Session]:
    """Record what is compiled in the block. Compiled code stays where PyTorch has put it. In a ``directory`` the dump
    stays, with its page."""
    if directory is not None:
        with PrepareDebug(directory, stepping=False) as opened:
            if opened.session is not None:
                yield opened.session
        return
    folder = tempfile.mkdtemp(prefix="depyf_profile_")
    session = Session(DumpDirectory.at(folder), clean_wild_fx_code=True, log_bytecode=False, stepping=False)
    try:
        capture.start(session)
        yield session
    finally:
        capture.drop(session)
        shutil.rmtree(folder, ignore_errors=True)
