"""Folders with restricted access: those of pods, with Secrets, tokens and what containers wrote, and those with credentials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

_PRIVATE: Final = 0o700


def make_private(folder: Path) -> None:
    """A folder that nobody but the agent's user looks into, made if need be, and closed if it was open. Raises OSError.

    Containers see what they are shown of it by mounts, which are made before they become another user.
    """
    folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    folder.chmod(_PRIVATE)


class Hidden(Struct, frozen=True):
    """What containers do not see of the machine: credentials of the cluster, and the files of other pods. The paths are real ones."""

    paths: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()
    """Folders among them that pods may mount: a driver that runs as a pod has its sockets there."""

    @classmethod
    def of(cls, paths: Sequence[Path], shown: Sequence[Path]) -> Hidden:
        return cls(tuple(path.resolve() for path in paths), tuple(path.resolve() for path in shown))

    def refuses(self, path: Path) -> bool:
        """Whether a pod may not mount this."""
        real = path.resolve()
        return any(map(real.is_relative_to, self.paths)) and not any(
            map(real.is_relative_to, self.shown)
        )
