"""Write the files about a whole session when the hub (``capture/hub.py``) flushes or ends it.

``prepare`` registers ``SessionFiles`` with the hub, so that ``capture/`` imports nothing of ``dump/``.
A module of its own: the one table of what is written when, whereas each kind of file is made elsewhere.
"""

from __future__ import annotations

from depyf.dynamo.capture.graphs import write_held_graphs
from depyf.dynamo.capture.hub import Writer, capture
from depyf.dynamo.capture.session import Session
from depyf.dynamo.dump.full_code.writing import write_full_code
from depyf.dynamo.dump.manifest import begin, end, note_runs, reset_after_fork, write_manifest, write_postponed
from depyf.dynamo.dump.notes import AT_THE_END, SO_FAR, write_notes
from depyf.dynamo.dump.precompiled import dump_earlier
from depyf.dynamo.hooks.safely import report_out_of_stack, safely


class SessionFiles(Writer):
    """Writes ``full_code`` files, notes, the page, the index and the manifest."""

    def begin(self, session: Session) -> None:
        begin(session)

    def flush(self, session: Session) -> None:
        safely("counting what ran")(capture.count_runs)()
        safely("writing the last graphs")(write_held_graphs)(session)
        safely("dumping what was compiled earlier")(dump_earlier)(session)
        unreported = session.unreported()
        for written in safely("writing full_code files")(write_full_code)(unreported) or []:
            session.add(written)
        write_notes(session, unreported, SO_FAR)
        safely("counting what ran")(note_runs)(session)
        report_out_of_stack()

    def finish(self, session: Session) -> None:
        write_notes(session, session, AT_THE_END)
        write_manifest(session)

    def write_page(self, session: Session) -> None:
        write_manifest(session, at_once=True)

    def keep(self, session: Session) -> None:
        end(session)

    def write_postponed(self) -> None:
        write_postponed()

    def reset_after_fork(self) -> None:
        reset_after_fork()
