"""Whether a cluster from which everything was deleted has everything to give: a pod for each node asks for all of its CPUs, and for all of
its devices where they are given as a whole. Room that a scheduler keeps for something that is gone shows in nothing else.
"""

from __future__ import annotations

import time
from typing import Final

from faults.cluster import HARDWARE, NODES, Api
from faults.snapshot import PATHS, Object
from faults.units import PODS, SCHEDULERS, TEMPLATES, as_object, from_template, pod_spec
from patience import PATIENCE_S

_CLASSES: Final = {"example": "gpu.example.com", "dgx-h100": "gpu.nvidia.com"}
"""By profile: devices that are given as a whole."""
_PAUSE_S: Final = 0.1


class Probe:
    """A pod on each node, by one of the schedulers."""

    def __init__(self, api: Api, scheduler: str) -> None:
        self._api = api
        self._scheduler = scheduler

    def prepare(self) -> None:
        for profile, device_class in _CLASSES.items():
            exactly = {"deviceClassName": device_class, "allocationMode": "All"}
            spec = {"devices": {"requests": [{"name": "all", "exactly": exactly}]}}
            self._api.create(TEMPLATES, as_object(f"all-of-{profile}", {"spec": spec}))

    def ask(self) -> None:
        """Ask for everything."""
        found = self._api.get(PATHS["nodes"])
        assert found is not None
        cpus = {n["metadata"]["name"]: n["status"]["allocatable"]["cpu"] for n in found["items"]}
        for profile, count in HARDWARE.items():
            for node in (f"{profile}-{number}" for number in range(count)):
                template = f"all-of-{profile}" if profile in _CLASSES else ""
                self._create(f"probe-{node}", node, cpus[node], template)

    def occupy(self, node: str) -> None:
        """Take a little of a node."""
        self._create("occupier", node, "1")
        self._wait({"occupier"}, "Running")

    def vacate(self) -> None:
        self._api.delete(f"{PODS}/occupier", at_once=True)

    def _create(self, name: str, node: str, cpu: str, template: str = "") -> None:
        spec = pod_spec(
            from_template(template) if template else [],
            nodeSelector={"kubernetes.io/hostname": node},
            schedulerName=self._scheduler,
        )
        spec["containers"][0]["resources"]["requests"] = {"cpu": cpu}
        self._api.create(PODS, as_object(name, spec))

    def wait_for_refusal(self, node: str) -> list[str]:
        """Until the pod of a node is told to wait. What is wrong if it is not."""
        return self._wait({f"probe-{node}"}, "refused")

    def wait_for_all(self) -> list[str]:
        """Until everything was given. What was not."""
        return self._wait({f"probe-{node}" for node in NODES}, "Running")

    def _wait(self, names: set[str], wanted: str) -> list[str]:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = self._api.get(PODS)
            assert found is not None
            states = {pod["metadata"]["name"]: state_of(pod) for pod in found["items"]}
            missing = [
                f"{name} is {states.get(name)}"
                for name in sorted(names)
                if states.get(name) != wanted
            ]
            if not missing:
                return []
            time.sleep(_PAUSE_S)
        return missing

    def end(self) -> None:
        for node in NODES:
            self._api.delete(f"{PODS}/probe-{node}", at_once=True)


def state_of(pod: Object) -> str:
    """Whether a pod runs, or was told that it cannot."""
    conditions = {c["type"]: c["status"] for c in pod.get("status", {}).get("conditions") or ()}
    if conditions.get("PodScheduled") == "False":
        return "refused"
    return str(pod.get("status", {}).get("phase"))


def kept_for_nobody(api: Api) -> list[str]:
    """What an empty cluster does not give, to either scheduler. First it is seen that the probe notices what is taken."""
    wrong: list[str] = []
    taken = NODES[0]
    for scheduler in SCHEDULERS:
        probe = Probe(api, scheduler)
        if scheduler == SCHEDULERS[0]:
            probe.prepare()
            probe.occupy(taken)
            probe.ask()
            wrong += probe.wait_for_refusal(taken)
            probe.vacate()
        else:
            probe.ask()
        wrong += [f"{scheduler}: {each}" for each in probe.wait_for_all()]
        probe.end()
    return wrong
