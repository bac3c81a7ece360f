"""Pod Security admission: namespaces choose how much pods in them may do, by labels.

A pod that violates the level to enforce is refused. Templates of pods are never refused; for them, as for pods, clients are warned and the
audit log notes what the other two levels forbid. The rules themselves are in `drayman.api.pod_security`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.api.pod_security import (
    PREFIX,
    Level,
    LevelVersion,
    PodSecuritySettings,
    Policy,
    Violations,
    is_significant,
    policy_of,
    violations,
)
from drayman.api.validation import FieldError
from drayman.apiserver.kinds.reading import at, items_at, map_at, text_at
from drayman.apiserver.protocol.errors import forbidden, invalid
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import AdmissionPlugin, Admitted

_NAMESPACES: Final = "namespaces"
_PODS: Final = "pods"
_TEMPLATE: Final = ("spec", "template")
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "podtemplates": ("template",),
    "replicationcontrollers": _TEMPLATE,
    "replicasets.apps": _TEMPLATE,
    "deployments.apps": _TEMPLATE,
    "statefulsets.apps": _TEMPLATE,
    "daemonsets.apps": _TEMPLATE,
    "jobs.batch": _TEMPLATE,
    "cronjobs.batch": ("spec", "jobTemplate", *_TEMPLATE),
}
"""Kinds that make pods, with the place of the template."""
_WITHOUT_POD_SPEC: Final = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"}
)
"""Subresources of pods through which no container can change."""
_MOST_PODS: Final = 3000
"""So many pods of a namespace are examined when its level changes, as in Kubernetes."""


@dataclass(slots=True)
class PodSecurity(AdmissionPlugin):
    """Enforces Pod Security Standards."""

    settings: PodSecuritySettings = field(default_factory=PodSecuritySettings)

    def validate(self, write: Admitted) -> None:
        if write.new is None:
            return
        kind = write.resource.storage_name
        if kind == _PODS:
            if write.subresource not in _WITHOUT_POD_SPEC:
                self._judge_pod(write, write.new)
        elif write.subresource:
            return
        elif kind == _NAMESPACES:
            self._judge_namespace(write, write.new)
        elif (place := _TEMPLATES.get(kind)) is not None:
            template = at(write.new, *place)
            if template is not None:
                self._judge(write, template, enforces=False)

    def _judge_pod(self, write: Admitted, pod: Object) -> None:
        if write.old is None or is_significant(pod, write.old):
            self._judge(write, pod, enforces=True)

    def _judge(self, write: Admitted, pod: Object, *, enforces: bool) -> None:
        """Judge a pod, or a template of pods, by the levels of its namespace."""
        notes = write.context.annotations
        if (exempt := self._exemption(write)) is not None:
            notes[f"{PREFIX}exempt"] = exempt
            return
        namespace = write.context.objects.get(_NAMESPACES, "", write.namespace)
        policy, errors = self._policy(namespace or {})
        if policy.is_privileged and not errors:
            if enforces:
                notes[f"{PREFIX}enforce-policy"] = str(policy.enforce)
            return
        if self._has_exempt_runtime(pod):
            notes[f"{PREFIX}exempt"] = "runtimeClass"
            return
        if errors:
            text = ", ".join(str(error) for error in errors)
            notes[f"{PREFIX}error"] = f"Failed to parse policy: {text}"
        if enforces:
            notes[f"{PREFIX}enforce-policy"] = str(policy.enforce)
        if found := _violations(policy.audit, pod):
            notes[f"{PREFIX}audit-violations"] = _would_violate(policy.audit, found)
        if enforces and (found := _violations(policy.enforce, pod)):
            why = f'violates PodSecurity "{policy.enforce}": {found.details}'
            raise forbidden(write.resource.subject(write.name), why)
        if found := _violations(policy.warn, pod):
            write.context.warnings.append(_would_violate(policy.warn, found))

    def _exemption(self, write: Admitted) -> str | None:
        """The exemption of the namespace or of the user; None if there is neither."""
        if write.namespace in self.settings.namespaces:
            return "namespace"
        return "user" if write.context.user.name in self.settings.users else None

    def _has_exempt_runtime(self, pod: Object) -> bool:
        return text_at(pod, "spec", "runtimeClassName") in self.settings.runtime_classes

    def _policy(self, namespace: Object) -> tuple[Policy, list[FieldError]]:
        return policy_of(map_at(namespace, "metadata", "labels"), self.settings.defaults)

    def _judge_namespace(self, write: Admitted, namespace: Object) -> None:
        """Refuse labels that make no sense, and warn of pods that a new level would refuse."""
        policy, errors = self._policy(namespace)
        before, known = self._policy(write.old) if write.old is not None else (None, [])
        if errors and errors != known:
            raise invalid(write.resource.kind_subject(write.name), errors)
        enforced = policy.enforce
        is_stricter = before is not None and not (
            enforced == before.enforce
            or enforced.level is Level.PRIVILEGED
            or (enforced.minor == before.enforce.minor and enforced.level <= before.enforce.level)
        )
        if write.name in self.settings.namespaces:
            if before is None or is_stricter:
                write.context.warnings.extend(self._ignored(write.name, policy, namespace))
        elif is_stricter:
            pods = write.context.objects.list(_PODS, write.name)
            write.context.warnings.extend(self._of_existing(write.name, pods, enforced))

    def _ignored(self, name: str, policy: Policy, namespace: Object) -> Iterator[str]:
        """The warning that the labels of an exempt namespace have no effect."""
        if policy.is_privileged or _is_equivalent(policy, self.settings.defaults):
            return
        labels = map_at(namespace, "metadata", "labels")
        said = ", ".join(
            f"{mode}={level}"
            for mode, level in policy._asdict().items()
            if level.level is not Level.PRIVILEGED
            and (f"{PREFIX}{mode}" in labels or f"{PREFIX}{mode}-version" in labels)
        )
        yield f'namespace "{name}" is exempt from Pod Security, and the policy ({said}) will be ignored'

    def _of_existing(self, name: str, pods: list[Object], enforced: LevelVersion) -> list[str]:
        """The warnings about pods that exist already. Those of one fault share a warning."""
        examined = self._by_owner(pods)
        total, examined = len(examined), examined[:_MOST_PODS]
        names: dict[str, list[str]] = {}
        for pod in examined:
            if found := _violations(enforced, pod):
                names.setdefault(found.reasons, []).append(text_at(pod, "metadata", "name"))
        warnings = []
        if len(examined) < total:
            first = f"first {len(examined)} of {total}"
            warnings.append(
                f"new PodSecurity enforce level only checked against the {first} existing pods"
            )
        if names:
            warnings.append(
                f'existing pods in namespace "{name}" violate the new PodSecurity enforce level "{enforced}"'
            )
        return [*warnings, *sorted(_counted(found, why) for why, found in names.items())]

    def _by_owner(self, pods: list[Object]) -> list[Object]:
        """The pods that are not exempt, one of each controller first."""
        first: list[Object] = []
        more: list[Object] = []
        seen: set[str | None] = set()
        for pod in pods:
            if self._has_exempt_runtime(pod):
                continue
            references = items_at(pod, "metadata", "ownerReferences")
            owner = next(
                (text_at(each, "uid") for each in references if each.get("controller")), None
            )
            (more if owner is not None and owner in seen else first).append(pod)
            seen.add(owner)
        return [*first, *more]


def _violations(policy: LevelVersion, pod: Object) -> Violations:
    return violations(policy, map_at(pod, "metadata", "annotations"), map_at(pod, "spec"))


def _would_violate(policy: LevelVersion, found: Violations) -> str:
    return f'would violate PodSecurity "{policy}": {found.details}'


def _is_equivalent(policy: Policy, other: Policy) -> bool:
    """Whether two policies forbid the same. The version of a level that forbids nothing does not matter."""
    return all(
        one == two or one.level is two.level is Level.PRIVILEGED
        for one, two in zip(policy, other, strict=True)
    )


def _counted(names: list[str], why: str) -> str:
    others = len(names) - 1
    more = f" (and {others} other {'pod' if others == 1 else 'pods'})" if others else ""
    return f"{min(names)}{more}: {why}"
