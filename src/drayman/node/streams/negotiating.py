"""Which protocol a connection goes on with, when it is not a WebSocket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.node.streams.model import NodeApiError
from drayman.node.streams.takeover import SPDY

STREAM_PROTOCOL: Final = "X-Stream-Protocol-Version"


def is_spdy(upgrade: str) -> bool:
    """Whether a request with this header wants to go on in SPDY."""
    return upgrade.lower() == SPDY.lower()


def stream_protocol(offered: Sequence[str], accepted: Sequence[str]) -> str:
    """The best protocol that both ends know. Raises NodeApiError 400 or 403, as a kubelet answers."""
    names = [name.strip() for each in offered for name in each.split(",") if name.strip()]
    if not names:
        raise NodeApiError(400, f"unable to upgrade: {STREAM_PROTOCOL} is required")
    for protocol in accepted:
        if protocol in names:
            return protocol
    message = (
        f"unable to negotiate protocol: client supports {names}, server accepts {list(accepted)}"
    )
    raise NodeApiError(403, message)
