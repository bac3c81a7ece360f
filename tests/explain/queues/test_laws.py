"""Laws over random halls: what is said agrees with an engine that is asked directly, and asking changes nothing."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from drayman.explain.queues.explaining import explain_queued
from drayman.explain.queues.forecast import Forecast
from drayman.explain.queues.standing import Line
from drayman.questions.queues.overview import overview
from drayman.reasons.reason import Reason
from explain.applying import apply
from explain.hall import Hall

_LIMITS = st.one_of(st.none(), st.integers(0, 4))


@st.composite
def halls(draw: st.DrawFn) -> Hall:
    """Up to three queues in up to two cohorts, with workloads that hold quota or wait."""
    hall = Hall().flavor("f").flavor("g")
    hall.cohort("root", f=draw(st.integers(0, 3))).cohort("inner", "root")
    names = ["a", "b", "c"][: draw(st.integers(1, 3))]
    for name in names:
        cohort = draw(st.sampled_from(["", "root", "inner"]))
        quota: dict[str, int] = {"nominal": draw(st.integers(0, 6))}
        if cohort:
            limits = {"borrow": draw(_LIMITS), "lend": draw(_LIMITS)}
            quota |= {key: value for key, value in limits.items() if value is not None}
        more: dict[str, object] = {
            "queueingStrategy": draw(st.sampled_from(["StrictFIFO", "BestEffortFIFO"]))
        }
        if draw(st.booleans()):
            more["preemption"] = {
                "withinClusterQueue": "LowerPriority",
                "reclaimWithinCohort": "Any",
            }
        hall.queue(name, cohort, more=more, f=quota, g=draw(st.integers(0, 2)))
    for number in range(draw(st.integers(1, 7))):
        hall.workload(
            f"w{number}",
            draw(st.sampled_from(names)),
            draw(st.integers(1, 5)),
            priority=draw(st.integers(0, 2)),
            has=draw(st.sampled_from(["", "f"])),
            admitted=draw(st.booleans()),
            runs=draw(st.sampled_from(["", "2h", "3h"])),
        )
    return hall


@given(halls())
def test_what_fits_is_what_gets_quota(hall: Hall) -> None:
    """A workload is said to fit if and only if the engine, left to itself, gives it quota."""
    line = Line(hall.world())
    for key, entry in line.queues.state.entries.items():
        if entry.holding is None:
            fits = line.headline(key).reason is Reason.FITS
            assert fits == (key in line.settled.given)


@given(halls())
def test_asking_again_gives_the_same_answer(hall: Hall) -> None:
    """Trials for remedies and forecasts leave no trace."""
    world = hall.world()
    line = Line(world)
    before = {key: line.headline(key) for key in line.queues.workloads}
    first = Forecast(line)
    assert {key: line.headline(key) for key in line.queues.workloads} == before
    assert Forecast(line).starts == first.starts
    answers = [explain_queued(world, each) for each in world.objects.queued_workloads]
    assert answers == [explain_queued(world, each) for each in world.objects.queued_workloads]


@given(halls())
def test_every_remedy_helps(hall: Hall) -> None:
    """Carried out on the objects, each gives the workload quota on an engine that knows nothing of the trial."""
    world = hall.world()
    for workload in world.objects.queued_workloads:
        key = f"default/{workload.metadata.name}"
        for remedy in explain_queued(world, workload).remedies:
            after = world.with_objects(apply(world.objects, remedy))
            assert key in Line(after).settled.given, remedy.sentence


@given(halls())
def test_what_is_virtual_is_what_is_borrowed(hall: Hall) -> None:
    """In each flavor, unless more is used than there is: then less is lent."""
    found = overview(hall.world())
    borrowed: dict[str, Fraction] = {}
    lent: dict[str, Fraction] = {}
    over = False
    for queue in found.queues:
        for row in queue.quotas:
            borrowed[row.flavor] = row.borrowed.amount + borrowed.get(row.flavor, Fraction(0))
            lent[row.flavor] = row.lent.amount + lent.get(row.flavor, Fraction(0))
    for cohort in found.cohorts:
        for row in cohort.quotas:
            lent[row.flavor] = row.lent.amount + lent.get(row.flavor, Fraction(0))
            over = over or (row.shared is not None and row.used.amount > row.shared.amount)
    if not over:
        assert borrowed.keys() <= lent.keys()
        assert all(lent[flavor] == amount for flavor, amount in borrowed.items())
