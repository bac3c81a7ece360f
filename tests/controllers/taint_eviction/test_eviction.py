"""Pods leave tainted devices: spec/dra.md 2.4, row by row, through the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controllers.world import (
    DRIVER,
    NAMESPACE,
    PLACES,
    POD_VALUES,
    World,
    eventually,
    from_template,
    named,
    stays,
    world,
)
from drayman.api.core import Pod
from drayman.api.struct import Json
from drayman.cluster import generic
from drayman.cluster.resources import DEVICE_TAINT_RULES, RESOURCE_SLICES, JsonObject
from drayman.controllers.claims.controller import ClaimController
from drayman.controllers.taint_eviction.controller import TaintEvictionController

SLICES = RESOURCE_SLICES.as_values()
RULES = DEVICE_TAINT_RULES.as_values()
BUDGETS = generic("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")
TAINT = {"key": "example.com/broken", "value": "yes", "effect": "NoExecute"}
REASON = "DeviceTaintManagerEviction"


async def publish(
    w: World, *taints: JsonObject, name: str = "s", generation: int = 1, device: str = "gpu-0"
) -> None:
    """A slice with one device."""
    await w.create(SLICES, slice_(*taints, name=name, generation=generation, device=device))


def slice_(
    *taints: JsonObject, name: str = "s", generation: int = 1, device: str = "gpu-0"
) -> JsonObject:
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": "node-a",
            "pool": {"name": "pool", "generation": generation, "resourceSliceCount": 1},
            "devices": [{"name": device, "taints": list(taints)}],
        },
    }


async def taint(w: World, *taints: JsonObject) -> None:
    """Changes the taints of the only device of slice s."""
    await w.patch(SLICES, "s", {"spec": slice_(*taints)["spec"]})


async def user(w: World, name: str = "p", **result: Json) -> Pod:
    """A pod on a node that uses the claim c, which holds gpu-0."""
    if await w.get_claim("c") is None:
        await w.claim("c")
    pod = await w.pod(name, named("x", "c"), nodeName="node-a")
    await w.allocate("c", pod, **result)
    return pod


async def rule(w: World, name: str = "r", selector: JsonObject | None = None, **taint: str) -> None:
    spec: JsonObject = {"taint": TAINT | taint}
    if selector is not None:
        spec["deviceSelector"] = selector
    await w.create(RULES, {"metadata": {"name": name}, "spec": spec})


async def condition(w: World, name: str = "r") -> JsonObject:
    found = await w.client.get(RULES, name)
    conditions = (found.get("status") or {}).get("conditions") or [{}]
    return conditions[0]


def is_evicted(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


async def stays_on(w: World, name: str = "p") -> None:
    await stays(lambda: w.get_pod(name), lambda pod: pod is not None and not is_evicted(pod))


@pytest.mark.parametrize("place", list(PLACES))
async def test_a_taint_evicts(place: str, tmp_path: Path) -> None:
    """Event, condition and deletion with the pod's own grace period."""
    async with world(tmp_path, TaintEvictionController, place=place) as w:
        await publish(w)
        await user(w)
        await taint(w, TAINT)
        pod = await w.until_pod("p", is_evicted)
        assert pod.metadata.deletion_grace_period_seconds == 30
        (found,) = [c for c in pod.status.conditions if c.type_ == "DisruptionTarget"]
        assert (found.status, found.reason) == ("True", "DeletionByDeviceTaintManager")
        await w.until_event(REASON, "Marking for deletion")
        await w.until_event(
            REASON, f"device {DRIVER}/pool/gpu-0 (example.com/broken=yes:NoExecute)"
        )
        assert {event[0] for event in await w.events()} == {"Normal"}


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
async def test_other_effects_evict_nobody(effect: str, tmp_path: Path) -> None:
    """Only NoExecute drives pods away."""
    async with world(tmp_path, TaintEvictionController) as w:
        await publish(w, TAINT | {"effect": effect})
        await user(w)
        await stays_on(w)


TOLERATIONS: dict[str, tuple[list[JsonObject], bool]] = {
    "none": ([], True),
    "the taint": (
        [{"key": TAINT["key"], "operator": "Equal", "value": "yes", "effect": "NoExecute"}],
        False,
    ),
    "another value": (
        [{"key": TAINT["key"], "operator": "Equal", "value": "no", "effect": "NoExecute"}],
        True,
    ),
    "any value": ([{"key": TAINT["key"], "operator": "Exists", "effect": "NoExecute"}], False),
    "any key": ([{"operator": "Exists", "effect": "NoExecute"}], False),
    "another effect": (
        [{"key": TAINT["key"], "operator": "Exists", "effect": "NoSchedule"}],
        True,
    ),
    "any effect": ([{"key": TAINT["key"], "operator": "Exists"}], False),
    "seconds that are over": (
        [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -5}],
        True,
    ),
    "for a time, and for ever": (
        [
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
            {"operator": "Exists", "effect": "NoExecute"},
        ],
        False,
    ),
    "for a long time": (
        [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}],
        False,
    ),
    "the shortest of two": (
        [
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600},
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
        ],
        True,
    ),
}


@pytest.mark.parametrize("case", list(TOLERATIONS))
async def test_tolerations_of_the_allocation_count(case: str, tmp_path: Path) -> None:
    """The tolerations recorded with the device decide; one without effect stands for all, unlike in 1.36.4."""
    tolerations, leaves = TOLERATIONS[case]
    async with world(tmp_path, TaintEvictionController) as w:
        await publish(w, TAINT)
        await user(w, tolerations=tolerations)
        if leaves:
            await w.until_pod("p", is_evicted)
        else:
            await stays_on(w)


async def test_a_toleration_for_some_seconds_ends(tmp_path: Path) -> None:
    """The seconds count from the time of the taint; the pod stays until then."""
    async with world(tmp_path, TaintEvictionController) as w:
        await publish(w)
        await user(
            w,
            tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}],
        )
        await taint(w, TAINT)
        await stays_on(w)
        await w.until_pod("p", is_evicted)


async def test_a_taint_that_goes_in_time_is_told_and_forgotten(tmp_path: Path) -> None:
    """The pod stays, and an event says that its deletion is off."""
    async with world(tmp_path, TaintEvictionController) as w:
        await publish(w)
        await user(
            w,
            tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
        )
        await w.claim("d")
        impatient = await w.pod("q", named("x", "d"), nodeName="node-a")
        await w.allocate("d", impatient)
        await taint(w, TAINT)
        # Who tolerates nothing goes at once, so by then the taint has been taken notice of.
        await w.until_pod("q", is_evicted)
        await taint(w)
        await w.until_event(REASON, "Cancelling deletion")
        await stays_on(w)


async def test_the_earliest_of_several_devices_counts(tmp_path: Path) -> None:
    """A pod with two claims leaves when the first of them drives it away, and is told all reasons."""
    async with world(tmp_path, TaintEvictionController) as w:
        await publish(w, TAINT)
        await publish(w, TAINT | {"key": "example.com/hot"}, name="s2", device="gpu-1")
        await w.claim("a")
        await w.claim("b")
        pod = await w.pod("p", named("x", "a"), named("y", "b"))
        patient = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
        await w.allocate("a", pod, device="gpu-0", tolerations=[patient])
        await w.allocate("b", pod, device="gpu-1")
        await w.client.bind("p", NAMESPACE, "node-a")
        await w.until_pod("p", is_evicted)
        await w.until_event(REASON, "example.com/hot")
        await w.until_event(REASON, "example.com/broken")


async def test_a_pod_without_a_node_stays(tmp_path: Path) -> None:
    """Where to put a waiting pod is the scheduler's business."""
    async with world(tmp_path, TaintEvictionController) as w:
        await publish(w, TAINT)
        await w.claim("c")
        pod = await w.pod("p", named("x", "c"))
        await w.allocate("c", pod)
        await stays_on(w)


async def test_a_pod_without_a_reservation_stays(tmp_path: Path) -> None:
    """Naming a claim is not using it."""
    async with world(tmp_path, TaintEvictionController) as w:
        await publish(w, TAINT)
        await user(w, "p")
        await w.pod("q", named("x", "c"), nodeName="node-a")
        await w.until_pod("p", is_evicted)
        await stays_on(w, "q")


async def test_all_users_of_a_shared_claim_leave(tmp_path: Path) -> None:
    """Each consumer of a claim on a tainted device is evicted."""
    async with world(tmp_path, TaintEvictionController) as w:
        await w.claim("c")
        pods = [await w.pod(name, named("x", "c"), nodeName="node-a") for name in ("p", "q")]
        await w.allocate("c", *pods)
        await publish(w, TAINT)
        for name in ("p", "q"):
            await w.until_pod(name, is_evicted)


async def test_a_generated_claim_counts(tmp_path: Path) -> None:
    """Claims from templates are found by the pod's status."""
    async with world(tmp_path, ClaimController, TaintEvictionController) as w:
        await w.template()
        pod = await w.pod("p", from_template("x"), nodeName="node-a")
        (name,) = (await w.generated("p")).values()
        await w.allocate(name or "", pod)
        await publish(w, TAINT)
        await w.until_pod("p", is_evicted)


async def test_a_pod_with_an_extended_resource_leaves_too(tmp_path: Path) -> None:
    """Kubernetes 1.36.4 overlooks claims that were made for extended resources."""
    async with world(tmp_path, TaintEvictionController) as w:
        gpu = {"example.com/gpu": "1"}
        container = {
            "name": "main",
            "image": "example.com/image:1",
            "resources": {"limits": gpu, "requests": gpu},
        }
        pod = await w.pod("p", containers=[container], nodeName="node-a")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.metadata.uid}
        await w.claim("e", ownerReferences=[owner | {"controller": True}])
        mapping = {
            "containerName": "main",
            "resourceName": "example.com/gpu",
            "requestName": "container-0-request-0",
        }
        status = {"requestMappings": [mapping], "resourceClaimName": "e"}
        await w.patch(
            POD_VALUES, "p", {"status": {"extendedResourceClaimStatus": status}}, "status"
        )
        await w.allocate("e", pod)
        await publish(w, TAINT)
        await w.until_pod("p", is_evicted)


async def test_only_the_newest_generation_of_a_pool_counts(tmp_path: Path) -> None:
    """A taint in an outdated slice is no taint."""
    async with world(tmp_path, TaintEvictionController) as w:
        await publish(w, name="new", generation=2)
        await publish(w, TAINT, name="old", generation=1)
        await user(w)
        await stays_on(w)
        await w.client.delete(SLICES, "new")
        await w.until_pod("p", is_evicted)


async def test_disruption_budgets_are_not_asked(tmp_path: Path) -> None:
    """A budget that allows no disruption does not keep a pod on a broken device."""
    async with world(tmp_path, TaintEvictionController) as w:
        await w.create(
            BUDGETS,
            {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 0, "selector": {}}},
        )
        await user(w)
        await publish(w, TAINT)
        await w.until_pod("p", is_evicted)


async def test_admin_access_does_not_protect(tmp_path: Path) -> None:
    """Whoever only looks at a device has to go as well."""
    async with world(tmp_path, TaintEvictionController) as w:
        await w.patch(
            generic("v1", "namespaces", "Namespace", namespaced=False),
            NAMESPACE,
            {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}},
        )
        await user(w, adminAccess=True)
        await publish(w, TAINT)
        await w.until_pod("p", is_evicted)


async def test_the_pod_that_came_after_is_left_alone(tmp_path: Path) -> None:
    """An eviction is of one pod, not of a name."""
    async with world(tmp_path, TaintEvictionController) as w:
        await publish(w, TAINT)
        await user(w)
        await w.until_pod("p", is_evicted)
        await w.remove(POD_VALUES, "p")
        await w.pod("p", named("x", "c"), nodeName="node-a")
        await stays_on(w)


async def test_what_was_tainted_while_nobody_watched_is_found(tmp_path: Path) -> None:
    """A restart evicts whom it has to."""
    async with world(tmp_path, TaintEvictionController) as w:
        await w.stop()
        await publish(w, TAINT)
        await user(w)
        await w.start()
        await w.until_pod("p", is_evicted)


# --- Rules ----------------------------------------------------------------------------------------

SELECTORS: dict[str, tuple[JsonObject | None, bool]] = {
    "absent": (None, False),
    "empty": ({}, True),
    "driver": ({"driver": DRIVER}, True),
    "driver, pool and device": ({"driver": DRIVER, "pool": "pool", "device": "gpu-0"}, True),
    "another driver": ({"driver": "other.example.com"}, False),
    "another pool": ({"driver": DRIVER, "pool": "other"}, False),
    "another device": ({"driver": DRIVER, "pool": "pool", "device": "gpu-1"}, False),
}


@pytest.mark.parametrize("case", list(SELECTORS))
async def test_a_rule_evicts_from_what_it_selects(case: str, tmp_path: Path) -> None:
    """An empty selector selects all devices, an absent one none; the device need not be published."""
    selector, leaves = SELECTORS[case]
    async with world(tmp_path, TaintEvictionController) as w:
        await user(w)
        await rule(w, selector=selector)
        if leaves:
            await w.until_pod("p", is_evicted)
            await w.until_event(REASON, "DeviceTaintRule r")
        else:
            await stays_on(w)


async def test_a_rule_that_is_changed_to_evict(tmp_path: Path) -> None:
    """The effect of a rule can be changed, and it counts from then on."""
    async with world(tmp_path, TaintEvictionController) as w:
        await user(w)
        await rule(w, selector={}, effect="None")
        await stays_on(w)
        await w.patch(RULES, "r", {"spec": {"taint": {"effect": "NoExecute"}}})
        await w.until_pod("p", is_evicted)


async def test_a_rule_that_is_deleted_in_time(tmp_path: Path) -> None:
    """Without the rule there is no reason to go."""
    async with world(tmp_path, TaintEvictionController) as w:
        await user(
            w,
            tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}],
        )
        await rule(w, selector={})
        await eventually(lambda: condition(w), lambda found: found.get("status") == "True")
        await w.client.delete(RULES, "r")
        await w.until_event(REASON, "Cancelling deletion")


@pytest.mark.parametrize("place", list(PLACES))
async def test_a_rule_tells_what_it_is_about_to_do(place: str, tmp_path: Path) -> None:
    """While pods have to go the condition is true and counts them."""
    async with world(tmp_path, TaintEvictionController, place=place) as w:
        await user(
            w,
            tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}],
        )
        await rule(w, selector={})
        found = await eventually(lambda: condition(w), lambda found: "status" in found)
        assert (found["status"], found["reason"]) == ("True", "PodsPendingEviction")
        assert found["message"] == "1 pod needs to be evicted in 1 namespace."
        assert found["observedGeneration"] == 1
        value = await w.client.get(RULES, "r")
        assert "device-taint-eviction-controller" in {
            entry["manager"] for entry in value["metadata"]["managedFields"]
        }


async def test_a_rule_that_finds_nobody_has_not_started(tmp_path: Path) -> None:
    """NoExecute without anybody to evict."""
    async with world(tmp_path, TaintEvictionController) as w:
        await rule(w, selector={})
        found = await eventually(lambda: condition(w), lambda found: "status" in found)
        assert (found["status"], found["reason"]) == ("False", "NotStarted")


async def test_a_rule_that_is_done_says_so_after_a_while(tmp_path: Path) -> None:
    """After the eviction the condition is false and tells how many were evicted."""
    clock = Clock()
    async with world(
        tmp_path,
        lambda client, informers: TaintEvictionController(client, informers, now=clock.now),
    ) as w:
        await user(w)
        await rule(w, selector={})
        await w.until_pod("p", is_evicted)
        clock.advance(timedelta(seconds=11))
        await rule(w, name="other", selector={"driver": "other.example.com"})
        await w.patch(RULES, "r", {"spec": {"taint": {"value": "very"}}})
        found = await eventually(
            lambda: condition(w), lambda found: found.get("reason") == "Completed"
        )
        assert found["status"] == "False"
        assert found["message"] == "1 pod evicted since starting the controller."


async def test_a_rule_without_effect_is_tried_out(tmp_path: Path) -> None:
    """Effect None tells what the rule would do, and does nothing."""
    async with world(tmp_path, TaintEvictionController) as w:
        await publish(w)
        await user(w)
        await rule(w, selector={}, effect="None")
        found = await eventually(lambda: condition(w), lambda found: "status" in found)
        assert (found["status"], found["reason"]) == ("False", "NoEffect")
        assert "1 published device selected." in found["message"]
        assert "1 allocated device selected." in found["message"]
        assert "1 pod would be evicted in 1 namespace" in found["message"]
        await stays_on(w)


async def test_a_rule_with_another_effect_says_that_it_evicts_nobody(tmp_path: Path) -> None:
    """NoSchedule is none of this controller's business."""
    async with world(tmp_path, TaintEvictionController) as w:
        await rule(w, selector={}, effect="NoSchedule")
        found = await eventually(lambda: condition(w), lambda found: "status" in found)
        assert (found["status"], found["reason"]) == ("False", "OtherEffect")


class Clock:
    """A clock that a test can move."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def advance(self, by: timedelta) -> None:
        self._ahead += by
