"""How to reach a worker: the kubeconfig that a MultiKueueCluster names, in a Secret or in a file.

Whoever may write such a Secret must not thereby run commands on the manager's machine or read its files. So a kubeconfig from a Secret has
everything in it, and none may name a command.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from drayman.api.kueue import MultiKueueClusterSpec
from drayman.cluster.client import Client
from drayman.cluster.errors import ConfigurationError, NotFoundError
from drayman.cluster.kube.connection import Connection
from drayman.cluster.kube.entries import KubeconfigFile, parse_text
from drayman.cluster.kube.kubeconfig import Kubeconfig
from drayman.cluster.resources import generic

SECRETS: Final = generic("v1", "secrets", "Secret")
_KEY: Final = "kubeconfig"
"""Of the Secret's data."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a worker, and a hash of the text that says so."""

    connection: Connection
    digest: str


async def find_access(client: Client, spec: MultiKueueClusterSpec, namespace: str) -> Access:
    """Raises ConfigurationError where the kubeconfig cannot be used, and other ClusterErrors where the Secret cannot be read."""
    source = spec.cluster_source.kube_config
    if source is None:
        raise ConfigurationError(
            "spec.clusterSource.kubeConfig is missing; clusters that a ClusterProfile describes are not supported"
        )
    if source.location_type == "Path":
        path = Path(source.location)
        try:
            content = await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise ConfigurationError(f"kubeconfig {path}: cannot be read: {why}") from error
        return _access(str(path), content, path.parent, files=True)
    name = f"{namespace}/{source.location}"
    content = await _secret(client, source.location, namespace)
    return _access(f"in Secret {name}", content, Path("/"), files=False)


async def _secret(client: Client, name: str, namespace: str) -> bytes:
    try:
        secret = await client.get(SECRETS, name, namespace)
    except NotFoundError as error:
        raise ConfigurationError(f"there is no Secret {namespace}/{name}") from error
    data = (secret.get("data") or {}).get(_KEY)
    if not data:
        raise ConfigurationError(f"Secret {namespace}/{name} has no key {_KEY!r}")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ConfigurationError(f"Secret {namespace}/{name}: {_KEY}: {error}") from error


def _access(name: str, content: bytes, folder: Path, *, files: bool) -> Access:
    parsed = parse_text(name, content)
    _check(name, parsed, files=files)
    return Access(Kubeconfig.of(parsed, folder).connection(), hashlib.sha256(content).hexdigest())


def _check(name: str, parsed: KubeconfigFile, *, files: bool) -> None:
    for each in parsed.users:
        user = each.user
        if user.exec_ is not None or user.auth_provider is not None:
            raise ConfigurationError(
                f"kubeconfig {name}: user {each.name!r} names a command, which is not run for workers: use a token or a certificate"
            )
        if not files and (user.token_file or user.client_certificate or user.client_key):
            raise ConfigurationError(
                f"kubeconfig {name}: user {each.name!r} names a file: put its content into the kubeconfig"
            )
    for cluster in parsed.clusters:
        if not files and cluster.cluster.certificate_authority:
            raise ConfigurationError(
                f"kubeconfig {name}: cluster {cluster.name!r} names a file: put its content into the kubeconfig"
            )
