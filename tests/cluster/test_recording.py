"""Events reach the server in batches, repetitions become series, and nothing waits for them."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.contract.clusters import IMPLEMENTATIONS, Cluster, cluster
from cluster.fake_apiserver import Drop, FakeApiServer
from drayman.cluster import EventRecorder, HttpClient, Reference
from drayman.cluster.event_buffer import EventBuffer
from drayman.cluster.kube.connection import Connection
from drayman.cluster.kube.retries import NO_RETRIES
from drayman.cluster.resources import EVENTS, JsonObject, generic
from patience import PATIENCE_S

CORE_EVENTS = generic("v1", "events", "Event")


def about(place: Cluster, name: str = "p") -> Reference:
    return Reference(
        api_version="v1", kind="Pod", namespace=place.namespace, name=name, uid=f"uid-{name}"
    )


async def events(place: Cluster, wanted: Callable[[list[JsonObject]], bool]) -> list[JsonObject]:
    """The events of the namespace once they are as wanted."""
    found: list[JsonObject] = []
    for _ in range(400):
        found = [*(await place.client.list(EVENTS, place.namespace)).items]
        if wanted(found):
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"the events never were as wanted: {found}")


@pytest.mark.parametrize("implementation", list(IMPLEMENTATIONS))
async def test_an_event_is_written(implementation: str, tmp_path: Path) -> None:
    """An event can be read in both groups, with who says what about which object."""
    async with cluster(implementation, tmp_path) as place:
        async with EventRecorder(place.client, "resource_claim") as recorder:
            recorder.record(about(place), "Warning", "Failed", "no template", "Failed")
            (event,) = await events(place, lambda found: len(found) == 1)
        assert event["regarding"]["uid"] == "uid-p"
        assert (event["type"], event["reason"], event["note"]) == (
            "Warning",
            "Failed",
            "no template",
        )
        assert event["reportingController"] == "resource_claim"
        (core,) = (await place.client.list(CORE_EVENTS, place.namespace)).items
        assert core["message"] == "no template"
        assert core["involvedObject"]["name"] == "p"


async def test_the_same_event_again_is_a_series(tmp_path: Path) -> None:
    """Repetitions are counted in the one object; another note is another event."""
    async with cluster("in-process", tmp_path) as place:
        async with EventRecorder(place.client, "tester") as recorder:
            recorder.record(about(place), "Warning", "Failed", "one", "Try")
            recorder.record(about(place), "Warning", "Failed", "one", "Try")
            recorder.record(about(place), "Warning", "Failed", "two", "Try")
            found = await events(
                place, lambda found: len(found) == 2 and any("series" in one for one in found)
            )
        counts = {event["note"]: (event.get("series") or {}).get("count") for event in found}
        assert counts == {"one": 2, "two": None}


async def test_many_events_are_written_together(tmp_path: Path) -> None:
    """A burst reaches the server whole, and those before the start too."""
    async with cluster("in-process", tmp_path) as place:
        recorder = EventRecorder(place.client, "tester")
        for index in range(250):
            recorder.record(about(place, f"p{index}"), "Normal", "Done", "well", "Do")
        assert len(recorder) == 250
        recorder.start()
        await recorder.stop()
        assert len((await place.client.list(EVENTS, place.namespace)).items) == 250
        assert recorder.dropped == 0


async def test_a_refused_event_does_not_take_others_with_it(tmp_path: Path) -> None:
    """An event in a namespace that is not there is dropped and counted; the rest of its batch is written."""
    async with cluster("in-process", tmp_path) as place:
        elsewhere = Reference(api_version="v1", kind="Pod", namespace="nowhere", name="x", uid="x")
        async with EventRecorder(place.client, "tester") as recorder:
            recorder.record(elsewhere, "Normal", "Done", "well", "Do")
            recorder.record(about(place), "Normal", "Done", "well", "Do")
            await events(place, lambda found: len(found) == 1)
        assert recorder.dropped == 1


async def test_a_long_note_is_cut(tmp_path: Path) -> None:
    """The server takes notes of up to 1024 characters, so a longer one ends with an ellipsis."""
    async with cluster("in-process", tmp_path) as place:
        async with EventRecorder(place.client, "tester") as recorder:
            recorder.record(about(place), "Normal", "Done", "x" * 3000, "Do")
            (event,) = await events(place, lambda found: len(found) == 1)
        assert len(event["note"]) == 1024
        assert event["note"].endswith("x…")


async def test_an_event_about_a_long_name_is_written(tmp_path: Path) -> None:
    """The name of an event begins with that of its object as far as there is room."""
    async with cluster("in-process", tmp_path) as place:
        long = "a" * 235 + "-" + "b" * 10
        async with EventRecorder(place.client, "tester") as recorder:
            recorder.record(about(place, long), "Normal", "Done", "well", "Do")
            (event,) = await events(place, lambda found: len(found) == 1)
        assert event["metadata"]["name"].startswith("a" * 235 + ".")
        assert event["regarding"]["name"] == long


def test_a_full_buffer_drops_normal_events_first() -> None:
    """Warnings outlive Normal events, older ones go before newer ones, and each loss is counted."""
    buffer = EventBuffer(3)
    for type_, note in (("Warning", 1), ("Normal", 2), ("Normal", 3), ("Warning", 4)):
        buffer.put({"type": type_, "note": note})
    assert buffer.dropped == 1
    assert [event["note"] for event in buffer.take(2)] == [1, 3]
    buffer.put_back([{"type": "Warning", "note": 1}, {"type": "Normal", "note": 3}])
    buffer.put({"type": "Warning", "note": 5})
    buffer.put({"type": "Warning", "note": 6})
    assert buffer.dropped == 3
    assert [event["note"] for event in buffer.take(9)] == [4, 5, 6]


async def test_what_is_left_is_counted_and_explained(caplog: pytest.LogCaptureFixture) -> None:
    """A server that takes no events at the end is given up on, and the log says how many are left and why."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with HttpClient(Connection(url), retries=NO_RETRIES) as client:
            recorder = EventRecorder(client, "tester", last_call_s=0.1)
            recorder.start()
            for index in range(250):
                regarding = Reference(kind="Pod", namespace="ns", name=f"p{index}", uid=f"{index}")
                recorder.record(regarding, "Normal", "Done", "well", "Do")
            await recorder.stop()
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == (
        "tester: 250 events were not written: the server took no more of them within 0.1 s"
    )


async def test_only_what_had_no_answer_waits_again(caplog: pytest.LogCaptureFixture) -> None:
    """Where the connection is lost on the way, events that were written are through; that one and those behind it are left."""
    async with (
        FakeApiServer().running() as server,
        HttpClient(Connection(server.url), retries=NO_RETRIES) as client,
    ):
        server.inject(Drop(after=True), when=lambda seen: b'"second"' in seen.body)
        recorder = EventRecorder(client, "tester")
        for name in ("first", "second", "third"):
            regarding = Reference(kind="Pod", namespace="ns", name=name, uid=name)
            recorder.record(regarding, "Normal", "Done", "well", "Do")
        recorder.start()
        await recorder.stop()
        assert [json.loads(seen.body)["regarding"]["name"] for seen in server.seen] == [
            "first",
            "second",
        ]
        assert len(recorder) == 2
        assert recorder.dropped == 0
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("tester: 2 events were not written: ")


async def test_what_is_said_about_one_object_is_bounded(tmp_path: Path) -> None:
    """A controller that makes thousands of pods writes some events about their owner. Warnings, and other objects, have their own bound."""
    async with cluster("in-process", tmp_path) as place:
        async with EventRecorder(place.client, "c", per_object=5) as recorder:
            for number in range(100):
                recorder.record(about(place), "Normal", "Made", f"pod {number}", "Make")
            recorder.record(about(place), "Warning", "Failed", "no room", "Make")
            recorder.record(about(place, "q"), "Normal", "Made", "pod", "Make")
            found = await events(place, lambda found: len(found) == 7)
        assert sum(event["reason"] == "Made" for event in found) == 6
        assert recorder.dropped == 95


async def test_an_event_in_the_last_moment_does_not_keep_the_recorder_from_ending(
    tmp_path: Path,
) -> None:
    """It waits for the time at which a repetition is counted, or for another event, which comes just before it is to end."""
    async with cluster("in-process", tmp_path) as place:
        recorder = EventRecorder(place.client, "tester")
        recorder.start()
        for _ in range(2):
            recorder.record(about(place), "Warning", "Failed", "one", "Try")
        await events(place, lambda found: any("series" in one for one in found))
        recorder.record(about(place), "Warning", "Failed", "one", "Try")
        recorder.record(about(place), "Warning", "Failed", "two", "Try")
        await events(place, lambda found: len(found) == 2)
        recorder.record(about(place), "Warning", "Failed", "three", "Try")
        async with asyncio.timeout(PATIENCE_S):
            await recorder.stop()
        assert len(await events(place, lambda found: len(found) == 3)) == 3
