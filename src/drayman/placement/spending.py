"""What a pod says about the price of its node, and how nodes are ordered by that.

| the pod | goes to |
|---|---|
| says `drayman.dev/cost: low` | the cheapest node that takes it |
| has a priority above 0 and wants devices | a node that is not spot, the dearest that takes it |
| has a priority above 0 and wants none | a node that is not spot |
| otherwise | any node, whatever it costs |

Important pods are often small: a DNS server has no use for the dearest accelerators. So only pods with devices lean to dear nodes.

A spot node may be taken back at any time, so a pod has to accept that: see `Spending.takes_spot`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from drayman.allocator import Quality
from drayman.api.core import NodeSelectorTerm, Pod, Taint
from drayman.api.meta import controller_of
from drayman.api.pods import priority_of
from drayman.placement.fit import Cause, Verdict
from drayman.placement.fit.taints import REPELLING, is_tolerated
from drayman.placement.prices import CLOUD_SPOT, COST, LOW, SAID_BY_PODS, SPOT, Offer

SPOT_KEYS: Final[Mapping[str, str]] = {SPOT: "true", **CLOUD_SPOT}
"""The keys of labels and taints by which spot nodes are known, with their values."""
_SPOT_TAINTS: Final = tuple(
    Taint(key=key, value=value, effect=effect)
    for key, value in SPOT_KEYS.items()
    for effect in REPELLING
)
NOT_ACCEPTED: Final = "node(s) were spot nodes, which the pod doesn't accept"
NOT_FOR_SPOT: Final = Verdict.refusal(Cause.SPOT, NOT_ACCEPTED)


class Leaning(Enum):
    """Which of the nodes that take a pod it would rather have, by their price."""

    NONE = "none"
    CHEAP = "cheap"
    PREMIUM = "premium"
    LASTING = "lasting"
    """Not spot; the price does not matter."""


class Spending(Struct, frozen=True):
    """What a pod says about the price of its node."""

    leaning: Leaning = Leaning.NONE
    takes_spot: bool = True


UNCONCERNED: Final = Spending()
"""Of any pod where no node has a price or is spot."""

Rank = tuple[object, ...]


def spending_of(pod: Pod, *, wants_devices: bool) -> Spending:
    """What a pod says, and what follows from its priority."""
    leaning = Leaning.NONE
    if stated(pod, COST) == LOW:
        leaning = Leaning.CHEAP
    elif priority_of(pod) > 0:
        leaning = Leaning.PREMIUM if wants_devices else Leaning.LASTING
    return Spending(leaning, _takes_spot(pod))


def stated(pod: Pod, name: str) -> str | None:
    """What a pod says in an annotation or label of ours; None where it says nothing that is understood."""
    metadata = pod.metadata
    for values in (metadata.annotations, metadata.labels):
        if values.get(name) in SAID_BY_PODS[name]:
            return values[name]
    return None


def is_otherwise(old: Pod, new: Pod) -> bool:
    """Whether a pod says something else in its annotations than before. Labels are looked at for other reasons already."""
    before, after = old.metadata.annotations, new.metadata.annotations
    return any(before.get(name) != after.get(name) for name in SAID_BY_PODS)


def misstated(pod: Pod) -> Iterator[str]:
    """What a pod says that is not understood."""
    metadata = pod.metadata
    for where, values in (("annotation", metadata.annotations), ("label", metadata.labels)):
        for name, known in SAID_BY_PODS.items():
            if name in values and values[name] not in known:
                words = " or ".join(f'"{each}"' for each in known)
                yield f"{where} {name}: {values[name]!r} is not {words}, and is ignored"


def price_rank(spending: Spending, offer: Offer, quality: Rank) -> Rank:
    """How a node ranks by its price for a pod that may go there, the lowest first; equal for all if the pod does not lean to any.

    It comes after what the user prefers. That a request gets an earlier alternative of its list is such a preference too, but one that
    cost: low outweighs. A node without a price comes after those with one: nothing is known about it.
    """
    if spending is UNCONCERNED:
        return ()
    price = offer.price
    match spending.leaning:
        case Leaning.NONE:
            return ()
        case Leaning.CHEAP:
            return (price is None, price or 0)
        case Leaning.PREMIUM:
            chosen = tuple(part.alternatives for part in quality if isinstance(part, Quality))
            return (chosen, offer.is_spot, price is None, -(price or 0))
        case Leaning.LASTING:
            return (offer.is_spot,)


def _takes_spot(pod: Pod) -> bool:
    """Whether a pod may go to spot nodes.

    It may if it says so; if it tolerates the taint of spot nodes of some cloud, whether or not the nodes here have it; if it selects nodes
    by a label that marks them, so that its selector decides; or if it is a daemon, which belongs on each node.
    """
    said = stated(pod, SPOT)
    if said is not None:
        return said == "true"
    spec = pod.spec
    if any(is_tolerated(taint, spec.tolerations) for taint in _SPOT_TAINTS if spec.tolerations):
        return True
    if any(key in SPOT_KEYS for key in spec.node_selector):
        return True
    if any(_names_spot(term) for term in _required_terms(pod)):
        return True
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind == "DaemonSet"


def _required_terms(pod: Pod) -> tuple[NodeSelectorTerm, ...]:
    affinity = pod.spec.affinity
    nodes = None if affinity is None else affinity.node_affinity
    required = None if nodes is None else nodes.required_during_scheduling_ignored_during_execution
    return () if required is None else required.node_selector_terms


def _names_spot(term: NodeSelectorTerm) -> bool:
    return any(condition.key in SPOT_KEYS for condition in term.match_expressions)
