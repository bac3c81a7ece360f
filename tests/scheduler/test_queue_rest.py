"""Whatever happens in whatever order: once a queue has come to rest, nobody waits for room that is there."""

from __future__ import annotations

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from drayman.api.core import Pod, PodSpec
from drayman.api.meta import ObjectMeta
from drayman.placement.gangs.gang import Dialect, GangKey
from drayman.placement.wake import Wake
from drayman.scheduler.queue import Queue
from drayman.scheduler.unit import QueuedUnit

SHAPES = ("wide", "narrow")
REST_S = 3.0
Move = tuple[str, int]


class Yard:
    """Units of two shapes, and room for some of each. Pods on their own and gangs of one take turns."""

    def __init__(self) -> None:
        self.now = 0.0
        self.queue = Queue()
        self.room: Counter[str] = Counter()
        self.waiting: dict[str, str] = {}  # shapes, by uid

    def add(self, number: int) -> None:
        uid = f"pod-{number}"
        metadata = ObjectMeta(name=uid, namespace="default", uid=uid)
        gang = GangKey(Dialect.KUBERNETES, "default", f"gang-{number}") if number % 3 else None
        self.waiting[uid] = SHAPES[number % 2]
        self.queue.add(Pod(metadata=metadata, spec=PodSpec()), gang)

    def remove(self, number: int) -> None:
        if self.waiting.pop(f"pod-{number}", None) is not None:
            self.queue.remove(f"pod-{number}")

    def free(self, number: int) -> None:
        """Something happened that units of all shapes are interested in."""
        self.room[SHAPES[number % 2]] += number
        self.queue.wake(Wake.DEVICES)

    def pass_time(self, number: int) -> None:
        self.now += number / 2

    def decide(self, number: int) -> None:
        for entry in self.queue.take(1, self.now):
            self._decide(entry, fails=number == 0, took_long=number % 2 == 1)

    def _decide(self, entry: QueuedUnit, *, fails: bool = False, took_long: bool = False) -> None:
        (uid,) = entry.pods
        shape = self.waiting[uid]
        if fails:
            self.queue.hold_back(entry, self.now)
        elif entry.gang is not None and self.now < entry.rests_until:
            self.queue.nap(entry, entry.rests_until)
        elif self.room[shape]:
            self.room[shape] -= 1
            del self.waiting[uid]
            self.queue.placed(entry, (uid,))
        else:
            self.queue.sleep(entry, shape, Wake.DEVICES)
            entry.rests_until = self.now + REST_S if took_long else 0.0

    def settle(self) -> None:
        while True:
            entries = self.queue.take(1, self.now)
            due = self.queue.next_due()
            if not entries and due is None:
                return
            if not entries and due is not None:
                self.now = max(self.now, due)
            for entry in entries:
                self._decide(entry)


ADD, DECIDE, HAPPEN = (
    st.tuples(st.sampled_from(names), st.integers(0, 5))
    for names in (["add"], ["decide"], ["add", "remove", "free", "pass_time", "decide", "decide"])
)


def moves() -> st.SearchStrategy[list[Move]]:
    """Some wait, most of them have been refused, then whatever may happen."""
    some = st.lists(ADD, min_size=2, max_size=6)
    tried = st.lists(DECIDE, min_size=2, max_size=8)
    more = st.lists(HAPPEN, max_size=30)
    return st.builds(lambda *parts: [move for part in parts for move in part], some, tried, more)


# The first of two gangs naps when there is room for both.
@example([("add", 1), ("add", 5), ("decide", 1), ("decide", 1), ("free", 5), ("decide", 2)])
@given(moves())
def test_nobody_waits_for_room_that_is_there(script: list[Move]) -> None:
    yard = Yard()
    for name, number in script:
        getattr(yard, name)(number)
    yard.settle()
    assert [shape for shape in yard.waiting.values() if yard.room[shape]] == []
