"""Whether those have gone for whom gangs wait, and what is remembered of that."""

from __future__ import annotations

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.cluster.informers import Handlers, Informers
from drayman.cluster.resources import PODS
from drayman.inventory.features import Features
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import Fitting
from drayman.placement.gangs.gang import Dialect, GangKey
from drayman.placement.nominations import Nominations
from drayman.placement.state import ClusterState
from drayman.scheduler.departures import Departures
from drayman.scheduler.occupants import Occupants


def test_nothing_is_remembered_of_gangs_that_have_started() -> None:
    """Gangs come and go for as long as the scheduler runs: only those count that still wait for others to go."""
    state = ClusterState(Features(), lambda _: None)
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"pods": "10"}}}
    state.set_node(convert(Node, node))
    informers = Informers(None)  # type: ignore[arg-type]
    nominations = Nominations(state)
    occupants = Occupants(Handlers(informers), state, nominations.expects_to_go)
    departures = Departures(nominations, occupants)
    victim = make_pod("victim", "n")
    informers.informer(PODS).cache.put(("default", "victim"), victim)
    for number in range(3):
        gang, member = GangKey(Dialect.KUBERNETES, "default", f"g{number}"), make_pod(f"m{number}")
        fitting = Decider(state).round(0.0).consider(member)
        assert isinstance(fitting, Fitting)
        seat = (fitting.demand.needs, member, fitting.found)
        nominations.promise_gang(gang, 0, [seat], (victim,), ())
        assert departures.left(gang) == 1
        nominations.withdraw_gang(gang)
    assert departures.remembered <= 1


def make_pod(name: str, node: str = "") -> Pod:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return convert(Pod, {"metadata": metadata, "spec": {"nodeName": node}})
