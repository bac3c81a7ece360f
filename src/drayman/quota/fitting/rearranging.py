"""Room for a workload whose pods were given other places in a topology, because nodes were lost.

Whoever stays where it is keeps what it has there. Room is found for the others, in their new domains.
"""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.errors import DecodeError
from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.kueue_workload import Admission, Workload
from drayman.placement.state import ClusterState
from drayman.quota.fitting.expecting import WorkloadPods, expected_pods
from drayman.quota.fitting.fitter import Unfit
from drayman.quota.fitting.reservation import ReservedPlace, RoomReservation, place_of
from drayman.quota.fitting.rooms import Rooms, workload_pods
from drayman.workloads.queued.starting import StartError

_Values = tuple[str | None, ...]
"""Of the labels that pods of a set select."""


def rearranged(
    rooms: Rooms,
    state: ClusterState,
    workload: Workload,
    admission: Admission,
    flavors: Mapping[str, ResourceFlavorSpec],
    now: float,
) -> RoomReservation | Unfit:
    """Room for a workload with a changed admission. Nothing is kept of it yet (`Rooms.rearrange`)."""
    try:
        wanted = workload_pods(workload, admission, flavors)
    except (DecodeError, StartError) as error:
        return Unfit(str(error))
    old = rooms.book.get(wanted.key)
    if old is None or not old.places:
        # Nobody could tell whose pods they are, so nothing was kept.
        return RoomReservation(wanted, ())
    staying = _staying(state, wanted, old)
    missing = [each for each in expected_pods(wanted) if each.pod.metadata.uid not in staying]
    with state.trial():
        rooms.book.set_aside(old)
        for place, former in staying.values():
            if rooms.book.counts(former):
                rooms.book.put_back(place)
        found = rooms.fitter.places_for(missing, now)
    if isinstance(found, Unfit):
        return found
    places = {**{uid: place for uid, (place, _) in staying.items()}, **{p.uid: p for p in found}}
    return RoomReservation(
        wanted, tuple(places[each.pod.metadata.uid] for each in expected_pods(wanted))
    )


def _staying(
    state: ClusterState, wanted: WorkloadPods, old: RoomReservation
) -> dict[str, tuple[ReservedPlace, ReservedPlace]]:
    """Pods that have room in their domain, by uid: their place, and what it was before, when it may have had another number."""
    keys = {
        each.pod_set: tuple(sorted(each.pod.spec.node_selector)) for each in expected_pods(wanted)
    }
    left: dict[tuple[str, _Values], list[ReservedPlace]] = {}
    for place in reversed(old.places):
        node = state.nodes.get(place.node)
        if node is not None:
            values = tuple(node.facts.labels.get(key) for key in keys.get(place.pod_set, ()))
            left.setdefault((place.pod_set, values), []).append(place)
    found = {}
    for expected in expected_pods(wanted):
        selector = expected.pod.spec.node_selector
        values = tuple(selector[key] for key in sorted(selector))
        candidates = left.get((expected.pod_set, values))
        if candidates:
            former = candidates.pop()
            place = place_of(
                expected.pod_set,
                expected.number,
                expected.pod,
                former.node,
                former.devices,
                former.claims,
                state.mapped_devices,
            )
            found[place.uid] = (place, former)
    return found
