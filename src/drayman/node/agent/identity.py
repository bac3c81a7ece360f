"""Which agent runs a node: told by an annotation of the lease, for two agents of one node would undo each other's work.

The lease's `holderIdentity` is the name of the node, as with a kubelet, and the same for both. An agent is known by its root folder, so
one that was killed and comes back is the same.
"""

from __future__ import annotations

import os
import socket
import uuid
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from drayman.api.struct import Json
from drayman.api.times import moment_of
from drayman.node.reporting import LEASE_SECONDS
from drayman.plugins.files import write_atomically

AGENT: Final = "drayman.dev/agent"
"""Annotation of a node's lease."""
_FILE: Final = "agent-id"


class AgentIdentity(Struct, frozen=True):
    """An agent, and where to find it."""

    id: str
    """That of its root folder."""
    process: int
    host: str
    folder: str

    @classmethod
    def here(cls, root: Path) -> AgentIdentity:
        """That of this process. Raises OSError."""
        file = root / _FILE
        try:
            known = file.read_text().strip()
        except FileNotFoundError:
            known = ""
        if not known:
            known = str(uuid.uuid4())
            write_atomically(file, known.encode())
        return cls(known, os.getpid(), socket.gethostname(), str(root))

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def other_agent(
    lease: dict[str, Json], identity: AgentIdentity, now: datetime
) -> AgentIdentity | None:
    """The agent that has renewed a lease within the time that it is good for, unless it is this one."""
    annotations = lease["metadata"].get("annotations") or {}
    try:
        found = msgspec.json.decode(annotations.get(AGENT, ""), type=AgentIdentity)
        renewed = moment_of(lease["spec"]["renewTime"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None
    is_alive = (now - renewed).total_seconds() < LEASE_SECONDS
    return found if is_alive and found.id != identity.id else None
