"""Pods for which no node is looked for yet: what they wait for, and whether they would fit then.

A name that refers to nothing is usually misspelt, so similar names that exist are tried. What does not exist at all cannot be tried, and is
not named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.codec import convert
from drayman.api.core import Pod, PodResourceClaim
from drayman.api.jobs import Job
from drayman.explain.answer import Operation, Remedy
from drayman.explain.remedies.case import remedy
from drayman.explain.remedies.classes import similar
from drayman.explain.remedies.commands import patch_command
from drayman.explain.remedies.patching import Patch, cut, patch_of, patched, put
from drayman.explain.remedies.trying import Trials
from drayman.placement.schedulers import DEFAULT_SCHEDULER
from drayman.placement.world import World
from drayman.reasons.reason import Headline
from drayman.reasons.waiting import demand_of
from drayman.reasons.wording import named

_MOST_NAMES: Final = 2


def opened_gates(world: World, pod: Pod, trials: Trials) -> Iterator[Remedy]:
    """A gated pod that would fit."""
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if gates:
        sentence = f"remove the scheduling {named('gate', gates)}"
        yield from _changed(
            world, pod, trials, sentence, (cut("spec", "schedulingGates"),), by_patch=True
        )


def resumed_job(world: World, job: Job, trials: Trials) -> Iterator[Remedy]:
    """A suspended job of which at least one pod would fit."""
    metadata, template = job.metadata, job.spec.template
    pod = convert(
        Pod,
        {
            "metadata": {
                **(template.get("metadata") or {}),
                "name": f"{metadata.name}-0",
                "namespace": metadata.namespace,
            },
            "spec": template.get("spec") or {},
        },
    )
    demand = demand_of(world, trials.round, pod)
    fit = None if isinstance(demand, Headline) else trials.first_fit(demand)
    if fit is not None:
        patch = (put(False, "spec", "suspend"),)
        operation = patch_of("Job", metadata.name, patch, metadata.namespace)
        yield remedy("resume the job", (operation,), fit, (patch_command(operation),))


def other_scheduler(world: World, pod: Pod, trials: Trials) -> Iterator[Remedy]:
    """A pod that is left to a scheduler that may not exist."""
    name = pod.spec.scheduler_name
    if name and name != DEFAULT_SCHEDULER:
        sentence = f"leave the pod to {DEFAULT_SCHEDULER} instead of {name}"
        yield from _changed(
            world, pod, trials, sentence, (put(DEFAULT_SCHEDULER, "spec", "schedulerName"),)
        )


def other_claims(world: World, pod: Pod, trials: Trials) -> Iterator[Remedy]:
    """Claims and templates that exist, for entries that name ones that do not."""
    namespace = pod.metadata.namespace
    for index, entry in enumerate(pod.spec.resource_claims):
        for sentence, patch in _renamings(world, namespace, index, entry):
            yield from _changed(world, pod, trials, sentence, patch)


def other_groups(world: World, pod: Pod, trials: Trials) -> Iterator[Remedy]:
    """Pod groups that exist, for a pod in one that does not."""
    group = pod.spec.scheduling_group
    if group is None or world.state.gangs.pod_group_of(pod) is not None:
        return
    names = (
        each.metadata.name
        for each in world.objects.pod_groups
        if each.metadata.namespace == pod.metadata.namespace
    )
    for name in similar(group.pod_group_name or "", names)[:_MOST_NAMES]:
        sentence = f"put the pod into the group {name}, as there is no {group.pod_group_name}"
        patch = (put(name, "spec", "schedulingGroup", "podGroupName"),)
        yield from _changed(world, pod, trials, sentence, patch)


def _renamings(
    world: World, namespace: str, index: int, entry: PodResourceClaim
) -> Iterator[tuple[str, Patch]]:
    path = ("spec", "resourceClaims", index)
    claims = [
        c.metadata.name
        for c in world.objects.claims
        if c.metadata.namespace == namespace and c.metadata.deletion_timestamp is None
    ]
    templates = [
        t.metadata.name for t in world.objects.templates if t.metadata.namespace == namespace
    ]
    claim, template = entry.resource_claim_name, entry.resource_claim_template_name
    if claim and world.claim(namespace, claim) is None:
        for name in similar(claim, iter(claims))[:_MOST_NAMES]:
            sentence = f"use claim {name} in entry {entry.name}, as there is no {claim}"
            yield sentence, (put(name, *path, "resourceClaimName"),)
        if claim in templates:
            sentence = f"name {claim} as a template in entry {entry.name}, as it is not a claim"
            steps = cut(*path, "resourceClaimName"), put(claim, *path, "resourceClaimTemplateName")
            yield sentence, steps
    if template and template not in templates:
        for name in similar(template, iter(templates))[:_MOST_NAMES]:
            sentence = f"use template {name} in entry {entry.name}, as there is no {template}"
            yield sentence, (put(name, *path, "resourceClaimTemplateName"),)
        if template in claims:
            sentence = f"name {template} as a claim in entry {entry.name}, as it is not a template"
            steps = (
                cut(*path, "resourceClaimTemplateName"),
                put(template, *path, "resourceClaimName"),
            )
            yield sentence, steps


def _changed(
    world: World, pod: Pod, trials: Trials, sentence: str, patch: Patch, *, by_patch: bool = False
) -> Iterator[Remedy]:
    """The change, if the pod fits with it. `by_patch`: Kubernetes allows the change on an existing pod."""
    changed = patched(pod, patch)
    demand = demand_of(world, trials.round, changed)
    # It may wait for something else as well.
    fit = None if isinstance(demand, Headline) else trials.first_fit(demand)
    if fit is not None:
        metadata = pod.metadata
        operation: Operation = patch_of("Pod", metadata.name, patch, metadata.namespace)
        commands = (patch_command(operation),) if by_patch else ()
        yield remedy(sentence, (operation,), fit, commands)
