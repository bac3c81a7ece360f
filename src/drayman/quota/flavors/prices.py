"""What devices cost on the nodes of a flavor.

What a workload costs in the whole cluster is known before flavors are tried. Where that depends on the devices that there are, those on the
nodes of a flavor may cost less: a mixed fleet charges each flavor by its own devices. The question is asked for flavors that have node
labels and are tried, and the answer is kept with the workload until its devices change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drayman.quota.demands import Charged, PodSetDemand, Pricing, Unpriced
from drayman.quota.entries import Entry


class FlavorPrices:
    """Asks what pod sets cost in flavors."""

    def __init__(self, pricing: Pricing | None) -> None:
        self._pricing = pricing

    def of(
        self, entry: Entry, demands: Sequence[PodSetDemand], labels: Mapping[str, str]
    ) -> Mapping[str, Charged] | Unpriced:
        """The prices of those sets that may cost otherwise on nodes with these labels, by name; or why there are no devices for them."""
        asked = [demand.priced for demand in demands if demand.priced is not None]
        if not asked or not labels or self._pricing is None:
            return {}
        key = (frozenset(labels.items()), tuple(each.name for each in asked))
        found = entry.prices.get(key)
        if found is None:
            found = entry.prices[key] = self._pricing.price_workload(
                entry.facts.namespace, asked, workload=entry.key, flavor=labels
            )
        return found
