"""Acts a scenario on a cluster, and compares its state with the recorded one at every checkpoint."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import dataclass

from msgspec import structs

from conformance.scheduling.cluster import Cluster
from conformance.scheduling.comparing import Comparison, held_twice, missing
from conformance.scheduling.scenarios import Kubelet, Scenario, Step, Target
from conformance.scheduling.state import Names, Objects, State, state_of


@dataclass(frozen=True, slots=True)
class Times:
    """How long to wait at a checkpoint until the state is as recorded, and for how long it then has to stay so."""

    patience_s: float
    hold_s: float


class Difference(Exception):
    """The scenario takes another course than recorded."""


class Replay:
    """One scenario on a cluster of its own."""

    def __init__(self, scenario: Scenario, cluster: Cluster, times: Times) -> None:
        self._scenario = scenario
        self._cluster = cluster
        self._times = times
        self._names = Names()
        self._comparison = Comparison(free_devices=scenario.free_devices)

    async def run(self) -> str:
        """What differs at the first checkpoint or step where anything does; empty if the scenario goes as recorded."""
        try:
            for namespace in self._scenario.namespaces:
                metadata = {"name": namespace.name, "labels": namespace.labels}
                await self._cluster.create({"kind": "Namespace", "metadata": metadata})
            for step in self._scenario.steps:
                await self._act(step)
        except Difference as difference:
            return str(difference)
        return ""

    async def _act(self, step: Step) -> None:
        for obj in step.create:
            name = f"create {obj['kind']} {obj['metadata']['name']}"
            _check(name, await self._cluster.create(obj), step.code or 201)
        if step.patch is not None:
            target = await self._resolved(step.patch)
            _check(f"patch {target.name}", await self._cluster.patch(target), step.code or 200)
        if step.delete is not None:
            target = await self._resolved(step.delete)
            _check(f"delete {target.name}", await self._cluster.delete(target), step.code or 200)
        if step.kubelet is not None:
            await self._report(step.kubelet)
        await asyncio.sleep(step.sleep)
        if step.settle:
            await self._settle(step)

    async def _report(self, report: Kubelet) -> None:
        target = await self._resolved(Target("Pod", report.pod, report.namespace))
        if report.remove:
            gone = structs.replace(target, grace=0)
            _check(f"remove {target.name}", await self._cluster.delete(gone), 200)
        else:
            status = {"status": {"phase": report.phase}}
            ran = structs.replace(target, subresource="status", body=status)
            _check(f"status of {target.name}", await self._cluster.patch(ran), 200)

    async def _resolved(self, target: Target) -> Target:
        """A target by its real name, where the server generated that."""
        if "*" not in target.name:
            return target
        self._names.meet((await self._cluster.objects()).claims)
        return structs.replace(target, name=self._names.real(target.name))

    async def _settle(self, step: Step) -> None:
        """Wait until the state is as recorded and stays so. It is read again after every write. Raises Difference."""
        store, clock = self._cluster.store, asyncio.get_running_loop().time
        deadline, equal_since = clock() + self._times.patience_s, None
        hold_s = self._times.hold_s if step.hold_s is None else step.hold_s
        with closing(store.watch_all(since=store.revision)) as changes:
            while True:
                objects = await self._cluster.objects()
                found = self._differences(step, objects)
                if found:
                    equal_since = None
                    left = deadline - clock()
                else:
                    equal_since = equal_since or clock()
                    left = equal_since + hold_s - clock()
                if left <= 0 or not await changes.next(left):
                    break
        if found:
            raise Difference(f"at {step.settle}: {'; '.join(found)}")

    def _differences(self, step: Step, objects: Objects) -> list[str]:
        self._comparison.twins.meet(objects.slices)
        state = state_of(objects, self._names)
        wrong = held_twice(objects)
        recorded = list(self._comparison.differences(step.expect, state))
        if step.right is None:
            return wrong + recorded
        right = list(missing(step.right.partial, _sections(state)))
        return wrong + ([] if step.either and not recorded else right)


def _sections(state: State) -> dict[str, object]:
    return {
        "pods": state.pods,
        "claims": state.claims,
        "podGroups": state.pod_groups,
        "counts": state.counts,
    }


def _check(what: str, status: int, expected: int) -> None:
    if status != expected:
        raise Difference(f"{what}: HTTP {status} instead of {expected}")
