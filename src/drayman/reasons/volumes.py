"""What to say about volumes that a pod lacks: what is to make them, and why there is none for it.

A pod may wait for a volume after a node was chosen: the sentence says which claims are under way, and for which node. Or no node has one:
then the volumes of the claim's class are counted by what is wrong with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from drayman.api.storage import PersistentVolumeClaim
from drayman.api.volume_binding import (
    SELECTED_NODE,
    class_name_of,
    is_bound,
    is_provisioned,
    reserved_for,
    waits_for_consumer,
)
from drayman.placement.demand import Demand
from drayman.placement.fit import FITS, NodeFacts, claim_name, volume_check
from drayman.placement.fit.volume_matching import Mismatch, mismatch
from drayman.placement.fit.volumes import OpenClaim, allows
from drayman.placement.placing import Found
from drayman.placement.state import ClusterState
from drayman.placement.volumes import Volumes
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.wording import and_list, counted, named


def volumes_pending(names: Sequence[str], node: str) -> Headline:
    """For a pod that has a node and waits for volumes there."""
    has = "has" if len(names) == 1 else "have"
    return Headline.of(
        Reason.VOLUME_UNBOUND,
        f"{named('Volume claim', list(names))} {has} yet to get a volume for node {node}.",
    )


def volumes_under_way(found: Found) -> Headline | None:
    """For a pod whose volumes are being bound or provisioned for the node on which it fits."""
    if found.volumes is None:
        return None
    node = found.node.facts.name
    for claim in found.volumes.provisions:
        if claim.metadata.annotations.get(SELECTED_NODE) == node:
            return volumes_pending((claim.metadata.name,), node)
    for claim, volume in found.volumes.bindings:
        if reserved_for(volume, claim) is volume:
            return volumes_pending((claim.metadata.name,), node)
    return None


def unbound(state: ClusterState, demand: Demand) -> str:
    """Why a claim of the pod has no volume that the pod could use anywhere; empty if no known reason applies."""
    needs, volumes = demand.needs, state.volumes
    for ref in needs.shape.volumes:
        name = claim_name(needs, ref)
        claim = volumes.claim(needs.namespace, name)
        if claim is None:
            if ref.ephemeral:
                return (
                    f"Volume claim {name} has yet to be created for volume {ref.claim} of the pod."
                )
            return f"Volume claim {name} does not exist in namespace {needs.namespace}."
        if claim.metadata.deletion_timestamp is not None:
            return f"Volume claim {name} is being deleted."
        if claim.spec.volume_name and volumes.volume(claim.spec.volume_name) is None:
            gone = f"bound to volume {claim.spec.volume_name}, which does not exist"
            return f"Volume claim {name} is {gone}."
        if not is_bound(claim) and not _waits_for_pod(volumes, claim):
            class_name = class_name_of(claim)
            lost = class_name and volumes.storage_class(class_name) is None
            why = f"; its class {class_name} does not exist" if lost else ""
            return f"Volume claim {name} is not bound to a volume yet{why}."
    return ""


def lacking_volumes(state: ClusterState, demand: Demand, node: str) -> str:
    """What a node without a volume for a claim of the pod lacks: `no volume for volume claim data: ...`."""
    check, facts = volume_check(demand.needs, state.volumes), state.nodes[node].facts
    for item in check.open:
        if item.candidates.on(facts) is None and item.provision_verdict(facts) is not FITS:
            return _lacking(state.volumes, item, facts)
    # Each claim alone would get a volume, but not all of them together.
    return "too few volumes for the volume claims of the pod"


def _lacking(volumes: Volumes, item: OpenClaim, facts: NodeFacts) -> str:
    name, storage_class = item.claim.metadata.name, item.storage_class
    text = f"no volume for volume claim {name}"
    if is_provisioned(storage_class):
        if not allows(storage_class, facts):
            return f"{text}, and class {storage_class.metadata.name} does not allow one to be created there"
        return f"{text}, and {storage_class.provisioner} has too little storage left for it there"
    of_class = list(volumes.of_class(storage_class.metadata.name))
    if not of_class:
        return f"{text}: there is none of class {storage_class.metadata.name}"
    whys = Counter(mismatch(item.claim, volume) for volume in of_class)
    order = [None, *Mismatch]
    counts = [
        f"{number} {'elsewhere' if why is None else why.value}"
        for why, number in sorted(whys.items(), key=lambda entry: order.index(entry[0]))
    ]
    of = f"of {counted(len(of_class), 'volume')} of class {storage_class.metadata.name}"
    return f"{text}: {of}, {and_list(counts)}"


def _waits_for_pod(volumes: Volumes, claim: PersistentVolumeClaim) -> bool:
    storage_class = volumes.storage_class(class_name_of(claim))
    return waits_for_consumer(storage_class) and not claim.spec.volume_name
