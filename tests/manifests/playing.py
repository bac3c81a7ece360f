"""Manifests played on a cluster: applied in order, with what is to be seen after each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from apiserver.e2e.driving import Kubectl

WITHIN = "--timeout=150s"


@dataclass(frozen=True, slots=True)
class Step:
    """A file, and the state of pods and deployments after it: names as NAMESPACE/NAME."""

    file: str
    running: Sequence[str] = ()
    pending: Sequence[str] = ()
    gone: Sequence[str] = ()
    available: Sequence[str] = ()
    """Deployments with all of their pods ready."""
    refused: str = ""
    """What kubectl says where it does not take all of the file."""


@dataclass(frozen=True, slots=True)
class Play:
    """Steps on a cluster with some hardware."""

    name: str
    profiles: str
    steps: Sequence[Step]
    requests: dict[str, str] = field(default_factory=dict)
    """For pods, by NAMESPACE/NAME, the requests that their claims were served by."""
    consumers: dict[str, list[str]] = field(default_factory=dict)
    """For namespaces, the consumers of all their claims as RESOURCE/NAME, sorted."""


def play(kubectl: Kubectl, folder: Path, scenario: Play) -> None:
    """Carry out the steps, see what is to be seen, and clean up."""
    try:
        for step in scenario.steps:
            _apply(kubectl, folder / step.file, step)
            _see(kubectl, step)
        for pod, request in scenario.requests.items():
            assert _requests(kubectl, pod) == request
        for namespace, consumers in scenario.consumers.items():
            assert _consumers(replace(kubectl, namespace=namespace)) == consumers
    finally:
        for step in reversed(scenario.steps):
            kubectl.attempt("delete", "--ignore-not-found", "-f", str(folder / step.file), WITHIN)


def _apply(kubectl: Kubectl, path: Path, step: Step) -> None:
    if step.refused:
        assert step.refused in kubectl.refused("apply", "-f", str(path))
    else:
        kubectl("apply", "-f", str(path))


def _see(kubectl: Kubectl, step: Step) -> None:
    for name in step.running:
        _wait(kubectl, "jsonpath={.status.phase}=Running", "pod", name)
        _wait(kubectl, "condition=Ready", "pod", name)
    for name in step.pending:
        _wait(kubectl, "condition=PodScheduled=false", "pod", name)
    for name in step.gone:
        _wait(kubectl, "delete", "pod", name)
    for name in step.available:
        namespace, _, deployment = name.partition("/")
        within = replace(kubectl, namespace=namespace)
        within("rollout", "status", f"deployment/{deployment}", WITHIN)


def _wait(kubectl: Kubectl, condition: str, kind: str, name: str) -> None:
    namespace, _, own = name.partition("/")
    within = replace(kubectl, namespace=namespace)
    done = within.attempt("wait", f"--for={condition}", f"{kind}/{own}", WITHIN)
    if done.returncode:
        told = within.attempt("describe", kind, own).stdout
        raise AssertionError(f"{name}: {done.stderr}{told}")


def _requests(kubectl: Kubectl, pod: str) -> str:
    """The requests that the claims of a pod were served by, in order."""
    namespace, _, name = pod.partition("/")
    within = replace(kubectl, namespace=namespace)
    found = within.object("pod", name)
    served = [
        result["request"]
        for status in found["status"]["resourceClaimStatuses"]
        for claim in [within.object("resourceclaim", status["resourceClaimName"])]
        for result in claim["status"]["allocation"]["devices"]["results"]
    ]
    return " ".join(served)


def _consumers(kubectl: Kubectl) -> list[str]:
    claims = kubectl.object("resourceclaims")["items"]
    return sorted(
        f"{user['resource']}/{user['name']}"
        for claim in claims
        for user in claim["status"]["reservedFor"]
    )
