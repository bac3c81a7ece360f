"""What devices cost on the nodes of a flavor.

What a workload costs in the whole cluster is known before flavors are tried. Where that depends on the devices that there are, those on the
nodes of a flavor may cost less: a mixed fleet charges each flavor by its own devices. The question is asked for flavors that have node
labels and are tried, once for all workloads of a shape, until devices change (`forget`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from drayman.bounded import Bounded
from drayman.quota.demands import Charged, PodSetDemand, Pricing, Unpriced
from drayman.quota.entries import Entry

_MOST_KNOWN: Final = 4_096


class FlavorPrices:
    """Asks what pod sets cost in flavors."""

    def __init__(self, pricing: Pricing | None) -> None:
        self._pricing = pricing
        self._known: Bounded[Hashable, Mapping[str, Charged] | Unpriced] = Bounded(_MOST_KNOWN)

    def of(
        self, entry: Entry, demands: Sequence[PodSetDemand], labels: Mapping[str, str]
    ) -> Mapping[str, Charged] | Unpriced:
        """The prices of those sets that may cost otherwise on nodes with these labels, by name; or why there are no devices for them."""
        asked = [demand.priced for demand in demands if demand.priced is not None]
        if not asked or not labels or self._pricing is None:
            return {}
        key = (entry.shape, frozenset(labels.items()), tuple(each.name for each in asked))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._pricing.price_workload(
                entry.facts.namespace, asked, workload=entry.key, flavor=labels
            )
        return found

    def forget(self) -> None:
        """Devices, or what they are asked for with, have changed."""
        self._known.clear()
