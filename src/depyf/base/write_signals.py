"""Write without the signals that the system sends for a write: ``SIGPIPE`` where nobody reads the other end, and
``SIGXFSZ`` where a file would exceed the limit of the process.

Python ignores both, and a write raises ``OSError`` instead. A program may restore the action of the system
(``signal.signal(SIGPIPE, SIG_DFL)``, as programs for the command line do) or install a handler. Then a message or a
file of depyf would end the program, or call the handler, though the program itself has written nothing.

Both signals go to the thread that writes. They are blocked in this thread, and removed afterwards if the write has
caused them; one that was waiting before stays.
"""

from __future__ import annotations

import contextlib
import signal
from typing import Iterator

from depyf.base.asynchronous import getsignal
from depyf.base.own_builtins import keep_builtins
from depyf.base.restoring import restoring

keep_builtins(globals())

_CAUSED = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, "pthread_sigmask")]


@contextlib.contextmanager
def without_write_signals() -> Iterator[None]:
    """Block both signals of writes inside, if the program does not ignore them."""
    noticed = {each for each in _CAUSED if getsignal(each) != signal.SIG_IGN}
    if not noticed:
        yield
        return
    ours = noticed - signal.pthread_sigmask(signal.SIG_BLOCK, ())
    earlier = signal.sigpending()

    def restore() -> None:
        for each in noticed & signal.sigpending() - earlier:
            _take(each)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ours)

    # Blocking calls the handlers of other signals that have come: one may raise after the mask has changed.
    with restoring(restore) as again, again:
        signal.pthread_sigmask(signal.SIG_BLOCK, ours)
        yield


def _take(waiting: int) -> None:
    """Remove a signal that waits, without a call of its handler."""
    if hasattr(signal, "sigtimedwait"):
        signal.sigtimedwait({waiting}, 0)  # another thread may have got it, if it was sent to the whole process
    else:  # macOS
        signal.sigwait({waiting})
