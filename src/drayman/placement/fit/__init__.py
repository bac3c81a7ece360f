"""Which nodes a pod fits on and which suit it best, not considering devices.

The rules are those of kube-scheduler's default profile, in its order and words: the node object, ports, resources, volumes, spreading and
affinity between pods. Not implemented are default spreading (upstream's system defaults for services and replica sets), limits on the
number of volumes, image locality, and the resizing of running pods, which count by their spec.

Pure: changing state is passed in as `NodeUsage` and `Neighbourhood`, which the scheduler keeps up to date.
"""

from drayman.placement.fit.needs import PodNeeds, PodShape
from drayman.placement.fit.neighbour_check import NO_NEIGHBOURS, NeighbourCheck
from drayman.placement.fit.neighbourhood import EmptyNeighbourhood, Neighbourhood
from drayman.placement.fit.node import NodeFacts, NodeShape
from drayman.placement.fit.scores import balance, has_preferences, preferences, taint_scores
from drayman.placement.fit.static import StaticVerdicts, static_verdict
from drayman.placement.fit.usage import NodeUsage, usage_room, usage_verdict
from drayman.placement.fit.verdict import (
    FITS,
    Cause,
    Verdict,
    refused_everywhere,
    unschedulable_message,
)
from drayman.placement.fit.volumes import (
    NO_VOLUMES,
    VolumeCheck,
    VolumeChoice,
    VolumeView,
    claim_name,
    volume_check,
)

__all__ = [
    "FITS",
    "NO_NEIGHBOURS",
    "NO_VOLUMES",
    "Cause",
    "EmptyNeighbourhood",
    "NeighbourCheck",
    "Neighbourhood",
    "NodeFacts",
    "NodeShape",
    "NodeUsage",
    "PodNeeds",
    "PodShape",
    "StaticVerdicts",
    "Verdict",
    "VolumeCheck",
    "VolumeChoice",
    "VolumeView",
    "balance",
    "claim_name",
    "has_preferences",
    "preferences",
    "refused_everywhere",
    "static_verdict",
    "taint_scores",
    "unschedulable_message",
    "usage_room",
    "usage_verdict",
    "volume_check",
]
