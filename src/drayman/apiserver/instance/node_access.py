"""What the agent of a node needs to join an instance: a kubeconfig with an identity of its own."""

from __future__ import annotations

from datetime import datetime

from drayman.apiserver.instance.access import node_token
from drayman.apiserver.instance.errors import InstanceError
from drayman.apiserver.instance.folder import Folder, reason
from drayman.apiserver.instance.kubeconfig import kubeconfig
from drayman.apiserver.security.authority import AUTHORITY


def node_kubeconfig(folder: Folder, url: str, node: str, now: datetime) -> bytes:
    """For the agent of one node, valid for a year. Made from the keys in the instance's folder. Raises InstanceError."""
    try:
        authority = (folder.certificates / AUTHORITY).read_bytes()
        return kubeconfig(url, authority, node_token(folder, node, now), {})
    except OSError as error:
        raise InstanceError(f"{error.filename}: {reason(error)}") from error
