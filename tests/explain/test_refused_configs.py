"""A configuration that its driver will refuse is told before the pod has its devices."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from drayman.simulate.planning import plan
from explain.town import Town
from oracle.build import claim as asked
from oracle.build import exactly
from simulate.cluster import alone, asks, cluster, wanted
from simulate.cluster import claim as planned_claim

HEAD = {"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig"}
WRONG = {"driver": "gpu.example.com", "parameters": HEAD | {"sharing": {"strategy": "MPSS"}}}
RIGHT = {"driver": "gpu.example.com", "parameters": HEAD}
FOREIGN = {"driver": "gpu.acme.com", "parameters": {"anything": 1}}
REFUSED = (
    "driver gpu.example.com refuses spec.devices.config[0].opaque.parameters: "
    "sharing.strategy: 'MPSS' is none of TimeSlicing, SpacePartitioning"
)
CASES = {
    "refused": (WRONG, (f"claim c0: {REFUSED}",)),
    "accepted": (RIGHT, ()),
    "of a driver that is not known": (FOREIGN, ()),
}


@pytest.mark.parametrize("name", CASES)
def test_an_explanation_says_what_a_driver_will_refuse(name: str) -> None:
    """The pod fits all the same: Kubernetes does not look at configurations."""
    opaque, told = CASES[name]
    made = asked(exactly("r", 1), config=[{"opaque": opaque}])
    found = Town().node("node-a", 2).wants(made).explain()
    assert found.headline.reason is Reason.FITS
    assert found.refused_configs == told


def test_what_a_class_says_counts_for_the_claims_that_name_it() -> None:
    """Its owner is another, so the class is named."""
    town = Town().node("node-a", 2).wants(asked(exactly("r", 1)))
    for each in town.classes:
        each["spec"] = {**each["spec"], "config": [{"opaque": WRONG}]}
    (told,) = town.explain().refused_configs
    assert told.startswith("class gpu: driver gpu.example.com refuses spec.config[0].opaque")


def test_a_plan_says_it_of_every_pod() -> None:
    """With where the pod would go, which is where it would not start."""
    devices = asks(1)["devices"] | {"config": [{"opaque": WRONG}]}
    wrong = planned_claim("c", spec={"devices": devices})
    report = plan(cluster({"a": 2}), wanted(alone("p", claim="c"), alone("q"), claims=(wrong,)))
    told = {pod.name: pod.refused_configs for pod in report.pods}
    assert told == {"p": (f"claim c: {REFUSED}",), "q": ()}
    assert report.fits
