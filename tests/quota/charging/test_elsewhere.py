"""Work that runs in another cluster is charged by the classes of its devices, even if this cluster has no such device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.kueue import AdmissionCheck, ClusterQueue, LocalQueue
from drayman.quota.charging.outcome import Charges, Code, PriceRefusal
from drayman.quota.checks import Checks
from drayman.quota.decisions import Reserved
from drayman.quota.demands import PodSetRequest, Unpriced
from drayman.quota.state import QuotaState
from oracle.build import everything, exactly
from quota.charging.pricing_cases import (
    CLASSES,
    GI,
    ON_GPU,
    charged,
    cluster,
    extended,
    pods,
    pricing,
    refused,
)
from quota.charging.test_in_the_engine import engine, named, pod_set, workload

JsonObject = dict[str, Any]
CHECK = "elsewhere"
MEMORY = {"requests": {"memory": "20Gi"}}


@dataclass(frozen=True)
class Case:
    """Requests of a template, and what a pod is charged or why it has no price."""

    requests: list[JsonObject]
    charges: dict[str, int] | str
    classes: Sequence[JsonObject] = CLASSES


CASES = {
    "a selector matches no device here": Case([exactly(count=2, select=[ON_GPU])], {"gpus": 2}),
    "the class is only there": Case([exactly(count=2)], {"gpus": 2}, classes=()),
    "alternatives cost the dearest": Case(
        [
            {
                "name": "r",
                "firstAvailable": [
                    {"name": "a", "deviceClassName": "gpu", "count": 3},
                    {"name": "b", "deviceClassName": "nic", "count": 1},
                ],
            }
        ],
        {"gpus": 3, "nics": 1},
    ),
    "a capacity that is requested": Case(
        [exactly("r", 2, "share", capacity=MEMORY)], {"vram": 40 * GI}
    ),
    "a capacity that is requested of a class that is only there": Case(
        [exactly("r", 1, "share", capacity=MEMORY)], {"vram": 20 * GI}, classes=()
    ),
    "a counter that no device here has": Case([exactly("r", 1, "mig")], "request a capacity"),
    "all devices of a node": Case([everything()], "all devices of a node are wanted"),
    "a class without a mapping": Case([exactly("r", 1, "unknown")], "no mapping says"),
}


def priced(case: Case, *, elsewhere: bool = True) -> Charges | PriceRefusal:
    state = cluster(templates={"t": case.requests}, classes=case.classes)
    asked = PodSetRequest("main", 2, pods("t"), runs_elsewhere=elsewhere)
    found = pricing(state).price_workload("default", [asked])
    return found if isinstance(found, PriceRefusal) else found["main"]


@pytest.mark.parametrize("name", CASES)
def test_devices_elsewhere_cost(name: str) -> None:
    """Requests are counted by class; what only a device tells is what is requested of it, or has no price."""
    case = CASES[name]
    found = priced(case)
    if isinstance(case.charges, str):
        assert case.charges in refused(found).message
    else:
        assert charged(found) == case.charges


def test_the_same_request_here_needs_a_device() -> None:
    """Only work for another cluster is excused."""
    case = CASES["a selector matches no device here"]
    assert refused(priced(case, elsewhere=False)).code is Code.DEVICE_SHORTAGE


def test_extended_resources_elsewhere_are_counted_by_class() -> None:
    """The class stands behind the name here, and no device does."""
    state = cluster(classes=[extended("gpu", "example.com/gpu", "", ON_GPU)])
    template = pods(containers=[{"example.com/gpu": "2"}])
    asked = PodSetRequest("main", 1, template, runs_elsewhere=True)
    found = pricing(state).price_workload("default", [asked])
    assert not isinstance(found, PriceRefusal)
    assert charged(found["main"]) == {"gpus": 2}


# Whether work runs elsewhere is known from the checks of its queue, which come and go.


class Place:
    """An engine with a queue, and a workload whose selector matches no device."""

    def __init__(self) -> None:
        self.checks: dict[str, AdmissionCheck] = {}
        self.engine: QuotaState = engine(cluster(templates={"t": [exactly(select=[ON_GPU])]}))
        self.engine.books.checks = Checks(self.checks.get)
        self.queue()

    def queue(self, *checks: str) -> None:
        quota = {"name": "f", "resources": [{"name": "gpus", "nominalQuota": "10"}]}
        groups = [{"coveredResources": ["gpus"], "flavors": [quota]}]
        rules = {"admissionChecks": [{"name": name} for name in checks]}
        spec: JsonObject = {"namespaceSelector": {}, "resourceGroups": groups}
        if checks:
            spec["admissionChecksStrategy"] = rules
        self.engine.set_cluster_queue(convert(ClusterQueue, named("q", **spec)), 0.0)

    def check(self, controller: str = "kueue.x-k8s.io/multikueue") -> None:
        condition = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
        made = {**named(CHECK, controllerName=controller), "status": {"conditions": [condition]}}
        self.checks[CHECK] = convert(AdmissionCheck, made)
        self.engine.checks_changed(0.0)

    def submit(self) -> None:
        self.engine.set_workload(workload(pod_set("a", 3, "t")), 0.0)

    @property
    def has_price(self) -> bool:
        return not isinstance(self.engine.entries["default/w"].facts.demands, Unpriced)


def test_a_queue_with_a_multikueue_check_prices_by_class() -> None:
    """The workload gets quota for one device for each pod."""
    place = Place()
    place.queue(CHECK)
    place.check()
    place.submit()
    (decision,) = place.engine.cycle(1.0)
    assert isinstance(decision, Reserved)
    (assigned,) = decision.admission.pod_set_assignments
    assert str(assigned.resource_usage["gpus"]) == "3"


def test_a_check_of_another_controller_has_work_run_here() -> None:
    """The pods need devices of this cluster."""
    place = Place()
    place.queue(CHECK)
    place.check("example.com/budget")
    place.submit()
    assert not place.has_price


def test_workloads_are_priced_again_when_their_queue_sends_them_elsewhere() -> None:
    """The check is added to the queue after the workload, then comes to exist, then is removed from the queue."""
    place = Place()
    place.submit()
    assert not place.has_price
    place.queue(CHECK)
    assert not place.has_price
    place.check()
    assert place.has_price
    place.queue()
    assert not place.has_price


def test_workloads_are_priced_again_when_their_local_queue_leads_elsewhere() -> None:
    """A local queue that did not exist, or led to a queue of this cluster, leads to one of another cluster."""
    place = Place()
    place.queue(CHECK)
    place.check()
    place.engine.remove_local_queue("default", "q", 0.0)
    place.submit()
    place.engine.set_local_queue(convert(LocalQueue, named("q", clusterQueue="q")), 0.0)
    (decision,) = place.engine.cycle(1.0)
    assert isinstance(decision, Reserved)
