"""What is asked about room while victims are looked for, a part at a time.

Each question supposes that some workloads are gone and looks for room for pods of another one, which takes milliseconds; a workload that
needs the room of a hundred others asks hundreds of them. All else would wait meanwhile. So only so much is asked in a turn, and the search
breaks off. It is repeated in the next turn, comes to the same questions, and gets the answers that were given before.

The cluster may change in between, so what was found in several turns is asked for once more in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from drayman.api.kueue_workload import Admission
from drayman.bounded import Bounded

T = TypeVar("T")


class RoomOfOne(Protocol):
    """Knows where one workload would have room, with one admission."""

    def fits(self, without: frozenset[str]) -> bool:
        """Whether there would be room for all of its pods if others, by key, were gone."""
        ...

    def unseated(self) -> int:
        """How many of its pods find no room as things are."""
        ...

    def seats(self, node: str, without: frozenset[str]) -> int:
        """How many of its pods find room on a node if others, by key, are gone."""
        ...

    def nodes_of(self, key: str) -> Collection[str]:
        """The nodes on which another workload has pods or room."""
        ...


WORK_OF_A_TURN: Final = 1_000
"""Pods that are placed or supposed to be gone: about a tenth of a second."""
_MOST_SEARCHES: Final = 64
_KEPT_S: Final = 10.0
"""For how long a search may be left alone before it begins again."""


class UnfinishedError(Exception):
    """No more is asked in this turn."""


class Subject(Struct, frozen=True):
    """What a search is about."""

    key: str
    """Of the workload that looks for victims."""
    admission: Admission
    is_for_room: bool

    @property
    def pods(self) -> int:
        return sum(each.count or 0 for each in self.admission.pod_set_assignments)


_ALL_PODS: Final = 0
"""Stands for a question about all pods of a workload, among those about nodes."""


class _Search:
    """The answers that a search was given so far."""

    def __init__(self, subject: Subject, turn: int, now: float) -> None:
        self.subject = subject
        self.began = turn
        self.used_at = now
        self.answers: dict[Hashable, int] = {}


class Questions:
    """Passes on questions about room, as many as a turn has."""

    def __init__(self) -> None:
        self.limit: int | None = None
        """The work of a turn; None: as much as is needed."""
        self.is_cut = False
        """Whether a search was broken off in this cycle."""
        self._left = 0
        self._turn = 0
        self._now = 0.0
        self._searches: Bounded[tuple[str, int], _Search] = Bounded(_MOST_SEARCHES)

    def begin_cycle(self, now: float) -> None:
        self.is_cut = False
        self.begin_turn(now)

    def begin_turn(self, now: float) -> None:
        """As much as before may be asked again. Others had their turn meanwhile."""
        self._turn += 1
        self._now = now
        self._left = self.limit or 0

    def about(self, subject: Subject, room: RoomOfOne) -> RoomOfOne:
        """The same room, asked about as often as a turn allows. Raises UnfinishedError."""
        return _Asked(self, subject, room)

    def ask(
        self, subject: Subject, question: Hashable, work: int, answer: Callable[[], int]
    ) -> int:
        """The answer to a question that takes so much work. Raises UnfinishedError."""
        if self.limit is None:
            return answer()
        answers = self._search(subject).answers
        if question not in answers:
            if self._left <= 0:
                self.is_cut = True
                raise UnfinishedError
            self._left -= work
            answers[question] = answer()
        return answers[question]

    def end(self, subject: Subject, room: RoomOfOne, victims: frozenset[str]) -> bool:
        """A search has come to its end. Whether what it has found holds, or it has to begin again."""
        known = self._searches.pop((subject.key, subject.pods), None)
        if known is None or known.began == self._turn or not victims:
            return True
        holds = room.fits(victims)
        self.is_cut = self.is_cut or not holds
        return holds

    def _search(self, subject: Subject) -> _Search:
        name = (subject.key, subject.pods)
        known = self._searches.get(name)
        is_old = known is None or not 0 <= self._now - known.used_at <= _KEPT_S
        if known is None or is_old or known.subject != subject:
            known = self._searches[name] = _Search(subject, self._turn, self._now)
        known.used_at = self._now
        return known


class _Asked:
    """The room of one workload, with questions passed on."""

    def __init__(self, questions: Questions, subject: Subject, room: RoomOfOne) -> None:
        self._questions = questions
        self._subject = subject
        self._room = room

    def fits(self, without: frozenset[str]) -> bool:
        work = self._subject.pods + len(without)
        question = (_ALL_PODS, without)
        return bool(self._ask(question, work, lambda: self._room.fits(without)))

    def unseated(self) -> int:
        return self._ask(_ALL_PODS, self._subject.pods, self._room.unseated)

    def seats(self, node: str, without: frozenset[str]) -> int:
        return self._ask((node, without), 1 + len(without), lambda: self._room.seats(node, without))

    def nodes_of(self, key: str) -> Collection[str]:
        return self._room.nodes_of(key)

    def _ask(self, question: Hashable, work: int, answer: Callable[[], int]) -> int:
        return self._questions.ask(self._subject, question, work, answer)
