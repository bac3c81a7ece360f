"""Laws of the funnel over random clusters: counting nodes in groups gives what counting them one by one does."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from drayman.allocator.refusals.funnel import sieves
from drayman.explain.funnel import funnels
from drayman.explain.survey import Survey
from drayman.inventory.identity import DeviceId
from drayman.placement.decision.deciding import Decider
from drayman.placement.placing import Found
from explain.town import NIC, ROOT, Town
from oracle.build import claim, device, exactly, taint

KINDS = (
    ["d0", "d1"],
    ["d0", "d1", device("d2", taints=[taint("broken")])],
    [device(f"d{i}", attrs={ROOT: f"r{i // 2}"}) for i in range(4)],
    [],
)


@st.composite
def towns(draw: st.DrawFn) -> Town:
    """A few nodes of few kinds, perhaps devices that all of them see, and a pod that wants some."""
    town = Town()
    for number in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(KINDS))
        driver = draw(st.sampled_from(["gpu.example.com", NIC]))
        town.node(f"n{number}", kind, driver=driver, unschedulable=draw(st.integers(0, 5)) == 0)
        for name in (item if isinstance(item, str) else item["name"] for item in kind):
            if draw(st.booleans()):
                town.holds(f"p{number}-{name}", f"n{number}", name, driver=driver)
    if draw(st.booleans()):
        driver = draw(st.sampled_from(["gpu.example.com", NIC]))
        town.slice(["f0", "f1"], driver=driver, pool="fabric", allNodes=True)
    cls = st.sampled_from(["gpu", "nic"])
    requests = [
        exactly(f"r{i}", draw(st.integers(1, 3)), cls=draw(cls))
        for i in range(draw(st.integers(1, 2)))
    ]
    return town.wants(claim(*requests, match=[ROOT] if draw(st.booleans()) else []))


def counted_one_by_one(survey: Survey) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Nodes and devices by request, test and number of the step, without groups and shortcuts."""
    nodes: defaultdict[tuple[str, str, int], set[str]] = defaultdict(set)
    devices: defaultdict[tuple[str, str, int], set[DeviceId]] = defaultdict(set)
    state = survey.state
    for site in survey.sites:
        view = state.inventory.view(site.node.node, state.ledger)
        for request in sieves(view, site.outlook.wanted.question):
            for sieve in request:
                for number, passed in enumerate(sieve.passed):
                    key = (sieve.wanted.name, passed.test.value, number)
                    left = passed.devices if site.unfit is None else 0
                    devices[key].update(view.ids_of(left))
                    nodes[key].update([site.name] if left else [])
    return {key: (len(nodes[key]), len(devices[key])) for key in devices}


@given(town=towns())
def test_groups_count_like_single_nodes(town: Town) -> None:
    """Every step has the nodes and devices that looking at each node by itself gives."""
    survey = town.survey()
    found = defaultdict(list)
    for (request, test, _), numbers in sorted(
        counted_one_by_one(survey).items(), key=lambda item: item[0][2]
    ):
        found[request].append((test, *numbers))
    for funnel in funnels(survey):
        steps = [(s.test, s.nodes, s.devices) for s in funnel.steps[1:] if s.test != "together"]
        # Tests that take nothing away may be left out.
        assert [step for step in found[funnel.request] if step in steps] == steps


@given(town=towns())
def test_a_pod_that_fits_nowhere_has_a_request_without_nodes(town: Town) -> None:
    """Some request ends with no nodes exactly if the search finds none."""
    world = town.world()
    pod = world.pod("default", "pending")
    assert pod is not None
    round_ = Decider(world.state).round(world.now)
    demand = round_.demand(pod)
    fits = isinstance(round_.find(demand), Found)
    made = funnels(Survey(world.state, demand), refused=not fits)
    assert all(funnel.steps[-1].nodes for funnel in made) == fits


@given(town=towns())
def test_the_first_of_all_standings_is_the_one_that_is_taken(town: Town) -> None:
    """The nodes that will do are listed in the order in which they would be taken, and are none where none is found."""
    world = town.world()
    pod = world.pod("default", "pending")
    assert pod is not None
    round_ = Decider(world.state).round(world.now)
    demand = round_.demand(pod)
    found = round_.find(demand)
    names = [standing.node.facts.name for standing in round_.placer(demand).standings(demand)]
    assert names[:1] == ([found.node.facts.name] if isinstance(found, Found) else [])
