"""Laws of funnels: they are made of the sets that searches use, and never leave out a device that a search takes."""

from __future__ import annotations

from hypothesis import assume, given

from drayman.allocator import Plan, Question, Refusal, search
from drayman.allocator.problem.focus import focused
from drayman.allocator.problem.prepare import Judgement, prepare
from drayman.allocator.problem.tables import PreparationError
from drayman.allocator.refusals.funnel import left_out, sieves
from drayman.allocator.refusals.sieve import Hurdle, Sieve
from drayman.inventory import NodeView
from oracle.nodes import JsonObject
from oracle.strategies import mixed_problems, placed_problems, problems
from oracle.strategies_split import split_problems
from oracle.subject import claims_of, inventory_of, ledger_of, node_of


def asked(problem: JsonObject) -> tuple[NodeView, Question]:
    view = inventory_of(problem).view(node_of(problem), ledger_of(problem))
    return view, Question(claims_of(problem))


def after_constraints(sieve: Sieve) -> int:
    return sieve.passed[-2].devices


@given(problem=problems() | mixed_problems() | placed_problems())
def test_each_test_leaves_less(problem: JsonObject) -> None:
    """No test brings back what one before it has taken away, and the last leaves all or nothing."""
    for request in sieves(*asked(problem)):
        for sieve in request:
            left = sieve.everything
            for passed in sieve.passed:
                assert not passed.devices & ~left
                left = passed.devices
            assert sieve.passed[-1].test is Hurdle.COUNT
            assert sieve.passed[-1].devices in (0, after_constraints(sieve))


@given(problem=problems() | mixed_problems())
def test_what_is_left_is_what_a_search_chooses_from(problem: JsonObject) -> None:
    """Before constraints, the devices left are the candidates of the search that can be had one at a time."""
    view, question = asked(problem)
    try:
        tables = prepare(view, question, Judgement.LENIENT)
    except PreparationError:
        assume(False)
    blocked = view.usage.counter_blocked & ~view.usage.paid
    for request, alternatives in zip(sieves(view, question), tables.requests, strict=True):
        for sieve, alternative in zip(request, alternatives.alternatives, strict=True):
            left = sieve.left_by(Hurdle.COUNTERS)
            present = ~0
            for index in alternative.matches:
                present &= tables.matches[index].attribute.present
            for index in alternative.distincts:
                present &= tables.distincts[index].attribute.present
            if alternative.sequence is None:
                assert left & present == alternative.candidates & ~blocked
            else:
                assert left == alternative.candidates & ~blocked
                assert sieve.all_of == sum(1 << position for position in alternative.sequence)


@given(problem=problems() | mixed_problems() | placed_problems())
def test_a_plan_takes_only_what_is_left(problem: JsonObject) -> None:
    """If a search finds an allocation, every device of it is left at the end of its request's funnel."""
    view, question = asked(problem)
    plan = search(view, question)
    assume(isinstance(plan, Plan))
    assert isinstance(plan, Plan)
    by_name = {
        (sieve.wanted.claim, sieve.wanted.name): sieve
        for request in sieves(view, question)
        for sieve in request
    }
    for number, item in enumerate(plan.claims):
        for result in item.allocation.devices.results:
            sieve = by_name[number, result.request]
            taken = (result.driver, result.pool, result.device)
            assert sieve.is_enough
            assert taken in {tuple(device) for device in view.ids_of(sieve.passed[-1].devices)}


@given(problem=problems())
def test_one_simple_request_is_enough_exactly_if_it_fits(problem: JsonObject) -> None:
    """For a single request without constraints and counters the funnel alone decides."""
    view, question = asked(problem)
    assume(len(question.requests) == 1 and not question.matches and not question.distincts)
    assume(not view.hardware.counter_sets)
    outcome = search(view, question)
    assume(isinstance(outcome, Plan | Refusal))
    (request,) = sieves(view, question)
    assert any(sieve.is_enough for sieve in request) == isinstance(outcome, Plan)


@given(problem=problems() | mixed_problems() | placed_problems())
def test_a_request_that_has_enough_misses_nothing(problem: JsonObject) -> None:
    """What is missing is told exactly where the funnel ends with nothing, and together with what would do makes the number."""
    for request in sieves(*asked(problem)):
        for sieve in request:
            if sieve.is_enough:
                assert sieve.missing == 0
                assert sieve.short_at is None
            else:
                assert sieve.short_at is not None
                assert sieve.missing == max(sieve.number - sieve.would_do.bit_count(), 0)


@given(problem=split_problems())
def test_devices_that_are_not_looked_at_are_counted_like_others(problem: JsonObject) -> None:
    """What a search leaves aside because no selector wants it adds up, test by test, to the funnel of the whole node."""
    view, question = asked(problem)
    shown = focused(view, question)
    assume(shown.left_out)
    whole, part = sieves(view, question), sieves(shown, question)
    for all_of_it, some in zip(whole, part, strict=True):
        for sieve, shown_sieve in zip(all_of_it, some, strict=True):
            others = left_out(shown, shown_sieve)
            for number, passed in enumerate(sieve.passed):
                counted = shown_sieve.passed[number].devices.bit_count()
                counted += sum(bits[number].bit_count() for _, bits in others)
                assert counted == passed.devices.bit_count()
