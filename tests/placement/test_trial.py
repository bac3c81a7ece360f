"""Whatever is done in a trial is undone when it ends: exactly, for everybody, and at the cost of what was done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.allocator import Policy
from drayman.placement.fit import NodeFacts, PodNeeds, Verdict
from drayman.placement.placing import Found, NotFound, Placer
from drayman.placement.state import ClusterState
from placement.everything import everything
from placement.sandbox import DRIVER, QUESTIONS, Sandbox, make_node, make_pod

Move = tuple[str, int]

OUTSIDE = (
    "assume", "settle", "assume_claim", "confirm_claim", "forget_claim", "keep_room", "give_up_room",
    "set_node", "remove_node", "set_slice", "remove_slice", "set_class", "remove_class", "set_rule",
    "remove_rule", "set_claim", "set_claim", "remove_claim", "set_template", "remove_template",
    "place_pod", "place_pod", "place_pod", "remove_pod", "set_group", "remove_group",
    "set_namespace", "remove_namespace", "set_disk", "remove_disk", "take_disk", "set_storage",
    "remove_storage", "see_member", "see_member", "see_member", "forget_member", "place_member", "displace_member",
    "set_gang", "remove_gang",
)  # fmt: skip
INSIDE = (*OUTSIDE, "evict", "evict", "evict", "restore", "restore", "free", "hold")
_NUMBERS = st.integers(0, 59)


def moves(*names: str, least: int = 0, most: int) -> st.SearchStrategy[list[Move]]:
    return st.lists(st.tuples(st.sampled_from(names), _NUMBERS), min_size=least, max_size=most)


def play(sandbox: Sandbox, script: Sequence[Move]) -> None:
    """Carry out the moves. A trial that ends leaves everything as it was when it began."""
    begun: list[Any] = []
    for name, number in script:
        if name == "begin":
            begun.append(everything(sandbox.state))
            sandbox.begin(number)
        elif name == "end":
            if len(begun) > 1:  # the outermost ends last
                sandbox.end()
                assert everything(sandbox.state) == begun.pop()
        elif name == "look":
            compare(sandbox, number % len(QUESTIONS))
        else:
            getattr(sandbox, name)(number)
    while begun:
        sandbox.end()
        assert everything(sandbox.state) == begun.pop()


def compare(sandbox: Sandbox, number: int) -> None:
    """Who has kept answers says what somebody says who has not."""
    kept, fresh = sandbox.answer(number), sandbox.fresh_answer(number)
    if isinstance(kept, Found):
        assert isinstance(fresh, Found)
        # How good a node is changes with what others take of devices that it shares, and that is not always known.
        if not sandbox.state.has_floating_devices:
            assert kept.node.facts.name == fresh.node.facts.name
    else:
        assert isinstance(fresh, NotFound)
        assert kept.verdicts.keys() == fresh.verdicts.keys()


def marked(sandbox: Sandbox) -> tuple[int, ...]:
    """By which those who keep answers know that any node may have changed."""
    marks = sandbox.state.marks
    return marks.epoch, marks.floating_taken, marks.floating_freed


def verdicts(sandbox: Sandbox, number: int, placer: Placer) -> Any:
    """What each node says, and the order of those that will do."""
    demand = sandbox.demand(number)
    said = {
        name: placer.verdict_on(demand, node).reasons for name, node in sandbox.state.nodes.items()
    }
    standings = placer.standings(demand)
    return said, [(s.node.facts.name, s.wishes, s.quality, s.balance) for s in standings]


BEFORE = moves(*OUTSIDE, most=10)
DURING = moves(*INSIDE, "look", "look", "look", "begin", "end", least=12, most=40)


@given(BEFORE, DURING, BEFORE, st.sets(st.integers(0, len(QUESTIONS) - 1)))
def test_leaving_a_trial_undoes_all_of_it(
    before: list[Move], during: list[Move], after: list[Move], lookers: set[int]
) -> None:
    """The state is what a state is to which only the rest has happened, and goes on to be. Nobody was woken."""
    sandbox, control = Sandbox(), Sandbox()
    for each in (sandbox, control):
        play(each, [*before, *(("look", number) for number in sorted(lookers))])
    woken, marks = len(sandbox.wakes), marked(sandbox)
    play(sandbox, [("begin", 0), *during])
    assert len(sandbox.wakes) == woken
    assert marked(sandbox) == marks
    for script in ([], after):
        play(sandbox, script)
        play(control, script)
        assert everything(sandbox.state) == everything(control.state)
    for number in range(len(QUESTIONS)):
        compare(sandbox, number)
        kept = sandbox.kept[sandbox.demand(number).key]
        fresh = Placer(control.state, Policy.BEST)
        assert verdicts(sandbox, number, kept) == verdicts(control, number, fresh)


@given(moves(*INSIDE, least=5, most=25), st.integers(1, 40))
def test_a_trial_costs_what_is_changed(during: list[Move], more: int) -> None:
    """However many nodes there are, it takes as many steps to undo the same; a handful for each change."""
    steps = []
    for nodes in (0, more):
        sandbox = Sandbox(nodes)
        sandbox.begin(0)
        for name, number in during:
            getattr(sandbox, name)(number)
        steps.append(sandbox.trials[0].steps)
        sandbox.end()
    assert steps[0] == steps[1] <= 16 * len(during)


class Counted:
    """A cluster that notes which nodes are looked at."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.looks: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    @property
    def static_verdicts(self) -> Counted:
        return self

    def verdict(self, needs: PodNeeds, facts: NodeFacts) -> Verdict:
        """The first question of all."""
        self.looks.append(facts.name)
        return self._state.static_verdicts.verdict(needs, facts)


def looked_at(counted: Counted, placer: Placer, sandbox: Sandbox) -> set[str]:
    """The nodes at which a placer has to look to answer a question."""
    counted.looks.clear()
    placer.find(sandbox.demand(0))
    return set(counted.looks)


ALL = {"n0", "n1", "n2"}
CHANGES: dict[str, tuple[Move, set[str], set[str]]] = {
    "a slice of a node": (("set_slice", 1), {"n1"}, {"n1"}),
    "a slice of several nodes": (("set_slice", 16), ALL, ALL),
    "a class": (("set_class", 3), ALL, ALL),
    "a taint rule": (("set_rule", 0), ALL, ALL),
    "a pod that is evicted": (("evict", 2), {"n2"}, {"n2"}),
    "a claim that gives back a device of one node": (("set_claim", 4), {"n0"}, {"n0"}),
    "a claim that has a device of several": (("set_claim", 2), ALL, ALL),
    "a claim that is freed": (("free", 0), {"n0"}, {"n0"}),
    "a node that comes": (("set_node", 15), {"n3"}, set()),
    "a node that goes": (("remove_node", 2), set(), {"n2"}),
}


@pytest.mark.parametrize(("change", "inside", "after"), CHANGES.values(), ids=CHANGES)
def test_who_did_not_look_has_nothing_to_look_at_again(
    change: Move, inside: set[str], after: set[str]
) -> None:
    """For a placer that asks before and after a trial there never was one. One that asks meanwhile looks again, afterwards too."""
    sandbox = Sandbox()
    counted = Counted(sandbox.state)
    absent, present = Placer(counted, Policy.BEST), Placer(counted, Policy.BEST)
    for placer in (absent, present):
        assert looked_at(counted, placer, sandbox) == ALL
        assert looked_at(counted, placer, sandbox) == set()
    sandbox.begin(0)
    name, number = change
    getattr(sandbox, name)(number)
    assert looked_at(counted, present, sandbox) == inside
    sandbox.end()
    assert looked_at(counted, absent, sandbox) == set()
    assert looked_at(counted, present, sandbox) == after


@pytest.mark.parametrize(
    ("inside", "after"),
    [(("set_rule", 0), ("set_rule", 1)), (("set_slice", 16), ("set_slice", 22))],
)
def test_nobody_takes_the_cluster_for_what_it_was_in_a_trial(inside: Move, after: Move) -> None:
    """A placer that was last asked in a trial looks at all nodes when any of them may have changed since."""
    sandbox = Sandbox()
    counted = Counted(sandbox.state)
    placer = Placer(counted, Policy.BEST)
    looked_at(counted, placer, sandbox)
    sandbox.begin(0)
    getattr(sandbox, inside[0])(inside[1])
    assert looked_at(counted, placer, sandbox) == ALL
    sandbox.end()
    getattr(sandbox, after[0])(after[1])
    assert looked_at(counted, placer, sandbox) == ALL


def test_what_an_inner_trial_undoes_the_outer_one_has_never_done() -> None:
    """Who was evicted for an outer trial while an inner one was under way is there again after the inner one."""
    sandbox = Sandbox()
    (claim, *_) = sandbox.state.allocated_claims()
    with sandbox.state.trial() as outer:
        with sandbox.state.trial():
            outer.evict("p0")
            outer.free(claim)
            assert outer.freed == (claim,)
        assert outer.freed == ()
        assert sandbox.state.node_of("p0") == "n0"
        with pytest.raises(KeyError):
            outer.restore("p0")


def test_trials_end_in_order() -> None:
    """An outer trial cannot end before the one within it."""
    outer = (state := Sandbox().state).trial()
    with outer, state.trial(), pytest.raises(RuntimeError):
        outer.__exit__()


def test_what_fails_in_a_trial_is_undone_too() -> None:
    """An error ends the trial like anything else."""
    sandbox = Sandbox()
    before, needs = everything(sandbox.state), sandbox.demand(0).needs

    def fail() -> None:
        with sandbox.state.trial():
            sandbox.state.remove_node("n0")
            sandbox.place_pod(6)
            sandbox.state.assume_pod(needs, "n1")
            sandbox.state.assume_pod(needs, "n1")

    with pytest.raises(ValueError, match="placed already"):
        fail()
    assert everything(sandbox.state) == before


def test_pods_that_share_a_claim_free_it_together() -> None:
    """A claim has its devices until the last of those who use it is evicted, and again when one is restored."""
    sandbox = Sandbox()
    sandbox.state.set_placed_pod(make_pod("p5", 0, "n2"))
    (claim, *_) = sandbox.state.allocated_claims()
    users = [user.uid for user in claim.status.reserved_for]
    with sandbox.state.trial() as trial:
        for uid in users:
            assert sandbox.state.ledger.holdings(claim.metadata.uid)
            trial.evict(uid, (claim,))
        assert not sandbox.state.ledger.holdings(claim.metadata.uid)
        assert trial.freed == (claim,)
        trial.restore(users[0])
        assert sandbox.state.ledger.holdings(claim.metadata.uid)
        assert trial.freed == ()


def test_users_of_a_claim_may_go_in_different_trials() -> None:
    """A trial within another one sees who is away already, and can bring them back for as long as it lasts."""
    sandbox = Sandbox()
    state = sandbox.state
    state.set_placed_pod(make_pod("p5", 0, "n2"))
    (claim, *_) = state.allocated_claims()
    first, second = [user.uid for user in claim.status.reserved_for]
    with state.trial() as outer:
        outer.evict(first, (claim,))
        with state.trial() as inner:
            inner.evict(second, (claim,))
            assert not state.ledger.holdings(claim.metadata.uid)
            inner.restore(first)
            assert state.ledger.holdings(claim.metadata.uid)
        assert state.node_of(first) is None
        assert state.node_of(second) is not None


def test_the_cluster_without_its_users() -> None:
    """Seen as if nobody used it, a node has no pods, and no device is held but those of the claims that keep theirs."""
    sandbox = Sandbox()
    sandbox.state.set_node(make_node(0, variant=3))
    (claim, *_) = sandbox.state.allocated_claims()
    empty = sandbox.state.emptied()
    assert not any(node.usage.pods for node in empty.nodes.values())
    assert not any(empty.view(node).usage.in_use for node in empty.nodes.values())
    assert empty.nodes["n0"].facts.shape.unschedulable
    own = sandbox.state.emptied((claim,), untainted=True)
    held = {
        device
        for node in own.nodes.values()
        for device in own.view(node).ids_of(own.view(node).usage.in_use)
    }
    assert {(device.driver, device.device) for device in held} == {(DRIVER, "d0")}
    assert not own.nodes["n0"].facts.shape.unschedulable
