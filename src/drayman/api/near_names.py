"""What a user who gave a name that does not exist may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_MOST: Final = 3
_SHORTEST_START: Final = 3
"""Letters of a name that was left unfinished; fewer are the start of too many names."""


def did_you_mean(name: str, known: Iterable[str], listed_by: str = "") -> str:
    """The end of a sentence that says that there is no such name: the nearest that exist, and where all of them are listed."""
    from difflib import get_close_matches  # not needed by a command that succeeds

    names = sorted(known)
    begun = [each for each in names if len(name) >= _SHORTEST_START and each.startswith(name)]
    close = get_close_matches(name, names, n=_MOST)
    found = [*begun, *(each for each in close if each not in begun)][:_MOST]
    lists = f"{listed_by} lists them" if listed_by else ""
    if found:
        return f"; did you mean {' or '.join(found)}?" + (f" {lists}" if lists else "")
    return f"; {lists}" if lists else ""
