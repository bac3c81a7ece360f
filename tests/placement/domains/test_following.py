"""Domains and counts follow the cluster, in trials as well."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drayman.allocator import Policy
from drayman.placement.domains.copies import CopiesWanted, CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.domains.tree import WHOLE
from drayman.placement.fit import FITS
from drayman.placement.placing import Placer
from drayman.topology import configured
from placement.fit.storage import HOST, ZONE
from placement.sandbox import QUESTIONS, Sandbox

CHANGES = (
    "assume", "settle", "assume_claim", "confirm_claim", "forget_claim", "keep_room", "give_up_room",
    "set_node", "set_node", "remove_node", "set_slice", "remove_slice", "set_class", "remove_class",
    "set_rule", "remove_rule", "set_claim", "remove_claim", "place_pod", "remove_pod", "set_disk",
    "remove_disk", "evict", "restore", "free", "hold", "set_namespace",
)  # fmt: skip
MOVES = st.lists(
    st.tuples(st.sampled_from((*CHANGES, "begin", "end", "look", "look")), st.integers(0, 59)),
    min_size=5,
    max_size=30,
)
HIERARCHY = configured([ZONE, HOST])


class Reader:
    """Keeps domains and counts of a cluster."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.domains = Domains(sandbox.state)
        self.counts = CopyCounts(sandbox.state)

    def seen(self, number: int) -> Any:
        tree = self.domains.tree(HIERARCHY)
        wanted = CopiesWanted(self._sandbox.demand(number), 3)
        return (
            tree.within(WHOLE, tree.node_level),
            tree.lacking(0),
            self.domains.hierarchy(),
            {name: count.at_most for name, count in self.counts.of(wanted).items()},
        )


@given(MOVES)
def test_what_is_kept_is_what_a_fresh_look_finds(moves: list[tuple[str, int]]) -> None:
    """After any changes, in any trial and after it."""
    sandbox = Sandbox()
    kept = Reader(sandbox)
    for name, number in [*moves, *(("look", number) for number in range(len(QUESTIONS)))]:
        if name == "look":
            question = number % len(QUESTIONS)
            assert kept.seen(question) == Reader(sandbox).seen(question)
        elif name == "end":
            if sandbox.trials:
                sandbox.end()
        else:
            getattr(sandbox, name)(number)


@given(MOVES, st.integers(0, len(QUESTIONS) - 1))
def test_a_count_is_never_too_low(moves: list[tuple[str, int]], question: int) -> None:
    """As many copies as a placer gets onto a node one by one are counted there, at least."""
    sandbox = Sandbox()
    for name, number in moves:
        if name not in ("look", "begin", "end"):
            getattr(sandbox, name)(number)
    demand = sandbox.demand(question)
    state = sandbox.state
    counts = CopyCounts(state).of(CopiesWanted(demand, 4))
    for name, node in state.nodes.items():
        placer = Placer(state, Policy.BEST)
        fits = placer.verdict_on(demand, node) is FITS
        counted = counts.get(name)
        assert not fits or counted is not None
        if counted is not None and counted.is_exact:
            assert fits
