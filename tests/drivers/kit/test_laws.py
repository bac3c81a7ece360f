"""Whatever happens in whichever order: no device is prepared twice, nothing is lost, and nothing is left behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cluster.contract.clusters import in_process
from drayman.api.quantity import Quantity
from drayman.api.resource import Counter, CounterSet, Device, DeviceCounterConsumption
from drayman.cluster import Client, merge_patch
from drayman.cluster.resources import RESOURCE_CLAIMS
from drayman.drivers import kit
from drayman.drivers.kit import Claim, Driver, Prepared, PreparedDevice, PrepareError
from drayman.drivers.kit.checkpoint import Checkpoint
from drayman.drivers.kit.locks import Locks
from drayman.drivers.kit.metadata import MetadataFiles
from drayman.drivers.kit.metrics import Metrics
from drayman.drivers.kit.preparing import Preparer
from drayman.drivers.kit.threads import Threads
from drayman.plugins.cdi import Devices
from drayman.plugins.model import ClaimRef, Failed, Ready

NODE = "node-1"
HAVE = {
    "c0": ["d0"],
    "c1": ["d0"],
    "c2": ["d1", "d2"],
    "c3": ["d2"],
    "c4": ["d3"],
    "c5": ["d3-left"],
    "c6": ["d3-right"],
}
"""The devices of claims. That some have the same, or parts of the same, is what a driver must withstand."""
PARTS = {"d3": {"left", "right"}, "d3-left": {"left"}, "d3-right": {"right"}}
"""What a device has of one that can be divided."""
ROUNDS = 12
STEPS = 25


class Killed(BaseException):
    """The end of a process: nothing that would tidy up runs."""


@dataclass(slots=True)
class Machine:
    """What is done to hardware, which no crash undoes."""

    in_use: dict[str, str] = field(default_factory=dict)
    """Claims by device."""
    fate: str = ""
    """What becomes of the next claim: it fails, or the process is killed, before or after it was set up."""
    violations: list[str] = field(default_factory=list)
    """What should never happen. Noted here, because what a driver raises is only an answer to the node."""

    def take(self, device: str, claim: str) -> None:
        for other, holder in self.in_use.items():
            if device == other or PARTS.get(device, set()) & PARTS.get(other, set()):
                self.violations.append(f"{device} is given to {claim} while {holder} has {other}")
        self.in_use[device] = claim


def ones(names: Iterable[str]) -> dict[str, Counter]:
    return {name: Counter(value=Quantity.parse("1")) for name in names}


class Hardware(Driver):
    name = "law.example.com"

    def __init__(self, machine: Machine) -> None:
        super().__init__(NODE)
        self._machine = machine

    def discover(self) -> kit.Hardware:
        whole = [Device(name=f"d{index}") for index in range(3)]
        parts = [
            Device(
                name=name,
                consumes_counters=(DeviceCounterConsumption(counter_set="d3", counters=ones(has)),),
            )
            for name, has in PARTS.items()
        ]
        counters = CounterSet(name="d3", counters=ones(PARTS["d3"]))
        return kit.Hardware(groups=((*whole, *parts),), counters=(counters,))

    async def prepare(self, claim: Claim) -> Prepared:
        fate, self._machine.fate = self._machine.fate, ""
        for position, each in enumerate(claim.devices):
            self._machine.take(each.name, claim.name)
            if fate and position == 0:
                await asyncio.sleep(0)
                raise Killed if fate == "killed" else PrepareError("it does not work today")
        if fate == "killed late":
            raise Killed
        return Prepared(
            devices=[PreparedDevice(device=each, env={"D": each.name}) for each in claim.devices],
            state={"claim": claim.name},
        )

    async def unprepare(self, claim: Claim) -> None:
        if claim.state not in (None, {"claim": claim.name}):
            self._machine.violations.append(f"{claim.name} is undone with {claim.state}")
        for each in claim.devices:
            if self._machine.in_use.get(each.name) == claim.name:
                del self._machine.in_use[each.name]


@dataclass(slots=True)
class Node:
    """A driver that can be killed and started again."""

    client: Client
    folder: Path
    machine: Machine = field(default_factory=Machine)

    def start(self) -> Preparer:
        driver = Hardware(self.machine)
        checkpoint = Checkpoint(self.folder / "claims", "boot")
        checkpoint.load()
        return Preparer(
            driver,
            self.client,
            checkpoint=checkpoint,
            locks=Locks(self.folder / "lock"),
            cdi_dir=self.folder / "cdi",
            devices=lambda: {(NODE, each.name): each for each in driver.discover().devices},
            counters=lambda: driver.discover().counters,
            threads=Threads("law"),
            metrics=Metrics(driver.name),
            boot_id="boot",
            files=MetadataFiles(driver.name, self.folder),
            describes=True,
        )


async def claims(client: Client) -> dict[str, ClaimRef]:
    found = {}
    for name, devices in HAVE.items():
        spec = {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}
        body = {"metadata": {"name": name}, "spec": {"devices": spec}}
        await client.create(RESOURCE_CLAIMS.as_values(), body, "default")
        results = [
            {"request": "r", "driver": Hardware.name, "pool": NODE, "device": device}
            for device in devices
        ]
        patch = merge_patch({"status": {"allocation": {"devices": {"results": results}}}})
        made = await client.patch(RESOURCE_CLAIMS, name, patch, "default", subresource="status")
        found[name] = ClaimRef("default", name, made.metadata.uid)
    return found


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_devices_are_neither_lost_nor_given_twice(seed: int, tmp_path: Path) -> None:
    """Random calls, several at a time, of which some fail and some end with the process; at the end everything is given back."""
    dice = random.Random(seed)
    async with in_process(tmp_path) as client:
        refs = await claims(client)
        node = Node(client, tmp_path)
        preparer = node.start()
        ready: dict[str, Ready] = {}
        for _ in range(STEPS):
            node.machine.fate = dice.choice(["", "", "", "fails", "killed", "killed late"])
            chosen = dice.sample(sorted(refs), dice.randint(1, 3))
            try:
                if dice.random() < 0.6:
                    answers = await preparer.prepare([refs[name] for name in chosen])
                    assert set(answers) == {refs[name].uid for name in chosen}
                    for name in chosen:
                        answer = answers[refs[name].uid]
                        if isinstance(answer, Ready):
                            assert ready.setdefault(name, answer) == answer
                        else:
                            assert name not in ready, f"{name} was prepared: {answer.message}"
                else:
                    removals = await preparer.unprepare([refs[name] for name in chosen])
                    assert not any(isinstance(each, Failed) for each in removals.values())
                    for name in chosen:
                        ready.pop(name, None)
            except Killed:
                await preparer.settle()
                preparer = node.start()
                for name in chosen:  # answers of the call were lost, whatever it did
                    ready.pop(name, None)
            assert node.machine.violations == []
            for name in ready:
                assert {node.machine.in_use.get(device) for device in HAVE[name]} == {name}
            ids = [i for answer in ready.values() for d in answer.devices for i in d.cdi_ids]
            assert len(Devices.load([tmp_path / "cdi"]).edits(ids)) == len(ids)
        await preparer.unprepare(list(refs.values()))
        assert (node.machine.in_use, node.machine.violations) == ({}, [])
        assert list((tmp_path / "cdi").glob("*")) == []
        assert list((tmp_path / "claims").iterdir()) == []
