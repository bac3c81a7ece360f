"""Whether pods may go to the nodes of a flavor: its taints, and its labels against what the pods require.

A flavor knows only the labels that it lists, so requirements on other labels are left to whoever places the pods. A term of node affinity
of which nothing is left then is met by any flavor.
"""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.core import NodeSelector
from drayman.api.kueue import ResourceFlavorSpec
from drayman.api.labels import parse_requirement
from drayman.placement.fit.taints import REPELLING, is_tolerated
from drayman.quota.demands import PodSetDemand


def mismatch(demand: PodSetDemand, flavor: str, spec: ResourceFlavorSpec) -> str | None:
    """Why the pods cannot go to the flavor; None if they can. Raises SelectorError for an affinity that cannot be understood."""
    tolerations = (*demand.tolerations, *spec.tolerations)
    for taint in spec.node_taints:
        if taint.effect in REPELLING and not is_tolerated(taint, tolerations):
            shown = f"{taint.key}={taint.value}:{taint.effect}"
            return f"untolerated taint {shown} in flavor {flavor}"
    labels = spec.node_labels
    for key, value in demand.node_selector.items():
        if key in labels and labels[key] != value:
            return f"flavor {flavor} doesn't match node selector {key}={value}"
    if demand.affinity is not None and not _meets(demand.affinity, labels):
        return f"flavor {flavor} doesn't match node affinity"
    return None


def _meets(affinity: NodeSelector, labels: Mapping[str, str]) -> bool:
    for term in affinity.node_selector_terms:
        known = [each for each in term.match_expressions if each.key in labels]
        if all(parse_requirement(r.key, r.operator, r.values)(labels) for r in known):
            return True
    return not affinity.node_selector_terms
