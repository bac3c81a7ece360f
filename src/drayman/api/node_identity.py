"""Who the agent of a node is to an API server: the user `system:node:NAME` in the group `system:nodes`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

NODE_USER: Final = "system:node:"
NODES: Final = "system:nodes"
RUNTIME: Final = "drayman://"
"""How the `containerRuntimeVersion` of a node begins that an agent of Drayman runs."""


def user_of(node: str) -> str:
    return f"{NODE_USER}{node}"


def node_of(user: str, groups: Collection[str]) -> str | None:
    """The node of which a user is the agent; None for anybody else."""
    if NODES in groups and user.startswith(NODE_USER):
        return user.removeprefix(NODE_USER)
    return None
