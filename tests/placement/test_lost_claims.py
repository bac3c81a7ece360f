"""Devices stay with the pods that use them, whatever becomes of the claim."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.resource import ResourceClaim
from drayman.inventory.features import Features
from drayman.inventory.identity import DeviceId
from drayman.placement.fit import PodNeeds
from drayman.placement.hints import Change
from drayman.placement.lost_claims import CONDITION, LostClaim, lost_claims_of, message_of
from drayman.placement.state import ClusterState
from drayman.placement.wake import Wake

DRIVER, POOL = "gpu.example.com", "node-a"


def pod(name: str, node: str = "node-a", phase: str = "Running", *lost: LostClaim) -> Pod:
    conditions = (
        [{"type": CONDITION, "status": "True", "message": message_of(lost)}] if lost else []
    )
    return convert(
        Pod,
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
            },
            "status": {"phase": phase, "conditions": conditions},
        },
    )


def claim(
    version: int, device: str = "", *users: str, uid: str = "first", **fields: Any
) -> ResourceClaim:
    status: dict[str, Any] = {
        "reservedFor": [{"resource": "pods", "name": u, "uid": f"uid-{u}"} for u in users]
    }
    if device:
        result = {"request": "r", "driver": DRIVER, "pool": POOL, "device": device, **fields}
        status["allocation"] = {"devices": {"results": [result]}}
    metadata = {
        "name": "c", "namespace": "default", "uid": uid, "resourceVersion": str(version),
    }  # fmt: skip
    return convert(ResourceClaim, {"metadata": metadata, "status": status})


@dataclass
class Place:
    """A state, and what it has woken pods for."""

    woken: list[Change] = field(default_factory=list)
    state: ClusterState = field(init=False)

    def __post_init__(self) -> None:
        self.state = ClusterState(Features(), self.woken.append)
        self.state.set_node(convert(Node, {"metadata": {"name": "node-a"}}))

    def held(self) -> set[str]:
        found = {h.device for _, holdings in self.state.ledger.holders() for h in holdings}
        return {device.device for device in found}


def in_use() -> Place:
    place = Place()
    place.state.set_claim(claim(1))
    place.state.set_claim(claim(2, "gpu-0", "p"))
    place.state.set_placed_pod(pod("p"))
    return place


TAKEN = {
    "the claim is deleted": [("remove", claim(2, "gpu-0", "p"))],
    "it is deallocated": [("set", claim(3))],
    "it gets another device": [("set", claim(3, "gpu-1", "p"))],
    "it is replaced by another of its name": [("set", claim(9, uid="second"))],
    "another of its name has another device": [("set", claim(9, "gpu-1", "q", uid="second"))],
    "its reservation goes first": [("set", claim(3, "gpu-0")), ("set", claim(4))],
    "its reservation goes, and then the claim": [
        ("set", claim(3, "gpu-0", "q")),
        ("remove", claim(4, "gpu-0", "q")),
    ],
}


@pytest.mark.parametrize("steps", TAKEN.values(), ids=TAKEN)
def test_what_is_taken_from_a_pod_stays_held_until_it_has_ended(steps: list[Any]) -> None:
    """Then it is free, and pods that wait for devices are woken."""
    place = in_use()
    for verb, version in steps:
        (place.state.set_claim if verb == "set" else place.state.remove_claim)(version)
    assert "gpu-0" in place.held()
    (users,) = place.state.lost_claims()
    assert (users.claim.name, users.claim.uid, users.pods) == ("c", "first", {"uid-p"})
    place.woken.clear()
    place.state.set_placed_pod(pod("p", phase="Succeeded"))
    assert "gpu-0" not in place.held()
    assert list(place.state.lost_claims()) == []
    assert Wake.DEVICES in place.woken


def test_a_pod_that_has_ended_loses_nothing() -> None:
    """Its claim gives back its devices, as always."""
    place = in_use()
    place.state.set_placed_pod(pod("p", phase="Failed"))
    place.state.set_claim(claim(3))
    assert (place.held(), list(place.state.lost_claims())) == (set(), [])


def test_devices_of_a_claim_of_several_pods_stay_until_the_last_has_ended() -> None:
    """Each of them may still use them."""
    place = in_use()
    place.state.set_claim(claim(3, "gpu-0", "p", "q"))
    place.state.set_placed_pod(pod("q"))
    place.state.remove_claim(claim(3, "gpu-0", "p", "q"))
    place.state.remove_pod("uid-p")
    assert place.held() == {"gpu-0"}
    place.state.remove_pod("uid-q")
    assert place.held() == set()


def test_what_is_given_back_is_not_lost() -> None:
    """The claim has its devices again, and they are held once."""
    place = in_use()
    place.state.set_claim(claim(3))
    place.state.set_claim(claim(4, "gpu-0", "p"))
    assert list(place.state.lost_claims()) == []
    assert place.state.ledger.holders_of(DeviceId(DRIVER, POOL, "gpu-0")) == ("first",)


@pytest.mark.parametrize("is_made", [True, False], ids=["made with its devices", "known before"])
def test_a_late_answer_brings_no_claim_back(is_made: bool) -> None:
    """The pod was deleted, and its claim with it, before the server's answer to the write that gave it devices was read."""
    place = Place()
    written = claim(3, "gpu-0", "p")
    assert written.status.allocation is not None
    if is_made:
        place.state.assume_made(("default", "c"), "made")
        place.state.hold("made", written.status.allocation)
    else:
        place.state.set_claim(claim(1))
        place.state.hold("first", written.status.allocation)
        place.state.assume_claim(written)
    place.state.set_claim(written)
    place.state.remove_claim(written)
    if is_made:
        place.state.adopt("made", written)
    place.state.confirm_claim(written)
    assert (place.held(), place.state.find_claim("default", "c")) == (set(), None)


def test_a_claim_that_is_shown_again_is_there() -> None:
    """In a replay, a task that was refused comes back under the same uid."""
    place = Place()
    place.state.set_claim(claim(1))
    place.state.remove_claim(claim(1))
    place.state.set_claim(claim(1))
    place.state.confirm_claim(claim(2, "gpu-0", "p"))
    assert place.held() == {"gpu-0"}


def shown(version: int, node: str = "", start_time: str | None = None) -> Pod:
    """The pod as the server shows it."""
    found = pod("p", node)
    metadata = replace(found.metadata, resource_version=str(version))
    status = replace(found.status, start_time=start_time)
    return replace(found, metadata=metadata, status=status)


@pytest.mark.parametrize("was_tried", [False, True], ids=["by others alone", "and by this one"])
def test_what_a_claim_had_before_its_pod_got_its_node_is_not_lost(was_tried: bool) -> None:
    """A scheduler gave back what another had taken first, and then found another device. Here the pod is shown before all that."""
    place = Place()
    place.state.set_pod(shown(1))
    if was_tried:
        place.state.assume_pod(PodNeeds.of(shown(1)), "node-a")
        place.state.remove_pod("uid-p")
    place.state.set_claim(claim(2, "gpu-0", "p"))
    place.state.set_pod(shown(5, "node-a"))
    place.state.set_claim(claim(3))
    assert place.held() == {"gpu-0"}, "this may still be a loss"
    place.woken.clear()
    place.state.set_claim(claim(4, "gpu-1", "p"))
    assert (place.held(), list(place.state.lost_claims())) == ({"gpu-1"}, [])
    assert Wake.DEVICES in place.woken


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(1, claim(5, "gpu-1", "p"), id="it had its node before"),
        pytest.param(1, claim(5, "gpu-1", "q"), id="another pod has the claim now"),
        pytest.param(0, claim(4, "gpu-1", "p"), id="it is not known when it got its node"),
    ],
)
def test_other_devices_for_a_claim_make_up_for_nothing(first: int, then: ResourceClaim) -> None:
    """The pod goes on computing on what was taken from it."""
    place = Place()
    if first:
        place.state.set_pod(shown(first))
    place.state.set_claim(claim(2, "gpu-0", "p"))
    place.state.set_pod(shown(3 if first else 9, "node-a"))
    place.state.set_claim(claim(4 if first else 3))
    place.state.set_claim(then)
    assert place.held() == {"gpu-0", "gpu-1"}


def test_a_pod_that_is_listed_again_may_have_had_its_node_for_long() -> None:
    """Its first version with the node was not shown, so it is not known whether the claim had the other device before."""
    place = Place()
    place.state.set_pod(shown(1))
    place.state.set_claim(claim(2, "gpu-0", "p"))
    place.state.set_pod(shown(6, "node-a", "2026-01-01T00:00:00Z"))
    place.state.set_claim(claim(4))
    place.state.set_claim(claim(5, "gpu-1", "p"))
    assert place.held() == {"gpu-0", "gpu-1"}


def test_the_next_scheduler_knows_of_a_loss_from_the_pod() -> None:
    """It never saw the claim."""
    place = in_use()
    place.state.remove_claim(claim(2, "gpu-0", "p"))
    (users,) = place.state.lost_claims()
    later = Place()
    later.state.set_placed_pod(pod("p", "node-a", "Running", users.claim))
    assert later.held() == {"gpu-0"}
    assert list(later.state.lost_claims()) == [users]
    later.state.remove_pod("uid-p")
    assert later.held() == set()


def test_a_condition_that_cannot_be_read_says_nothing() -> None:
    """It may be that of another version."""
    unreadable = [
        {"type": CONDITION, "status": "True", "message": message}
        for message in ("", "no JSON", '{"claims": 5}')
    ]
    for condition in unreadable:
        value = {"metadata": {"name": "p"}, "status": {"conditions": [condition]}}
        assert lost_claims_of(convert(Pod, value)) == ()


def test_shares_are_recorded_with_what_they_consume() -> None:
    """What is left of the device for others depends on it."""
    share = claim(
        2, "gpu-0", "p",
        shareID="8c4bb7d4-0a2d-4a2c-9f1c-1f7d6e0e0001", consumedCapacity={"memory": "3Gi"},
    )  # fmt: skip
    lost = LostClaim.of(share, "deleted")
    assert lost_claims_of(pod("p", "node-a", "Running", lost)) == (lost,)


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["place", "end", "reserve", "release", "allocate", "free", "delete"]),
        st.sampled_from("pq"),
        st.sampled_from(["gpu-0", "gpu-1"]),
    ),
    max_size=30,
)


@given(MOVES)
def test_no_device_that_a_pod_uses_is_ever_free(moves: list[tuple[str, str, str]]) -> None:
    """Whatever is done to a claim, and to those of its name after it; and in the end nothing is left held."""
    place = Place()
    version, number = 0, 0
    users: set[str] = set()
    device = ""
    living: dict[str, set[str]] = {}
    seen: set[str] = set()
    for verb, name, wanted in moves:
        version += 1
        if verb == "place":
            if name not in seen:
                living.setdefault(name, set())
                seen.add(name)
                place.state.set_placed_pod(pod(name))
        elif verb == "end":
            living.pop(name, None)
            place.state.remove_pod(f"uid-{name}")
        else:
            if verb == "delete":
                place.state.remove_claim(claim(version, device, *sorted(users), uid=str(number)))
                number, users, device = number + 1, set(), ""
            else:
                users = users | {name} if verb == "reserve" else users
                users = users - {name} if verb == "release" else users
                device = {"allocate": wanted, "free": ""}.get(verb, device)
                users = users if device else set()
                place.state.set_claim(claim(version, device, *sorted(users), uid=str(number)))
        for user in users & living.keys():
            living[user].add(device)
        used = set().union(*living.values()) - {""}
        assert used <= place.held()
    for name in tuple(living):
        place.state.remove_pod(f"uid-{name}")
    place.state.remove_claim(claim(version, device, uid=str(number)))
    assert place.held() == set()
    assert list(place.state.lost_claims()) == []
