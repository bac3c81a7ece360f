"""Room as it is written down: any text may stand there, and no more is believed than what a workload was admitted with."""

from __future__ import annotations

import zlib
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api import codec
from drayman.api.errors import DecodeError
from drayman.api.resource import AllocationResult
from drayman.quota.fitting import record
from drayman.quota.fitting.expecting import expected_pods
from drayman.quota.fitting.record import Belief, belief_in, read, text_of
from drayman.quota.fitting.reservation import RoomReservation, place_of, record_of
from drayman.quota.fitting.rooms import Rooms
from quota.fitting.clusters import (
    NAMESPACE,
    add_node,
    content,
    make_node,
    make_state,
    pod_set,
    template,
    whole,
    workload,
)
from quota.fitting.test_rooms import make_cluster, make_workload


def place(devices: int, *, number: int = 0, claims: Any = ()) -> dict[str, Any]:
    result = {"request": "r", "driver": "gpu.example.com", "pool": "a"}
    results = [{**result, "device": f"d{each}"} for each in range(devices)]
    own = [{"devices": {"results": results}}] if devices else []
    return {"podSet": "main", "number": number, "node": "a", "devices": own, "claims": claims}


def belief(*places: dict[str, Any], asks: tuple[str, ...] = ("two",)) -> Belief:
    state = make_state()
    found = read(codec.encode({"places": list(places)}).decode())
    wanted = workload("w", pod_set(1, template(asks)))
    return belief_in(wanted, found, state.find_template, state.find_claim)


FOREIGN = {"uid": "u", "allocation": {"devices": {"results": []}}}


@pytest.mark.parametrize(
    ("places", "asks", "expected"),
    [
        ([place(2)], ("two",), Belief.TRUE),
        ([place(1)], ("two",), Belief.TRUE),
        ([place(3)], ("two",), Belief.FALSE),
        ([place(3)], ("two", "one"), Belief.TRUE),
        ([place(1)], (), Belief.FALSE),
        ([place(9, number=7)], ("two",), Belief.TRUE),
        ([place(1)], ("unknown",), Belief.OPEN),
        ([place(0)], ("unknown",), Belief.TRUE),
        ([place(0, claims=[FOREIGN])], (), Belief.FALSE),
        ([place(0, claims=[FOREIGN])], ("=shared",), Belief.OPEN),
    ],
    ids=[
        "what it asks for",
        "less than it asks for",
        "a device too many",
        "of two claims",
        "devices without a claim",
        "a pod that it does not have, which is left out",
        "a template that is not known yet",
        "no devices of a template that is not known yet",
        "a claim of somebody else",
        "a claim that is not known yet",
    ],
)
def test_records_are_believed(
    places: list[dict[str, Any]], asks: tuple[str, ...], expected: Belief
) -> None:
    """As far as the claims of a pod go, and not before they are known."""
    assert belief(*places, asks=asks) is expected


def test_a_template_that_comes_later_has_the_record_be_believed() -> None:
    """Objects of different kinds come in any order."""
    state = make_cluster(2)
    rooms = Rooms(state)
    text = codec.encode({"places": [place(1)]}).decode()
    one = state.find_template(NAMESPACE, "one")
    assert one is not None
    state.remove_template(one)
    wanted = make_workload(room=text)
    rooms.follow(wanted)
    assert not list(rooms.book)
    state.set_template(one)
    rooms.follow_again()
    assert len(list(rooms.book)) == 1
    rooms.forget(f"{NAMESPACE}/w")
    assert not list(rooms.book)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["podSet", "number", "node", "devices", "claims", "results", "uid"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.one_of(st.text(max_size=40), JSON.map(lambda v: codec.encode({"places": v}).decode())))
def test_no_text_breaks_anything(text: str) -> None:
    """Whatever stands there, nothing is raised, and all is as before when the workload is gone."""
    state = make_cluster(2)
    before = content(state)
    rooms = Rooms(state)
    rooms.follow(make_workload(room=text))
    rooms.follow_again()
    rooms.forget(f"{NAMESPACE}/w")
    assert content(state) == before


def test_long_records_are_compressed_and_read_back() -> None:
    """A job of 512 pods with eight devices each: no annotation would hold it as it is."""
    results = [
        {"request": "gpus", "driver": "gpu.nvidia.com", "pool": "pool", "device": f"gpu-{n}"}
        for n in range(8)
    ]
    allocation = codec.convert(AllocationResult, {"devices": {"results": results}})
    wanted = workload("w", pod_set(512))
    state = make_state()
    places = tuple(
        place_of(
            each.pod_set,
            each.number,
            each.pod,
            f"node-{each.number}",
            [allocation],
            (),
            state.mapped_devices,
        )
        for each in expected_pods(wanted)
    )
    found = RoomReservation(wanted, places)
    text = text_of(found)
    assert 0 < len(text) < record.LONGEST < len(codec.encode(record_of(found)))
    assert read(text) == record_of(found)


@pytest.mark.parametrize(
    "text",
    [
        "zlib:",
        "zlib:%%%",
        "zlib:" + b64encode(b"no").decode(),
        "zlib:" + b64encode(zlib.compress(b" " * 9_000_000)).decode(),
        "zlib:" + b64encode(zlib.compress(b'{"places":[]}')[:-3]).decode(),
        " " * (record.LONGEST + 1),
    ],
    ids=["empty", "no base64", "not compressed", "a bomb", "cut off", "too long"],
)
def test_bad_texts_are_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        read(text)


def test_a_number_of_pods_is_not_taken_at_its_word() -> None:
    """Nothing is made for each of two thousand million pods."""
    state = make_state()
    add_node(state, make_node("a"), whole("a", ["small"]))
    rooms = Rooms(state)
    found = rooms.fitter.fit(workload("w", pod_set(2_000_000_000)), 0.0)
    assert "not enough nodes" in found.message  # type: ignore[union-attr]
