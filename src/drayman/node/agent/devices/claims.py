"""The claims of a real node: read from the API, written to a file before a driver is asked, and what their devices are to containers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.pods import claim_of
from drayman.api.resource import ResourceClaim
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, NotFoundError
from drayman.cluster.resources import RESOURCE_CLAIMS
from drayman.node.claims import ClaimsError, Devices, Held
from drayman.plugins.files import write_atomically
from drayman.plugins.model import ReadyDevice

VERSION: Final = 1


class StateError(Exception):
    """The file that says what is prepared makes no sense."""


class _File(Struct, frozen=True):
    version: int
    claims: tuple[Held, ...]


@dataclass(frozen=True, slots=True)
class ApiClaims:
    """Claims as the API has them."""

    client: Client

    async def read(self, namespace: str, names: Sequence[str]) -> Sequence[ResourceClaim | None]:
        return await asyncio.gather(*(self._read(namespace, name) for name in names))

    async def _read(self, namespace: str, name: str) -> ResourceClaim | None:
        try:
            return await self.client.get(RESOURCE_CLAIMS, name, namespace)
        except NotFoundError:
            return None
        except ClusterError as error:
            raise ClaimsError(f"claim {name}: {error}") from error


class ClaimsFile:
    """Held claims, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saving = asyncio.Lock()
        self._changes = 0
        self._saved = 0

    def read(self) -> Iterable[Held]:
        """Raises StateError."""
        path = self._path
        if not path.exists():
            return ()
        try:
            found = msgspec.json.decode(path.read_bytes(), type=_File)
        except (msgspec.DecodeError, OSError) as error:
            raise StateError(f"{path}: {error}; it says which devices are prepared") from error
        if found.version != VERSION:
            unknown = f"version {found.version} is not known to this version of drayman"
            raise StateError(f"{path}: {unknown}")
        return found.claims

    def changed(self) -> None:
        self._changes += 1

    async def save(self, held: Mapping[str, Held]) -> None:
        """The changes for several pods are written together. Raises OSError."""
        change = self._changes
        async with self._saving:
            if self._saved >= change:
                return
            change = self._changes
            data = msgspec.json.encode(_File(VERSION, tuple(held.values())))
            await asyncio.to_thread(write_atomically, self._path, data, 0o600)
            self._saved = change


def cdi_ids(pod: Pod, container: str, devices: Devices) -> list[str]:
    """The ids of the devices that a container of a pod uses."""
    found: list[str] = []
    entries = {entry.name: entry for entry in pod.spec.resource_claims}
    for each in (*pod.spec.init_containers, *pod.spec.containers):
        if each.name != container:
            continue
        for use in each.resources.claims:
            name = claim_of(pod, entries[use.name])
            if name:
                found += _ids(devices[name], use.request)
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        for mapping in extended.request_mappings:
            if mapping.container_name == container:
                found += _ids(devices[extended.resource_claim_name], mapping.request_name)
    return list(dict.fromkeys(found))


def is_used(requests: Sequence[str], request: str) -> bool:
    """Whether a device that is there for some requests is used by whoever names one of them, or none for all."""
    return not request or not requests or request in requests


def _ids(devices: Iterable[ReadyDevice], request: str) -> list[str]:
    return [
        name for device in devices if is_used(device.requests, request) for name in device.cdi_ids
    ]
