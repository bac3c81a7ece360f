"""Stated alignments: the level reached is the best that exists, compared with all valid allocations of small problems."""

from __future__ import annotations

import json
import re

from hypothesis import assume, given
from hypothesis import strategies as st

from drayman.allocator import (
    HeldDevice,
    Plan,
    PodAlignment,
    Policy,
    Question,
    Refusal,
    search,
    signature,
)
from drayman.api.codec import convert
from drayman.api.resource import ResourceSlice
from drayman.inventory import DeviceId
from oracle.best import best_placement, best_rung, cost_of, first_aligned
from oracle.brute import TooLarge
from oracle.compare import normal
from oracle.derived import assemble
from oracle.first_fit import Fatal, prepare
from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.strategies import LADDERS, aligned_problems
from oracle.subject import BEST, FIRST_FIT, answer, ask, claims_of, inventory_of, ledger_of, node_of


@given(problem=aligned_problems())
def test_best_reaches_the_best_levels_that_exist(problem: JsonObject) -> None:
    """No valid allocation reaches better levels or is better otherwise; it is refused only if none reaches what is required."""
    model = Model(problem)
    try:
        prepare(model)
        optimum = best_placement(model)
    except (Fatal, TooLarge):
        assume(False)
    line = answer(problem, BEST)
    if optimum is None:
        assert line["outcome"] == "unallocatable"
        return
    assert line["outcome"] == "allocated"
    expected = assemble(model, optimum.entries, optimum.chosen, repeated=False)
    assert normal(line["results"]) == normal(expected)
    plan = ask(problem, BEST)
    assert isinstance(plan, Plan)
    assert plan.quality.cost.rungs == cost_of(model, optimum)[1]
    assert [level.rung for level in plan.levels] == list(plan.quality.cost.rungs)


@given(problem=aligned_problems(with_alternatives=False))
def test_first_fit_takes_the_first_that_reaches_the_best_levels(problem: JsonObject) -> None:
    """Levels are what the user asked for, so they count under either policy; the rest is the order of devices."""
    model = Model(problem)
    try:
        prepare(model)
        expected = first_aligned(model)
    except (Fatal, TooLarge):
        assume(False)
    line = answer(problem, FIRST_FIT)
    if expected is None:
        assert line["outcome"] == "unallocatable"
        return
    assert line["outcome"] == "allocated"
    wanted = assemble(model, expected.entries, expected.chosen, repeated=True)
    assert normal(line["results"]) == normal(wanted)


@given(problem=aligned_problems())
def test_a_refusal_for_alignment_says_so(problem: JsonObject) -> None:
    """What is refused is either refused without the alignments as well, or some rejection names the level."""
    refusal = ask(problem, BEST)
    assume(isinstance(refusal, Refusal))
    assert isinstance(refusal, Refusal)
    if isinstance(ask(_unaligned(problem), BEST), Plan):
        assert any("aligned at" in rejection.detail for rejection in refusal.rejections)


@given(
    problem=aligned_problems(with_alternatives=False),
    ladder=st.sampled_from(LADDERS),
    number=st.integers(0, 2),
    policy=st.sampled_from([BEST, FIRST_FIT]),
)
def test_a_pod_is_aligned_across_claims_and_with_what_it_has(
    problem: JsonObject, ladder: str, number: int, policy: Policy
) -> None:
    """What a pod states is about all of its claims together, and about devices that some of them have already."""
    problem = _unaligned(problem)
    model = Model(problem)
    held = [tuple(entry.values()) for entry in problem["allocated"]["devices"]][:number]
    try:
        prepare(model)
        expected = best_rung(model, ladder, set(held))
    except (Fatal, TooLarge):
        assume(False)
    claims = claims_of(problem)
    mine = tuple(HeldDevice("mine", "r", DeviceId(*key)) for key in held)
    entries = tuple(f"c{index}" for index in range(len(claims)))
    stated = PodAlignment(ladder, entries, frozenset({"mine"}), mine)
    view = inventory_of(problem).view(node_of(problem), ledger_of(problem))
    found = search(view, Question(claims, stated), policy=policy)
    if expected is None:
        assert isinstance(found, Refusal)
        return
    assert isinstance(found, Plan)
    assert [level.rung for level in found.levels] == [expected]


@given(problem=aligned_problems())
def test_levels_do_not_depend_on_names(problem: JsonObject) -> None:
    """A node whose places have other names is the same to a question: same signature, same quality."""
    renamed = json.loads(_RENAMED.sub(r'"other-\1"', json.dumps(problem)))
    inventory = inventory_of(problem)
    asked = claims_of(problem)
    before = signature(inventory.view(node_of(problem), ledger_of(problem)), asked)
    for item in renamed["slices"]:
        inventory.apply_slice(convert(ResourceSlice, item))
    after = signature(inventory.view(node_of(renamed), ledger_of(renamed)), asked)
    assert before == after
    one, other = ask(problem, BEST), ask(renamed, BEST)
    assert type(one) is type(other)
    if isinstance(one, Plan) and isinstance(other, Plan):
        assert one.quality == other.quality


_RENAMED = re.compile(r'"(left|right|r\d)"')
"""NVLink groups and roots."""


def _unaligned(problem: JsonObject) -> JsonObject:
    claims = [{**c, "metadata": {**c["metadata"], "annotations": {}}} for c in problem["claims"]]
    return {**problem, "claims": claims}
