"""What is prepared on a node, kept so that neither a crash nor an update of the driver loses a device.

Every claim has a file of its own: preparing a claim writes no other, and two instances of a driver do not overwrite each other's work. A
file is replaced as a whole, and carries a version and a checksum. A record is written before a driver begins and again when it has
finished; one that only says that it began was interrupted. Records from before the last boot are dropped, since the state of the devices
that they speak of has gone with the boot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Final, Literal
from zlib import crc32

import msgspec
from msgspec import Struct, field

from drayman.api.codec import decode_extension, encode_extension
from drayman.api.resource import Device, DeviceRequestAllocationResult, ResourceClaim
from drayman.api.struct import Json
from drayman.drivers.kit.claims import DeviceKey, own_results
from drayman.drivers.kit.errors import CheckpointError
from drayman.plugins.cdi import Spec
from drayman.plugins.files import write_atomically
from drayman.plugins.model import Ready

VERSION: Final = 1
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_UID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,127}")
_ENDING: Final = ".json"


class Record(Struct, frozen=True, kw_only=True):
    """A claim that is prepared, or that was being prepared."""

    driver: str
    boot_id: str
    stage: Literal["started", "completed"]
    claim: ResourceClaim
    """As it was allocated."""
    devices: dict[str, Device] = field(default_factory=dict)
    """Its devices as they were discovered, by name."""
    state: Json = None
    answer: Ready | None = None
    spec: Spec | None = None
    """The CDI file."""

    @property
    def uid(self) -> str:
        return self.claim.metadata.uid

    @property
    def results(self) -> list[DeviceRequestAllocationResult]:
        return own_results(self.claim, self.driver)

    @property
    def exclusive(self) -> list[DeviceKey]:
        """The devices that the claim has to itself."""
        return [(each.pool, each.device) for each in self.results if each.is_exclusive]

    @property
    def consuming(self) -> dict[DeviceKey, Device]:
        """Those of its devices, shared ones too, that consume counters. Whoever only looks at a device consumes nothing."""
        used = {(each.pool, each.device) for each in self.results if not each.admin_access}
        return {
            key: device
            for key, device in self.known_devices().items()
            if key in used and device.consumes_counters
        }

    def known_devices(self) -> dict[DeviceKey, Device]:
        return {
            (each.pool, each.device): self.devices[each.device]
            for each in self.results
            if each.device in self.devices
        }


class _Held(Struct, frozen=True):
    """What a claim keeps from others."""

    exclusive: list[DeviceKey]
    consuming: dict[DeviceKey, Device]


class _File(Struct, frozen=True):
    version: int
    checksum: int
    """CRC-32 of the bytes of the record."""
    record: msgspec.Raw


_record_encoder: Final = msgspec.json.Encoder(enc_hook=encode_extension)
_record_decoder: Final = msgspec.json.Decoder(Record, dec_hook=decode_extension)
_file_decoder: Final = msgspec.json.Decoder(_File)


class Checkpoint:
    """The records in a folder, read and written in threads. What another instance writes is seen at the next look.

    Whoever takes devices has to look and write under one lock between instances.
    """

    def __init__(self, folder: Path, boot_id: str) -> None:
        self._folder = folder
        self._boot_id = boot_id
        self._holders: dict[DeviceKey, str] = {}
        self._held: dict[str, _Held] = {}
        self._lock = Lock()

    def load(self) -> list[Record]:
        """Takes in what there is, and drops what is from before the last boot; returns that. Raises CheckpointError, OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        dropped = []
        for uid in self.uids():
            record = self.read(uid)
            if record is None:
                continue
            if record.boot_id != self._boot_id:
                self.remove(uid)
                dropped.append(record)
            else:
                self._remember(record)
        return dropped

    def uids(self) -> list[str]:
        """The claims that have a record."""
        return sorted(
            path.stem
            for path in self._folder.iterdir()
            if path.suffix == _ENDING and _UID.fullmatch(path.stem)
        )

    def records(self) -> Iterator[Record]:
        for uid in self.uids():
            record = self.read(uid)
            if record is not None:
                yield record

    def read(self, uid: str) -> Record | None:
        """The record of a claim; None if there is none. Raises CheckpointError, OSError."""
        if not _UID.fullmatch(uid):
            return None
        path = self._path(uid)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            file = _file_decoder.decode(content)
            if file.version != VERSION:
                raise CheckpointError(
                    f"{path}: it was written by another version of the kit ({file.version}, and this one reads"
                    f" {VERSION}); run that one, or remove the file once nothing uses the devices of the claim"
                )
            if crc32(file.record) != file.checksum:
                raise CheckpointError(_damaged(path, "its checksum is wrong"))
            return _record_decoder.decode(file.record)
        except msgspec.DecodeError as error:
            raise CheckpointError(_damaged(path, str(error))) from error

    def write(self, record: Record) -> None:
        """Raises CheckpointError for an id that cannot name a file, and OSError."""
        if not _UID.fullmatch(record.uid):
            raise CheckpointError(f"{record.uid!r} is no uid of a claim")
        body = _record_encoder.encode(record)
        file = _File(VERSION, crc32(body), msgspec.Raw(body))
        write_atomically(self._path(record.uid), msgspec.json.encode(file), mode=0o600)
        self._remember(record)

    def remove(self, uid: str) -> None:
        """Raises OSError."""
        self._path(uid).unlink(missing_ok=True)
        self._forget(uid)

    def look(self) -> None:
        """Take in what another instance has prepared or given up since the last look. Raises CheckpointError, OSError."""
        there = set(self.uids())
        known = set(self._held)
        for uid in known - there:
            self._forget(uid)
        for uid in there - known:
            record = self.read(uid)
            if record is not None:
                self._remember(record)

    def holder(self, device: DeviceKey) -> str | None:
        """The uid of the claim that has a device to itself."""
        return self._holders.get(device)

    def consumers(self, but: str) -> dict[str, dict[DeviceKey, Device]]:
        """The devices that consume counters, by the uids of the claims that have them, without one claim."""
        with self._lock:
            return {uid: held.consuming for uid, held in self._held.items() if uid != but}

    def __len__(self) -> int:
        return len(self._held)

    def _remember(self, record: Record) -> None:
        held = _Held(record.exclusive, record.consuming)
        with self._lock:
            self._drop(record.uid)
            self._held[record.uid] = held
            self._holders.update(dict.fromkeys(held.exclusive, record.uid))

    def _forget(self, uid: str) -> None:
        with self._lock:
            self._drop(uid)

    def _drop(self, uid: str) -> None:
        held = self._held.pop(uid, None)
        for device in held.exclusive if held is not None else ():
            if self._holders.get(device) == uid:
                del self._holders[device]

    def _path(self, uid: str) -> Path:
        return self._folder / f"{uid}{_ENDING}"


def _damaged(path: Path, why: str) -> str:
    return (
        f"{path}: the record of a prepared claim is damaged: {why};"
        " remove the file once nothing uses the devices of that claim"
    )


def this_boot(path: Path = BOOT_ID) -> str:
    """What names the present boot of the machine. Raises OSError."""
    return path.read_text().strip()
