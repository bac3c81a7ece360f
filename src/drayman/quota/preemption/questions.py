"""What is asked about room while victims are looked for, a part at a time.

Each question supposes that some workloads are gone and looks for room for all pods of another one, which takes milliseconds; who has to
drive out a hundred others asks hundreds of them. All else would wait meanwhile. So only so much is asked in a turn, and the search breaks
off. It is repeated in the next turn, comes to the same questions, and is told the answers that were given before.

The cluster may change in between, so what was found in several turns is asked for once more in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from drayman.api.kueue_workload import Admission
from drayman.bounded import Bounded

HasRoom = Callable[[frozenset[str]], bool]
"""Whether there would be room for all pods of a workload if others, by key, were gone."""

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


class _Search:
    """The answers that a search was given so far."""

    def __init__(self, subject: Subject, turn: int, now: float) -> None:
        self.subject = subject
        self.began = turn
        self.used_at = now
        self.answers: dict[frozenset[str], bool] = {}


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

    def ask(self, subject: Subject, has_room: HasRoom, without: frozenset[str]) -> bool:
        """Whether there would be room without others. Raises UnfinishedError."""
        if self.limit is None:
            return has_room(without)
        answers = self._search(subject).answers
        if without not in answers:
            if self._left <= 0:
                self.is_cut = True
                raise UnfinishedError
            self._left -= subject.pods + len(without)
            answers[without] = has_room(without)
        return answers[without]

    def end(self, subject: Subject, has_room: HasRoom, victims: frozenset[str]) -> bool:
        """A search has come to its end. Whether what it has found holds, or it has to begin again."""
        known = self._searches.pop((subject.key, subject.pods), None)
        if known is None or known.began == self._turn or not victims:
            return True
        holds = has_room(victims)
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
