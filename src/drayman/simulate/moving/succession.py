"""What becomes of pods that are evicted: their controllers make others, which are placed anew."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from drayman.api.claim_generation import is_made_for
from drayman.api.core import Pod, PodStatus
from drayman.placement.claims import extended_for, without_devices
from drayman.placement.state import ClusterState
from drayman.simulate.moving.movers import Mover

_SUCCESSOR: Final = " successor"


def successor_of(pod: Pod) -> Pod:
    """The pod that comes in place of one that was evicted. It has the name of the former, as that of a StatefulSet will."""
    metadata = replace(pod.metadata, uid=pod.metadata.uid + _SUCCESSOR, deletion_timestamp=None)
    spec = replace(pod.spec, node_name="")
    return Pod(metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


def succeed(state: ClusterState, mover: Mover) -> tuple[Pod, ...]:
    """In a trial: the pods are gone, and others wait in their place.

    Claims that were made for the pods are gone too. Those that the pods only name stay, without their devices.
    """
    for pod in mover.pods:
        state.delete_pod(pod)
    for claim in mover.claims:
        state.remove_claim(claim)
        is_own = extended_for(claim) is not None or any(is_made_for(claim, p) for p in mover.pods)
        if not is_own:
            state.set_claim(without_devices(claim))
    successors = tuple(map(successor_of, mover.pods))
    for pod in successors:
        state.set_pod(pod)
    return successors
