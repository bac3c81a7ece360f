"""Room for recursion, and how much of it a tree needs.

Trees are at most a few hundred levels deep, because the parser refuses more, but a level takes several Python frames in some passes and
macros multiply levels. Frames of Python functions live on the heap, so a higher limit is safe; it is lowered again as soon as the
last user in any thread is done.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from drayman.cel import ast

_FRAMES = 25_000
_lock = Lock()
_users = 0
_saved = 0


@contextmanager
def room_for_recursion() -> Iterator[None]:
    """Raises the interpreter's recursion limit within the block."""
    global _users, _saved  # noqa: PLW0603
    with _lock:
        if _users == 0:
            _saved = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_saved, _FRAMES))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_saved)


def levels(expr: ast.Expr) -> int:
    """The number of levels of a tree."""
    deepest = 0
    pending = [(expr, 1)]
    while pending:
        node, level = pending.pop()
        deepest = max(deepest, level)
        pending.extend((child, level + 1) for child in ast.children(node))
    return deepest
