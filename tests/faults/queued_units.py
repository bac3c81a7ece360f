"""Work that waits in queues: Jobs that end and Jobs that stay, pods with a gate, and groups of pods; with priorities and with claims."""

from __future__ import annotations

import random
from typing import Final

from faults.charges import CHARGES
from faults.queue_invariants import GROUP, GROUP_SIZE, QUEUE, RUN_FOR
from faults.snapshot import Object
from faults.units import JOBS, PODS, SPECS, Unit, as_object, from_template, pod_spec

QUEUED: Final = "queued pods"
"""Of the budget: how many pods may wait or run at the same time."""
_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
_GROUP_SIZE: Final = 2
_LOCAL_QUEUES: Final = ("vision", "speech", "service")


class QueuedMaker:
    """Makes units for queues."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def _labels(self) -> dict[str, str]:
        labels = {QUEUE: self._rng.choice(_LOCAL_QUEUES)}
        priority = self._rng.choice(("low", "", "", "high"))
        return {**labels, _PRIORITY: priority} if priority else labels

    def _pod(self, **more: object) -> tuple[Object, dict[str, int]]:
        """The spec of a pod that costs a CPU and perhaps devices, and its cost."""
        template = self._rng.choice(("", *CHARGES))
        spec = pod_spec(from_template(template) if template else [], **more)
        spec["containers"][0]["resources"]["requests"] = {"cpu": "1"}
        return spec, {QUEUED: 1, **(SPECS[template][1] if template else {})}

    def queued_job(self, name: str) -> Unit:
        """A Job whose pods stay, so that others have to wait for its quota."""
        return self._job(name, self._rng.randint(1, 2), {})

    def queued_short(self, name: str) -> Unit:
        """A Job that ends by itself."""
        return self._job(name, 2, {"annotations": {RUN_FOR: "200ms"}}, completions=3)

    def _job(self, name: str, parallelism: int, metadata: Object, completions: int = 0) -> Unit:
        spec, cost = self._pod(restartPolicy="Never")
        disrupted = [{"type": "DisruptionTarget", "status": "True"}]
        job = as_object(
            name,
            {
                "parallelism": parallelism,
                "completions": completions or parallelism,
                "backoffLimit": 100,
                "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": disrupted}]},
                "template": {"metadata": metadata, "spec": spec},
            },
        )
        job["metadata"]["labels"] = self._labels()
        return Unit(name, [(JOBS, job)], {what: parallelism * n for what, n in cost.items()})

    def queued_pod(self, name: str) -> Unit:
        """A pod with a gate."""
        spec, cost = self._pod()
        pod = as_object(name, spec)
        pod["metadata"]["labels"] = self._labels()
        return Unit(name, [(PODS, pod)], cost)

    def queued_group(self, name: str) -> Unit:
        """Pods that are admitted together."""
        spec, cost = self._pod()
        labels = {**self._labels(), GROUP: name}
        pods = []
        for number in range(_GROUP_SIZE):
            pod = as_object(f"{name}-{number}", spec)
            pod["metadata"]["labels"] = labels
            pod["metadata"]["annotations"] = {GROUP_SIZE: str(_GROUP_SIZE)}
            pods.append((PODS, pod))
        cost = {what: _GROUP_SIZE * n for what, n in cost.items()}
        return Unit(name, pods, cost, is_one=True)
