"""Folders of pods: there are Secrets and tokens in them, and what containers wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PRIVATE: Final = 0o700


def make_private(folder: Path) -> None:
    """A folder that nobody but the agent's user looks into, made if need be, and closed if it was open. Raises OSError.

    Containers see what they are shown of it by mounts, which are made before they become another user.
    """
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    folder.chmod(_PRIVATE)
