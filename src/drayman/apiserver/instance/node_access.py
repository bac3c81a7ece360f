"""What the agent of a node needs to join an instance: a kubeconfig with an identity of its own, and a certificate to serve with."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from drayman.apiserver.instance.access import node_token
from drayman.apiserver.instance.errors import InstanceError
from drayman.apiserver.instance.folder import Folder, reason
from drayman.apiserver.instance.kubeconfig import kubeconfig
from drayman.apiserver.security.authority import AuthorityError, issue_node_certificate
from drayman.apiserver.security.private_files import write_private


def node_kubeconfig(folder: Folder, url: str, node: str, now: datetime) -> bytes:
    """For the agent of one node, valid for a year. Made from the keys in the instance's folder. Raises InstanceError."""
    try:
        authority = (folder.certificates / "ca.crt").read_bytes()
        return kubeconfig(url, authority, node_token(folder, node, now), {})
    except OSError as error:
        raise InstanceError(f"{error.filename}: {reason(error)}") from error


def write_node_certificates(
    folder: Folder, target: Path, node: str, address: str, now: datetime
) -> None:
    """Write `tls.crt`, `tls.key` and `ca.crt`, with which a node serves the instance at an address. Raises InstanceError."""
    try:
        issue_node_certificate(
            folder.certificates, (target / "tls.crt", target / "tls.key"), node, address, now
        )
        write_private(target / "ca.crt", (folder.certificates / "ca.crt").read_bytes())
    except AuthorityError as error:
        raise InstanceError(str(error)) from error
    except OSError as error:
        raise InstanceError(f"{error.filename}: {reason(error)}") from error
