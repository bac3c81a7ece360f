"""Work beside a test, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def meanwhile(work: Callable[[], None], ends: threading.Event) -> Iterator[None]:
    """Within the block some work goes on, which ends when the event is set."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
