"""What is to be done when."""

from __future__ import annotations

from drayman.node.simulated.agenda import Agenda


def test_so_many_are_taken_and_the_rest_stays_due() -> None:
    """The earliest come first, and none is lost or given out twice."""
    agenda: Agenda[int] = Agenda()
    for entry in range(10):
        agenda.put(entry, float(entry))
    agenda.put(0, 20.0)
    agenda.discard(1)
    assert agenda.due(9.0, 3) == [2, 3, 4]
    assert agenda.due(9.0, 3) == [5, 6, 7]
    assert agenda.due(9.0, 3) == [8, 9]
    assert agenda.due(9.0, 3) == []
    assert agenda.due(20.0, 3) == [0]
