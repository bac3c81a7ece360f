"""Preparing and unpreparing claims, so that a call that is repeated, interrupted or made twice at a time does no harm.

Claims are worked on concurrently; calls for the same claim wait for each other, also between two instances of the driver. A claim goes
through

    record "started" -> the driver prepares -> CDI file -> status of the claim -> record "completed" -> answer

and whoever finds a record that only started has the driver undo it before anything else. Work that has begun is finished even if the node
gives up waiting: the node asks again, and then gets the answer. When the kit ends, it waits for a while; a driver that hangs must not keep
the process, and what it leaves half done is undone like what a crash leaves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from drayman.api.resource import CounterSet, Device, ResourceClaim
from drayman.cluster import Client
from drayman.cluster.errors import ClusterError, NotFoundError, StatusError
from drayman.cluster.resources import RESOURCE_CLAIMS
from drayman.driver_configs.decoding import ConfigError
from drayman.driver_configs.memory_limits import refusal_of_limits, reserved_pods
from drayman.drivers.kit.checkpoint import Checkpoint, Record
from drayman.drivers.kit.claims import DeviceKey, claim_of, own_results, require_usable
from drayman.drivers.kit.driver import Driver, Preparation
from drayman.drivers.kit.edits import answer_for, cdi_kind
from drayman.drivers.kit.errors import KitError, PrepareError, words_of
from drayman.drivers.kit.locks import Locks
from drayman.drivers.kit.metadata import MetadataFiles
from drayman.drivers.kit.metrics import Metrics
from drayman.drivers.kit.model import Claim, Prepared
from drayman.drivers.kit.overlapping import overlap
from drayman.drivers.kit.statuses import statuses_of, write_statuses
from drayman.drivers.kit.threads import Threads, driver_errors
from drayman.plugins.cdi import file_name, write_spec
from drayman.plugins.errors import CdiError
from drayman.plugins.model import ClaimRef, Failed, Ready, writable

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
_API_S: Final = 30.0
"""A node waits for 45 seconds, and should hear why nothing comes."""
_CHECK_S: Final = 2.0
"""To look at a claim that is prepared already, whose answer can be given without."""
_SETTLE_S: Final = 5.0
"""How long the end of the kit waits for a driver: there may be several, one after another, and `drayman down` waits for 15 seconds."""
_BREAK_OFF_S: Final = 1.0
_TAKING: Final = "devices"
_SERIAL: Final = "serialize"


class Preparer:
    """Prepares the claims of one driver."""

    def __init__(
        self,
        driver: Driver,
        client: Client,
        *,
        checkpoint: Checkpoint,
        locks: Locks,
        cdi_dir: Path,
        devices: Callable[[], Mapping[DeviceKey, Device]],
        counters: Callable[[], Sequence[CounterSet]],
        threads: Threads,
        metrics: Metrics,
        boot_id: str,
        files: MetadataFiles,
        describes: bool,
        settle_s: float = _SETTLE_S,
    ) -> None:
        """`devices` and `counters` say what there is now; `describes`, whether containers get files about theirs.

        `settle_s` is how long `settle` waits.
        """
        self._driver = driver
        self._client = client
        self._checkpoint = checkpoint
        self._locks = locks
        self._cdi_dir = cdi_dir
        self._devices = devices
        self._counters = counters
        self._threads = threads
        self._metrics = metrics
        self._boot_id = boot_id
        self._files = files
        self._describes = describes
        self._settle_s = settle_s
        self._working: set[asyncio.Task[Any]] = set()
        """Named after what they do."""

    async def prepare(self, claims: Sequence[ClaimRef]) -> dict[str, Ready | Failed]:
        """Answers every claim."""
        work = [
            asyncio.create_task(self._answer(ref), name=f"prepares claim {ref}") for ref in claims
        ]
        answers = await self._finish(work)
        return {ref.uid: answer for ref, answer in zip(claims, answers, strict=True)}

    async def unprepare(self, claims: Sequence[ClaimRef]) -> dict[str, Failed | None]:
        """Answers every claim; one that is not known is not prepared, which is what was wanted."""
        work = [
            asyncio.create_task(self._removal(ref), name=f"unprepares claim {ref}")
            for ref in claims
        ]
        removals = await self._finish(work)
        return {ref.uid: failed for ref, failed in zip(claims, removals, strict=True)}

    async def _finish(self, work: list[asyncio.Task[T]]) -> list[T]:
        for task in work:
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        if work:
            await asyncio.wait(work)  # which does not cancel them if it is cancelled itself
        return [task.result() for task in work]

    async def settle(self) -> None:
        """Returns when nothing is being worked on: what takes too long is broken off, and all of it at once if this is cancelled."""
        try:
            async with asyncio.timeout(self._settle_s):
                while self._working:
                    await asyncio.wait(self._working)
        except TimeoutError:
            _log.warning(
                "driver %s still %s; ending without it, and it is undone before the claim is worked on again",
                self._driver.name,
                " and ".join(sorted(task.get_name() for task in self._working)),
            )
        finally:
            await self._break_off()

    async def _break_off(self) -> None:
        """Locks are let go of in an orderly way, while there are any. Threads go on until they or the process end."""
        for task in self._working:
            task.cancel()
        if self._working:
            await asyncio.wait(self._working, timeout=_BREAK_OFF_S)

    async def recover(self) -> None:
        """Have the driver take in the claims that have records. Raises CheckpointError, and KitError if the driver fails.

        Meanwhile no other instance begins with a claim that the driver here would not know of.
        """
        async with self._locks.hold(_TAKING):
            with driver_errors():
                claims = await asyncio.to_thread(self.claims)
            try:
                await self._threads.call(self._driver.recover, claims)
            except Exception as error:
                raise KitError(
                    f"driver {self._driver.name} cannot take in what is prepared: {words_of(error)}"
                ) from error

    async def release_gone(self) -> None:
        """Unprepare claims that no longer exist: whoever should have asked for it is gone too. Raises ClusterError."""
        for record in await asyncio.to_thread(lambda: list(self._checkpoint.records())):
            meta = record.claim.metadata
            try:
                found = await self._client.get(RESOURCE_CLAIMS, meta.name, meta.namespace)
                if found.metadata.uid == meta.uid:
                    continue
            except NotFoundError:
                pass
            _log.warning("claim %s/%s is gone; giving back its devices", meta.namespace, meta.name)
            ref = ClaimRef(meta.namespace, meta.name, meta.uid)
            failed = (await self.unprepare([ref]))[ref.uid]
            if failed is not None:
                _log.error("claim %s/%s: %s", meta.namespace, meta.name, failed.message)

    async def _answer(self, ref: ClaimRef) -> Ready | Failed:
        try:
            with self._metrics.operation("prepare"), driver_errors():
                async with self._locks.hold(ref.uid):
                    return await self._prepare(ref)
        except Exception as error:
            return Failed(self._reason(error, f"preparing claim {ref}"))

    async def _removal(self, ref: ClaimRef) -> Failed | None:
        try:
            with self._metrics.operation("unprepare"), driver_errors():
                async with self._locks.hold(ref.uid):
                    record = await asyncio.to_thread(self._checkpoint.read, ref.uid)
                    if record is not None:
                        await self._undo(record)
                    return None
        except Exception as error:
            return Failed(self._reason(error, f"unpreparing claim {ref}"))

    def _reason(self, error: Exception, what: str) -> str:
        """What the node is told, which knows the driver. Errors that nobody has thought of are also logged with where they come from."""
        if isinstance(error, KitError | ConfigError | CdiError):
            words = writable(str(error))
            _log.warning("%s: %s", what, words)
            return words
        if isinstance(error, ClusterError):
            _log.warning("%s: %s", what, error)
            refused = isinstance(error, StatusError)
            return f"the API server {'refuses' if refused else 'cannot be asked'}: {error}"
        _log.error("%s failed", what, exc_info=error)
        return f"it failed: {words_of(error)}"

    async def _prepare(self, ref: ClaimRef) -> Ready:
        record = await asyncio.to_thread(self._checkpoint.read, ref.uid)
        if record is not None and record.answer is not None:
            current = await self._found_again(ref)
            if self._is_current(record, current):
                if current is not None:  # it may be reserved for more pods by now
                    await self._require_limits(current)
                await asyncio.to_thread(self._write_cdi, record, only_missing=True)
                return record.answer
            _log.warning("claim %s has other devices by now; undoing what is prepared", ref)
            await self._undo(record)
        elif record is not None:
            _log.warning("claim %s was interrupted while it was prepared; undoing it first", ref)
            await self._undo(record)
        found = await self._read(ref)
        require_usable(found, ref, self._driver.name)
        devices = self._devices()
        claim = claim_of(found, self._driver, devices)
        started = Record(
            driver=self._driver.name,
            boot_id=self._boot_id,
            stage="started",
            claim=_what_matters(found),
            devices={each.name: each.device for each in claim.devices},
        )
        await self._take(started, found)
        try:
            return await self._carry_out(claim, found, started)
        except Exception as error:
            await self._roll_back(started, error)
            raise

    async def _found_again(self, ref: ClaimRef) -> ResourceClaim | None:
        """A claim that is prepared, as it is now; None where the server does not answer. What is prepared is used then."""
        try:
            async with asyncio.timeout(_CHECK_S):
                return await self._client.get(RESOURCE_CLAIMS, ref.name, ref.namespace)
        except (ClusterError, TimeoutError) as error:
            _log.info("claim %s is answered as it was prepared: %s", ref, error)
            return None

    def _is_current(self, record: Record, found: ResourceClaim | None) -> bool:
        """Whether a claim still has the devices that are prepared for it."""
        if found is None or found.metadata.uid != record.uid:
            return True
        results = own_results(found, self._driver.name)
        return not results or results == record.results

    async def _read(self, ref: ClaimRef) -> ResourceClaim:
        try:
            async with asyncio.timeout(_API_S):
                return await self._client.get(RESOURCE_CLAIMS, ref.name, ref.namespace)
        except NotFoundError:
            raise PrepareError(f"claim {ref} does not exist") from None
        except TimeoutError:
            raise PrepareError(f"claim {ref}: the API server does not answer") from None

    async def _take(self, record: Record, found: ResourceClaim) -> None:
        """Write down that a claim gets its devices, unless others have them or something of them. Raises PrepareError."""
        async with self._locks.hold(_TAKING):
            await asyncio.to_thread(self._checkpoint.look)
            conflict = await self._conflict(record)
            if conflict:
                raise PrepareError(conflict)
            await self._require_limits(found)
            await asyncio.to_thread(self._checkpoint.write, record)
        self._metrics.prepared.set(len(self._checkpoint))

    async def _require_limits(self, claim: ResourceClaim) -> None:
        """Raises PrepareError if the programs that share a device of the claim may use more memory than it has."""
        records = await asyncio.to_thread(lambda: list(self._checkpoint.records()))
        devices = self._devices()
        problem = refusal_of_limits(
            self._driver.name,
            claim,
            [record.claim for record in records],
            lambda result: devices.get((result.pool, result.device)),
            reserved_pods,
        )
        if problem:
            raise PrepareError(problem)

    async def _conflict(self, record: Record) -> str:
        """What keeps a claim from its devices; empty if nothing does."""
        for device in record.exclusive:
            holder = self._checkpoint.holder(device)
            if holder is not None and holder != record.uid:
                return f"device {device[1]} is still prepared for claim {await self._name(holder)}"
        others = self._checkpoint.consumers(but=record.uid)
        found = overlap(record.consuming, others, self._counters())
        if found is None:
            return ""
        if not found.holders:
            return f"device {found.device} overlaps with another device of the claim"
        names = [await self._name(uid) for uid in found.holders]
        return f"device {found.device} overlaps with what is still prepared for claim {', '.join(names)}"

    async def _name(self, uid: str) -> str:
        record = await asyncio.to_thread(self._checkpoint.read, uid)
        meta = record.claim.metadata if record is not None else None
        return f"{meta.namespace}/{meta.name}" if meta is not None else uid

    async def _carry_out(self, claim: Claim, found: ResourceClaim, started: Record) -> Ready:
        async with self._turn():
            seen = await self._among_others(claim)
            given: Preparation = await self._threads.call(self._driver.prepare, seen)
            prepared = given if isinstance(given, Prepared) else Prepared(devices=tuple(given))
            if self._driver.sees_others:  # the next claim must see what this one has got
                taken = replace(started, state=prepared.state)
                await asyncio.to_thread(self._checkpoint.write, taken)
        if self._describes:
            prepared = await asyncio.to_thread(self._files.add, found, claim, prepared)
        answer, spec = answer_for(self._driver.name, claim, prepared)
        completed = replace(
            started, stage="completed", state=prepared.state, answer=answer, spec=spec
        )
        await asyncio.to_thread(self._write_cdi, completed)
        statuses = statuses_of(self._driver.name, prepared.devices)
        if statuses:
            await write_statuses(self._client, found, statuses, self._driver.name)
        await asyncio.to_thread(self._checkpoint.write, completed)
        return answer

    async def _roll_back(self, record: Record, error: Exception) -> None:
        """After a failure: nothing stays half prepared. If that fails too, the record stays, and the next call tries again."""
        try:
            await self._undo(record)
        except Exception as second:
            _log.error("claim %s: %s, and undoing that failed", record.uid, error, exc_info=second)

    async def _undo(self, record: Record) -> None:
        """Have the driver undo what is prepared, then forget it."""
        claim = self._remembered(record)
        async with self._turn():
            await self._threads.call(self._driver.unprepare, await self._among_others(claim))
            await asyncio.to_thread(self.forget_files, record.uid)
            await asyncio.to_thread(self._checkpoint.remove, record.uid)
        self._metrics.prepared.set(len(self._checkpoint))

    def _remembered(self, record: Record) -> Claim:
        """A claim as it was prepared. A configuration that this version of the driver no longer reads must not keep its devices."""
        devices = record.known_devices()
        try:
            return claim_of(record.claim, self._driver, devices, record.state)
        except ConfigError as error:
            _log.warning("claim %s: %s; undoing it with the default", record.uid, error)
            return claim_of(_without_config(record.claim), self._driver, devices, record.state)

    def _turn(self) -> AbstractAsyncContextManager[None]:
        """Of a driver that does one thing at a time."""
        one_at_a_time = self._driver.serialize or self._driver.sees_others
        return self._locks.hold(_SERIAL) if one_at_a_time else nullcontext()

    def claims(self) -> list[Claim]:
        """The claims that have records. Raises CheckpointError, OSError."""
        return [self._remembered(record) for record in self._checkpoint.records()]

    async def _among_others(self, claim: Claim) -> Claim:
        """A claim with what others have, for a driver that goes by it. Raises CheckpointError, OSError."""
        if not self._driver.sees_others:
            return claim
        claims = await asyncio.to_thread(self.claims)
        return replace(claim, others=tuple(each for each in claims if each.uid != claim.uid))

    def _write_cdi(self, record: Record, *, only_missing: bool = False) -> None:
        if record.spec is not None:
            path = self._cdi_path(record.uid)
            if not (only_missing and path.exists()):
                write_spec(path, record.spec)

    def forget_files(self, uid: str) -> None:
        """Remove what there is for the containers of a claim. Raises OSError."""
        self._cdi_path(uid).unlink(missing_ok=True)
        self._files.remove(uid)

    def _cdi_path(self, uid: str) -> Path:
        return self._cdi_dir / file_name(cdi_kind(self._driver.name), uid)


def _what_matters(claim: ResourceClaim) -> ResourceClaim:
    """The parts of a claim that a driver sees."""
    meta = claim.metadata
    kept = type(meta)(name=meta.name, namespace=meta.namespace, uid=meta.uid)
    status = replace(claim.status, devices=())
    return ResourceClaim(metadata=kept, status=status)


def _without_config(claim: ResourceClaim) -> ResourceClaim:
    allocation = claim.status.allocation
    assert allocation is not None
    bare = replace(allocation, devices=replace(allocation.devices, config=()))
    return replace(claim, status=replace(claim.status, allocation=bare))
