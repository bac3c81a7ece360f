"""Members of a gang are queued as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.placement.gangs.gang import Dialect, GangKey
from drayman.placement.wake import Wake
from drayman.scheduler.queue import Queue
from drayman.scheduler.unit import QueuedUnit

GANG = GangKey(Dialect.KUBERNETES, "default", "g")


def pod(uid: str, priority: int = 0) -> Pod:
    metadata = {"name": uid, "namespace": "default", "uid": uid}
    return convert(Pod, {"metadata": metadata, "spec": {"priority": priority}})


def queue_of(*uids: str) -> Queue:
    queue = Queue()
    for uid in uids:
        queue.add(pod(uid), GANG)
    return queue


def test_members_are_taken_together_and_once() -> None:
    queue = queue_of("a", "b")
    queue.add(pod("alone"))
    first, second = queue.take(5, 0.0)
    assert list(first.pods) == ["a", "b"]
    assert list(second.pods) == ["alone"]
    assert queue.take(5, 0.0) == []


def test_a_new_member_brings_a_waiting_gang_back_into_line() -> None:
    queue = queue_of("a")
    (entry,) = queue.take(1, 0.0)
    queue.wait(entry)
    assert queue.take(1, 0.0) == []
    queue.add(pod("b"), GANG)
    (again,) = queue.take(1, 0.0)
    assert again is entry
    assert list(again.pods) == ["a", "b"]


def test_members_that_are_left_are_tried_at_once() -> None:
    queue = queue_of("a", "b", "c")
    (entry,) = queue.take(1, 0.0)
    queue.placed(entry, ("a", "b"))
    (rest,) = queue.take(1, 0.0)
    assert list(rest.pods) == ["c"]
    assert "a" not in queue
    queue.placed(rest, ("c",))
    assert len(queue) == 0


def test_members_that_were_not_bound_wait_together_again() -> None:
    queue = queue_of("a", "b")
    (entry,) = queue.take(1, 0.0)
    queue.placed(entry, ("a", "b"))
    for uid in ("b", "a"):
        again = queue.rejoin(entry, pod(uid))
        queue.hold_back(again, 0.0)
    assert queue.take(1, 0.0) == []
    (back,) = queue.take(1, 10.0)
    assert sorted(back.pods) == ["a", "b"]


def test_gangs_of_one_shape_sleep_together() -> None:
    queue = queue_of("a")
    other = GangKey(Dialect.KUBERNETES, "default", "h")
    queue.add(pod("b"), other)
    for entry in queue.take(2, 0.0):
        queue.sleep(entry, "shape", Wake.DEVICES)
    queue.wake(Wake.DEVICES)
    (first,) = queue.take(2, 0.0)
    assert first.gang == GANG
    queue.placed(first, ("a",))
    (second,) = queue.take(2, 0.0)
    assert second.gang == other


def test_a_nap_ends_at_its_time_and_not_before() -> None:
    queue = queue_of("a")
    (entry,) = queue.take(1, 0.0)
    queue.sleep(entry, "shape", Wake.DEVICES)
    queue.wake(Wake.DEVICES)
    (entry,) = queue.take(1, 0.0)
    queue.nap(entry, 5.0)
    assert queue.take(1, 4.0) == []
    assert queue.next_due() == 5.0
    assert queue.take(1, 5.0) == [entry]


def napping() -> Queue:
    """Two gangs of one shape, of which the first has something to try for both, and naps before it does."""
    queue = queue_of("a")
    queue.add(pod("b"), GangKey(Dialect.KUBERNETES, "default", "h"))
    for entry in queue.take(2, 0.0):
        queue.sleep(entry, "shape", Wake.DEVICES)
    queue.wake(Wake.DEVICES)
    (first,) = queue.take(2, 0.0)
    queue.nap(first, 5.0)
    return queue


def test_others_of_the_shape_follow_one_that_starts_after_a_nap() -> None:
    queue = napping()
    (first,) = queue.take(2, 5.0)
    queue.placed(first, ("a",))
    (second,) = queue.take(2, 5.0)
    assert list(second.pods) == ["b"]


def test_another_tries_for_the_shape_if_the_napping_one_is_removed() -> None:
    queue = napping()
    queue.remove("a")
    assert queue.next_due() == 5.0
    (second,) = queue.take(2, 5.0)
    assert list(second.pods) == ["b"]


def test_a_nap_that_was_cut_short_is_not_waited_for() -> None:
    """Nobody of the shape is left, so nothing is due."""
    queue = napping()
    queue.remove("a")
    queue.remove("b")
    assert queue.next_due() is None
    assert queue.take(2, 5.0) == []


def test_a_pod_that_leaves_its_gang_is_on_its_own() -> None:
    queue = queue_of("a", "b")
    queue.add(pod("a"))
    entries = queue.take(5, 0.0)
    assert sorted(sorted(entry.pods) for entry in entries) == [["a"], ["b"]]
    assert [entry.key for entry in entries if entry.gang is None] == ["a"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "alone", "remove", "take", "sleep", "wait", "placed", "wake"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["g", "h"]),
    ),
    max_size=30,
)


@given(STEPS)
def test_each_pod_is_in_one_unit_and_none_is_forgotten(steps: list[tuple[str, str, str]]) -> None:
    queue = Queue()
    present: dict[str, str] = {}
    taken: list[QueuedUnit] = []
    for what, uid, gang in steps:
        match what:
            case "add":
                queue.add(pod(uid), GangKey(Dialect.KUBERNETES, "default", gang))
                present[uid] = gang
            case "alone":
                queue.add(pod(uid))
                present[uid] = ""
            case "remove":
                queue.remove(uid)
                present.pop(uid, None)
            case "take":
                taken += queue.take(1, 0.0)
            case "sleep":
                for entry in taken:
                    queue.sleep(entry, "shape", Wake.DEVICES)
                taken = []
            case "wait":
                for entry in taken:
                    queue.wait(entry)
                taken = []
            case "placed":
                for entry in taken:
                    if queue.get(entry.key) is entry:
                        going = [each for each in entry.pods if each == uid]
                        if entry.gang is None or going:
                            queue.placed(entry, going)
                            for each in going or list(entry.pods):
                                present.pop(each, None)
                taken = [entry for entry in taken if queue.get(entry.key) is entry]
            case "wake":
                queue.wake(Wake.DEVICES)
        assert {each for each in ("a", "b", "c") if each in queue} == set(present)
        for each, home in present.items():
            entry = queue.get(each)
            assert entry is not None
            assert each in entry.pods
            assert (entry.gang.name if entry.gang else "") == home
    for entry in taken:
        if queue.get(entry.key) is entry:
            queue.put_back(entry)
    queue.wake_pods(present)
    left = {uid for entry in queue.take(10, 1e9) for uid in entry.pods}
    assert left == set(present)


ORDERS: dict[str, tuple[list[int], int | None, list[str]]] = {
    "its members say the same": ([7, 7], None, ["a", "alone"]),
    "the least important of its members counts": ([7, 3], None, ["alone", "a"]),
    "whichever came first": ([3, 7], None, ["alone", "a"]),
    "what its group says counts": ([3, 3], 7, ["a", "alone"]),
    "also if that is less": ([7, 7], 3, ["alone", "a"]),
}


@pytest.mark.parametrize(("priorities", "stated", "wanted"), ORDERS.values(), ids=ORDERS)
def test_a_gang_has_one_place_in_line(
    priorities: list[int], stated: int | None, wanted: list[str]
) -> None:
    """It comes before or after a pod of priority 5 as it would make that pod go, or not."""
    queue = Queue()
    for uid, priority in zip("ab", priorities, strict=True):
        queue.add(pod(uid, priority), GANG, stated)
    queue.take(1, 0.0)
    queue.put_back(queue.gangs()[0])
    queue.add(pod("alone", 5))
    assert [entry.pod.metadata.uid for entry in queue.take(2, 0.0)] == wanted
