"""What keeps a container from being started, in the words that a kubelet has for it."""

from __future__ import annotations

from drayman.node.agent.environment import SourceError
from drayman.node.agent.images import ImageError
from drayman.node.claims import ClaimsError
from drayman.node.reporting import FAILED_PREPARE


def reasons_of(error: Exception) -> tuple[str, str]:
    """The reason in the container's status, and that of the event."""
    match error:
        case ClaimsError():
            return "ContainerCreating", FAILED_PREPARE
        case ImageError():
            return error.reason, "Failed"
        case SourceError():
            return "CreateContainerConfigError", "Failed"
        case _:
            return "CreateContainerError", "Failed"
