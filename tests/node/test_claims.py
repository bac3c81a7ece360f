"""The rules of preparing that real and simulated nodes share, with drivers that can be slow, absent, or unwilling."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from drayman.api.core import Pod, PodResourceClaim, PodSpec
from drayman.api.meta import ObjectMeta
from drayman.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from drayman.cluster.cache import Cache
from drayman.node.agent.devices.claims import ClaimsFile, StateError
from drayman.node.claims import ClaimsError, NodeClaims
from drayman.node.preparing import NotRegisteredError
from drayman.node.simulated.preparing import CachedClaims
from drayman.plugins.errors import NoAnswerError
from drayman.plugins.model import Answers, ClaimRef, Failed, Ready, ReadyDevice, Removals


def claim(name: str, *drivers: str, pods: str = "ab") -> ResourceClaim:
    results = tuple(
        DeviceRequestAllocationResult(request="r", driver=driver, pool="n", device=name)
        for driver in drivers
    )
    users = tuple(
        ResourceClaimConsumerReference(resource="pods", name=pod, uid=pod) for pod in pods
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="n", uid=f"uid-{name}"),
        status=ResourceClaimStatus(allocation=allocation, reserved_for=users),
    )


def pod(name: str, *claims: str) -> Pod:
    entries = tuple(PodResourceClaim(name=each, resource_claim_name=each) for each in claims)
    metadata = ObjectMeta(name=name, namespace="n", uid=name)
    return Pod(metadata=metadata, spec=PodSpec(resource_claims=entries))


@dataclass
class Drivers:
    """They write down what they are asked, and whether that was in the file by then."""

    path: Path
    calls: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    unwilling: set[str] = field(default_factory=set)
    silent: set[str] = field(default_factory=set)
    open: asyncio.Event = field(default_factory=asyncio.Event)
    at_once: int = 0

    async def prepare(self, driver: str, claims: Sequence[ClaimRef]) -> Answers:
        written = self.path.read_text()
        assert all(ref.uid in written for ref in claims)
        await self._called("prepare", driver, claims)
        return {
            ref.uid: Failed("no")
            if ref.name in self.unwilling
            else Ready((ReadyDevice(("r",), "n", ref.name, ()),))
            for ref in claims
        }

    async def unprepare(self, driver: str, claims: Sequence[ClaimRef]) -> Removals:
        assert all(ref.uid in self.path.read_text() for ref in claims)
        await self._called("unprepare", driver, claims)
        return {ref.uid: Failed("no") if ref.name in self.unwilling else None for ref in claims}

    async def _called(self, verb: str, driver: str, claims: Sequence[ClaimRef]) -> None:
        if driver in self.absent:
            raise NotRegisteredError(f"driver {driver} is not registered on this node")
        if driver in self.silent:
            raise NoAnswerError("/socket: DEADLINE_EXCEEDED", 45.0)
        self.calls.append((verb, driver, tuple(ref.name for ref in claims)))
        self.at_once += 1
        assert self.at_once == 1, "one at a time for each claim"
        await self.open.wait()
        self.at_once -= 1


class Node:
    """A node that finds what the one before it has left."""

    def __init__(self, folder: Path, *claims: ResourceClaim) -> None:
        self.drivers = Drivers(folder / "claims.json")
        self.drivers.open.set()
        cache: Cache[ResourceClaim] = Cache({})
        for each in claims:
            cache.put(("n", each.metadata.name), each)
        self._make = lambda: NodeClaims(
            ClaimsFile(folder / "claims.json"), CachedClaims(cache), self.drivers
        )
        self.claims = self._make()

    def restart(self) -> None:
        self.claims = self._make()


async def test_one_call_for_each_driver(tmp_path: Path) -> None:
    """With all its claims of the pod, after they are on disk; taking them down likewise."""
    node = Node(tmp_path, claim("c", "x", "y"), claim("d", "y"))
    found = await node.claims.prepare(pod("a", "c", "d"))
    assert {name: len(devices) for name, devices in found.items()} == {"c": 2, "d": 1}
    await node.claims.unprepare("a")
    assert node.drivers.calls == [
        ("prepare", "x", ("c",)),
        ("prepare", "y", ("c", "d")),
        ("unprepare", "x", ("c",)),
        ("unprepare", "y", ("c", "d")),
    ]
    assert node.claims.held == ()


async def test_a_claim_stays_until_its_last_pod_has_ended(tmp_path: Path) -> None:
    """Also over a restart of the agent. Pods that come at the same time are prepared one after the other."""
    node = Node(tmp_path, claim("c", "x"))
    node.drivers.open.clear()
    both = asyncio.gather(*(node.claims.prepare(pod(name, "c")) for name in "ab"))
    while not node.drivers.calls:
        await asyncio.sleep(0)
    node.drivers.open.set()
    await both
    node.restart()
    await node.claims.unprepare("a")
    assert node.claims.pods_of("uid-c") == ("b",)
    assert [verb for verb, *_ in node.drivers.calls] == ["prepare", "prepare"]
    await node.claims.unprepare("b")
    assert node.drivers.calls[-1] == ("unprepare", "x", ("c",))
    node.restart()
    assert node.claims.held == ()


async def test_what_is_half_done_is_known(tmp_path: Path) -> None:
    """Where one driver is absent the others' devices stay with the pod, and go when it ends."""
    node = Node(tmp_path, claim("c", "x", "y"))
    node.drivers.absent.add("y")
    with pytest.raises(ClaimsError, match="driver y is not registered"):
        await node.claims.prepare(pod("a", "c"))
    node.restart()
    assert [held.drivers for held in node.claims.of_pod("a")] == [("x", "y")]
    with pytest.raises(ClaimsError, match="driver y is not registered"):
        await node.claims.unprepare("a")
    node.drivers.absent.clear()
    await node.claims.unprepare("a")
    assert node.claims.held == ()


async def test_refusals_name_claim_and_driver(tmp_path: Path) -> None:
    """In both directions; the claim stays held until the driver agrees."""
    node = Node(tmp_path, claim("c", "x"))
    node.drivers.unwilling.add("c")
    with pytest.raises(ClaimsError, match=r"^claim c: driver x: no$"):
        await node.claims.prepare(pod("a", "c"))
    with pytest.raises(ClaimsError, match=r"^claim c: driver x: no$"):
        await node.claims.unprepare("a")
    assert len(node.claims.held) == 1


async def test_a_driver_that_takes_too_long_is_named_with_its_claims(tmp_path: Path) -> None:
    """In both directions; where its socket is says nothing to the owner of a pod."""
    node = Node(tmp_path, claim("c", "x"), claim("d", "x"))
    node.drivers.silent.add("x")
    for name, used, named in (("a", ("c",), "claim c"), ("b", ("c", "d"), "claims c, d")):
        with pytest.raises(ClaimsError) as caught:
            await node.claims.prepare(pod(name, *used))
        assert str(caught.value) == f"{named}: driver x has not answered within 45 s"
    node.drivers.silent.clear()
    await node.claims.unprepare("b")
    node.drivers.silent.add("x")
    with pytest.raises(ClaimsError, match=r"^claim c: driver x has not answered within 45 s$"):
        await node.claims.unprepare("a")


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (None, "claim c does not exist"),
        (claim("c", "x", pods="b"), "claim c is not reserved for the pod"),
        (ResourceClaim(metadata=ObjectMeta(name="c", uid="u")), "claim c is not allocated"),
    ],
    ids=["absent", "reserved for others", "not allocated"],
)
async def test_a_claim_that_is_not_for_the_pod_is_left_alone(
    found: ResourceClaim | None, problem: str, tmp_path: Path
) -> None:
    """No driver is asked, and nothing is held."""
    node = Node(tmp_path, *([] if found is None else [found]))
    with pytest.raises(ClaimsError, match=problem):
        await node.claims.prepare(pod("a", "c"))
    assert node.drivers.calls == []
    assert node.claims.held == ()


async def test_what_cannot_be_written_is_not_prepared(tmp_path: Path) -> None:
    """A driver is asked only after the file has the claim, however often the pod tries."""
    folder = tmp_path / "gone"
    node = Node(folder, claim("c", "x"))
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            await node.claims.prepare(pod("a", "c"))
    assert node.drivers.calls == []
    folder.mkdir()
    await node.claims.prepare(pod("a", "c"))
    assert len(node.drivers.calls) == 1


@pytest.mark.parametrize("content", ["", "{}", '{"version":2,"claims":[]}'])
def test_a_file_that_makes_no_sense_is_not_taken_for_an_empty_one(
    content: str, tmp_path: Path
) -> None:
    """It would be forgotten which devices are prepared."""
    (tmp_path / "claims.json").write_text(content)
    with pytest.raises(StateError, match=r"claims\.json"):
        Node(tmp_path)
