"""The comparison of states notices what it is for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec
import pytest

from conformance.records import JsonObject
from conformance.scheduling.comparing import Comparison, held_twice, missing
from conformance.scheduling.scenarios import Expected
from conformance.scheduling.state import Names, Objects, state_of

DRIVER = "gpu.example.com"


def entry(device: str, **fields: Any) -> JsonObject:
    return {"request": "r", "driver": DRIVER, "pool": "node-a", "device": device, **fields}


def claim(name: str, *entries: JsonObject, **metadata: Any) -> JsonObject:
    status = {"allocation": {"devices": {"results": list(entries)}}} if entries else {}
    metadata = {"name": name, "namespace": "default", **metadata}
    return {"metadata": metadata, "spec": {}, "status": status}


def pod(name: str, node: str = "", reason: str = "", message: str = "") -> JsonObject:
    condition = {"type": "PodScheduled", "status": "True" if node else "False"}
    condition |= {"reason": reason, "message": message}
    status = {"phase": "Pending", "conditions": [condition]}
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}


def objects() -> Objects:
    """A pod that has a device, one that waits, and devices of which the first two are twins."""
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}, {"name": "big", "attributes": {"x": {}}}]
    spec = {"driver": DRIVER, "pool": {"name": "node-a"}, "devices": devices}
    about = {"kind": "Pod", "name": "runs"}
    event = {"involvedObject": about, "type": "Normal", "reason": "Scheduled"}
    return Objects(
        pods=[pod("runs", "node-a"), pod("waits", reason="Unschedulable", message="c2: in use")],
        claims=[claim("c1", entry("gpu-0")), claim("c2")],
        pod_groups=[],
        events=[event],
        slices=[{"spec": spec}],
    )


def expected(**sections: Any) -> Expected:
    """The state of the objects, as a record has it."""
    state = state_of(objects(), Names())
    names = ("kind", "name", "type", "reason")
    recorded = {
        "pods": state.pods,
        "claims": state.claims,
        "events": [dict(zip(names, event, strict=True)) for event in state.events],
        "counts": state.counts,
        "mention": {"default/waits": ["c2"]},
    }
    return msgspec.convert(deepcopy({**recorded, **sections}), Expected)


def found(expect: Expected, there: Objects, **options: bool) -> list[str]:
    comparison = Comparison(**{"free_devices": False, **options})
    comparison.twins.meet(there.slices)
    return list(comparison.differences(expect, state_of(there, Names())))


def replace_device(name: str, **fields: Any) -> Callable[[Objects], object]:
    def change(there: Objects) -> None:
        there.claims[0]["status"]["allocation"]["devices"]["results"] = [entry(name, **fields)]

    return change


def replace_condition(number: int, **fields: str) -> Callable[[Objects], object]:
    return lambda there: there.pods[number]["status"]["conditions"][0].update(fields)


SAME: dict[str, Callable[[Objects], object]] = {
    "nothing": lambda there: None,
    "a twin": replace_device("gpu-1"),
    "a kind of failure": replace_condition(1, reason="SchedulerError"),
    "a better text": replace_condition(1, message="request r of c2 finds no free device"),
    "an event more": lambda there: there.events.append(
        {**there.events[0], "reason": "FailedScheduling"}
    ),
}
OTHER: dict[str, tuple[Callable[[Objects], object], str]] = {
    "a device that is no twin": (replace_device("big"), "allocation"),
    "a share": (replace_device("gpu-0", shareID="x"), "allocation"),
    "another request": (replace_device("gpu-0", request="q"), "allocation"),
    "no allocation": (lambda there: there.claims[0].update(status={}), "allocation"),
    "another node": (lambda there: there.pods[0]["spec"].update(nodeName="b"), "nodeName"),
    "a pod less": (lambda there: there.pods.pop(), "there is no default/waits"),
    "a claim more": (lambda there: there.claims.append(claim("c3")), "there is default/c3"),
    "no event": (lambda there: there.events.clear(), "no event Pod runs Normal Scheduled"),
    "an event of another object": (
        lambda there: there.events[0].update(involvedObject={"kind": "Pod", "name": "waits"}),
        "no event Pod runs",
    ),
    "another reason": (replace_condition(1, reason="SchedulingGated"), "scheduled"),
    "a text that says less": (replace_condition(1, message="no luck"), "does not mention c2"),
    "a label": (lambda there: there.claims[1]["metadata"].update(labels={"a": "b"}), "labels"),
    "a finalizer": (
        lambda there: there.claims[1]["metadata"].update(finalizers=["x"]),
        "finalizers",
    ),
    "a pod that is deleted": (
        lambda there: there.pods[0]["metadata"].update(deletionTimestamp="now"),
        "deleting",
    ),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_what_is_free_makes_no_difference(change: Callable[[Objects], object]) -> None:
    """Twins, texts, further events."""
    there = objects()
    change(there)
    assert found(expected(), there) == []


@pytest.mark.parametrize(("change", "noticed"), OTHER.values(), ids=OTHER)
def test_what_counts_is_noticed(change: Callable[[Objects], object], noticed: str) -> None:
    """Each change to a state that is as recorded is named."""
    there = objects()
    change(there)
    assert noticed in "; ".join(found(expected(), there))


def test_a_section_that_is_not_recorded_is_not_compared() -> None:
    """Nor are devices where the choice between them is free."""
    there = objects()
    replace_device("big")(there)
    assert found(expected(claims=None), there) == []
    assert found(expected(), there, free_devices=True) == []


def test_a_value_may_be_one_of_several() -> None:
    """Or free altogether."""
    there = objects()
    users = [{"resource": "pods", "name": "runs"}]
    there.claims[0]["status"]["reservedFor"] = users
    recorded = deepcopy(expected().claims or {})
    for allowed, is_same in ((["/pods/runs"], True), (["/pods/other"], False)):
        recorded["default/c1"]["reservedFor"] = {"$in": [[], allowed]}
        assert (found(expected(claims=recorded), there) == []) == is_same
    recorded["default/c1"] = {"$free": "either"}
    assert found(expected(claims=recorded), there) == []


def test_the_right_outcome_is_compared_by_what_it_names() -> None:
    """Null stands for what is absent or empty."""
    state = {"pods": {"p": {"nodeName": "a", "phase": "Pending"}}, "counts": {"byNode": {"a": 1}}}
    assert list(missing({"pods": {"p": {"nodeName": "a"}}}, state)) == []
    assert list(missing({"counts": {"byNode": {"a": 1, "b": None}}}, state)) == []
    assert list(missing({"pods": {"p": {"nodeName": "b"}}}, state)) != []
    assert list(missing({"pods": {"q": {"nodeName": "a"}}}, state)) != []
    assert list(missing({"counts": {"byNode": {"a": None}}}, state)) != []


@pytest.mark.parametrize(
    ("fields", "is_right"), [({}, False), ({"shareID": "x"}, True), ({"adminAccess": True}, True)]
)
def test_a_device_is_held_once(fields: JsonObject, is_right: bool) -> None:
    """Unless as a share or for administration."""
    there = objects()
    there.claims[1] = claim("c2", entry("gpu-0", **fields))
    assert (held_twice(there) == []) == is_right


def test_generated_names_are_equal() -> None:
    """The first of a base has a star, the second a number; others keep their names."""
    names = Names()
    made = [claim(f"p-{end}", generateName="p-") for end in ("x", "y")]
    names.meet([*made, claim("c")])
    assert [names.key(obj) for obj in (*made, claim("c"))] == [
        "default/p-*",
        "default/p-*2",
        "default/c",
    ]
    assert (names.real("p-*2"), names.real("c")) == ("p-y", "c")
