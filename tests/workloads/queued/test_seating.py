"""Which pod of a set goes to which domain."""

from __future__ import annotations

from drayman.workloads.queued.seating import Sitter, seats

LEVELS = ("rack", "host")
DOMAINS = [(("r1", "a"), 2), (("r1", "b"), 1)]


def sitter(name, index=None, at=None, held=True):
    selector = {} if at is None else {"rack": "r1", "host": at}
    return Sitter(name, index, selector, held)


def hosts(found):
    return {name: selector["host"] for name, selector in found.items()}


def test_numbered_pods_go_by_their_number():
    """Neighbours are together, in whichever order they come."""
    pods = [sitter("x", 2), sitter("y", 0), sitter("z", 1)]
    assert hosts(seats(LEVELS, DOMAINS, pods)) == {"x": "b", "y": "a", "z": "a"}


def test_others_fill_what_is_left():
    """Those that were told before keep their place, and for one too many there is none."""
    pods = [sitter("told", at="a", held=False), sitter("x"), sitter("y"), sitter("z")]
    assert hosts(seats(LEVELS, DOMAINS, pods)) == {"x": "a", "y": "b"}


def test_numbers_that_make_no_sense_do_not_count():
    """Twice the same, or more than there are places."""
    for numbers in ((0, 0), (0, 7), (0, None)):
        pods = [sitter("x", numbers[0]), sitter("y", numbers[1])]
        assert hosts(seats(LEVELS, DOMAINS, pods)) == {"x": "a", "y": "a"}


def test_after_a_node_was_replaced_pods_go_where_places_are_left():
    """The number of the new pod stands for a host whose places are taken by pods with other numbers."""
    pods = [sitter("new", 0), sitter("p1", 1, at="a", held=False), sitter("p2", 2, "a", False)]
    assert hosts(seats(LEVELS, DOMAINS, pods)) == {"new": "b"}
