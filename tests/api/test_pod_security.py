"""Pod Security Standards: what each level of each version forbids, and which levels labels and files name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.errors import DecodeError
from drayman.api.pod_security import (
    Level,
    LevelVersion,
    PodSecuritySettings,
    Policy,
    is_significant,
    policy_of,
    settings_of,
    violations,
)

BASELINE, RESTRICTED = Level.BASELINE, Level.RESTRICTED
SAFE: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
STRICT_POD: dict[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def spec(*contexts: dict[str, Any], pod: dict[str, Any] | None = None, **more: Any) -> Any:
    """A pod whose containers `a`, `b`, ... have these security contexts."""
    containers = [
        {"name": name, "image": "i", "securityContext": context}
        for name, context in zip("abc", contexts or ({},), strict=False)
    ]
    return {"containers": containers, "securityContext": pod or {}, **more}


def strict(
    context: dict[str, Any] | None = None, pod: dict[str, Any] | None = None, **more: Any
) -> Any:
    """A pod that the strictest level permits, apart from what is given."""
    return spec({**SAFE, **(context or {})}, pod={**STRICT_POD, **(pod or {})}, **more)


def details(
    level: Level, minor: int | None, pod: Any, annotations: dict[str, str] | None = None
) -> str:
    return violations(LevelVersion(level, minor), annotations or {}, pod).details


ARMOR = "container.apparmor.security.beta.kubernetes.io/a"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_A = "container.seccomp.security.alpha.kubernetes.io/a"
NO_PRIVILEGE = 'privileged (container "a" must not set securityContext.privileged=true)'

BASELINE_CASES: dict[str, tuple[int | None, Any, dict[str, str], str]] = {
    "AppArmor of the pod": (
        None,
        spec(pod={"appArmorProfile": {"type": "Unconfined"}}),
        {},
        'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
    ),
    "AppArmor of pod, container and annotations": (
        0,
        spec(
            {"appArmorProfile": {"type": "Other"}},
            pod={"appArmorProfile": {"type": "Unconfined"}},
        ),
        {ARMOR: "unconfined"},
        'forbidden AppArmor profiles (pod and container "a" and annotation must not set AppArmor profile type to'
        f' "Other", "Unconfined", "{ARMOR}="unconfined"")',
    ),
    "AppArmor permitted": (
        None,
        spec({"appArmorProfile": {"type": "Localhost", "localhostProfile": "x"}}),
        {ARMOR: "localhost/x"},
        "",
    ),
    "a capability": (
        None,
        spec({"capabilities": {"add": ["NET_RAW", "CHOWN"]}}),
        {},
        'non-default capabilities (container "a" must not include "NET_RAW" in securityContext.capabilities.add)',
    ),
    "capabilities of several": (
        5,
        spec({"capabilities": {"add": ["SYS_ADMIN"]}}, {}, {"capabilities": {"add": ["BPF"]}}),
        {},
        'non-default capabilities (containers "a", "c" must not include "BPF", "SYS_ADMIN" in securityContext.capabilities.add)',
    ),
    "default capabilities": (None, spec({"capabilities": {"add": ["SYS_CHROOT"]}}), {}, ""),
    "host namespaces": (
        None,
        spec(hostPID=True, hostIPC=True, hostNetwork=True),
        {},
        "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
    ),
    "one host namespace": (0, spec(hostPID=True), {}, "host namespaces (hostPID=true)"),
    "no host namespace": (0, spec(hostPID=False), {}, ""),
    "a host path": (
        None,
        spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "e", "emptyDir": {}}]),
        {},
        'hostPath volumes (volume "v")',
    ),
    "host paths": (
        3,
        spec(volumes=[{"name": n, "hostPath": {"path": "/"}} for n in "vw"]),
        {},
        'hostPath volumes (volumes "v", "w")',
    ),
    "a host port": (
        None,
        {"containers": [{"name": "a", "ports": [{"hostPort": 8080}, {"hostPort": 0}]}]},
        {},
        'hostPort (container "a" uses hostPort 8080)',
    ),
    "host ports of several": (
        0,
        {
            "initContainers": [{"name": "i", "ports": [{"hostPort": 9}]}],
            "containers": [{"name": "a", "ports": [{"hostPort": 80}, {"containerPort": 1}]}],
        },
        {},
        'hostPort (containers "i", "a" use hostPorts 80, 9)',
    ),
    "a host in a probe": (
        None,
        {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "h"}}}]},
        {},
        'probe or lifecycle host (container "a" uses probe or lifecycle host "h")',
    ),
    "hosts in hooks": (
        34,
        {
            "containers": [
                {"name": "b", "lifecycle": {"preStop": {"tcpSocket": {"host": "y"}}}},
                {"name": "a", "startupProbe": {"tcpSocket": {"host": "x"}}},
            ]
        },
        {},
        'probe or lifecycle host (containers "a", "b" use probe or lifecycle hosts "x", "y")',
    ),
    "hosts in probes before 1.34": (
        33,
        {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "h"}}}]},
        {},
        "",
    ),
    "privileged": (None, spec({"privileged": True}), {}, NO_PRIVILEGE),
    "privileged init and ephemeral containers": (
        0,
        {
            "initContainers": [{"name": "i", "securityContext": {"privileged": True}}],
            "containers": [{"name": "a"}],
            "ephemeralContainers": [{"name": "e", "securityContext": {"privileged": True}}],
        },
        {},
        'privileged (containers "i", "e" must not set securityContext.privileged=true)',
    ),
    "procMount": (
        None,
        spec({"procMount": "Unmasked"}),
        {},
        'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ),
    "procMount in a user namespace": (35, spec({"procMount": "Unmasked"}, hostUsers=False), {}, ""),
    "procMount in a user namespace before 1.35": (
        34,
        spec({"procMount": "Unmasked"}, {"procMount": "Default"}, hostUsers=False),
        {},
        'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ),
    "SELinux type": (
        None,
        spec({"seLinuxOptions": {"type": "x_t"}}, pod={"seLinuxOptions": {"type": "y_t"}}),
        {},
        'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: types "x_t", "y_t")',
    ),
    "SELinux user and role": (
        0,
        spec(pod={"seLinuxOptions": {"user": "u", "role": "r", "level": "l"}}),
        {},
        "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: user may not be set; role may not be set)",
    ),
    "SELinux type of engines": (
        31,
        spec({"seLinuxOptions": {"type": "container_engine_t"}}),
        {},
        "",
    ),
    "SELinux type of engines before 1.31": (
        30,
        spec({"seLinuxOptions": {"type": "container_engine_t"}}),
        {},
        'seLinuxOptions (container "a" set forbidden securityContext.seLinuxOptions: type "container_engine_t")',
    ),
    "seccomp": (
        None,
        spec({"seccompProfile": {"type": "Unconfined"}}),
        {},
        'seccompProfile (container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    "seccomp of the pod": (
        19,
        spec(pod={"seccompProfile": {"type": "Unconfined"}}),
        {SECCOMP_POD: "unconfined"},
        'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    "seccomp by annotation before 1.19": (
        18,
        spec({"seccompProfile": {"type": "Unconfined"}}),
        {SECCOMP_POD: "unconfined", SECCOMP_A: "unconfined"},
        f'seccompProfile (forbidden annotations {SECCOMP_A}="unconfined", {SECCOMP_POD}="unconfined")',
    ),
    "seccomp by permitted annotation": (
        18,
        spec(),
        {SECCOMP_POD: "docker/default", SECCOMP_A: "localhost/x"},
        "",
    ),
    "a sysctl": (
        None,
        spec(pod={"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}),
        {},
        "forbidden sysctls (kernel.msgmax)",
    ),
    "sysctls that became safe in 1.27, 1.29 and 1.32": (
        26,
        spec(
            pod={
                "sysctls": [
                    {"name": "net.ipv4.tcp_syncookies"},
                    {"name": "net.ipv4.ip_local_reserved_ports"},
                    {"name": "net.ipv4.tcp_fin_timeout"},
                    {"name": "net.ipv4.tcp_wmem"},
                ]
            }
        ),
        {},
        "forbidden sysctls (net.ipv4.ip_local_reserved_ports, net.ipv4.tcp_fin_timeout, net.ipv4.tcp_wmem)",
    ),
    "the same in 1.29": (
        29,
        spec(
            pod={
                "sysctls": [
                    {"name": "net.ipv4.ip_local_reserved_ports"},
                    {"name": "net.ipv4.tcp_fin_timeout"},
                    {"name": "net.ipv4.tcp_wmem"},
                ]
            }
        ),
        {},
        "forbidden sysctls (net.ipv4.tcp_wmem)",
    ),
    "hostProcess": (
        None,
        spec(
            {"windowsOptions": {"hostProcess": True}}, pod={"windowsOptions": {"hostProcess": True}}
        ),
        {},
        'hostProcess (pod and container "a" must not set securityContext.windowsOptions.hostProcess=true)',
    ),
    "hostProcess of the pod": (
        0,
        spec(
            {"windowsOptions": {"hostProcess": False}},
            pod={"windowsOptions": {"hostProcess": True}},
        ),
        {},
        "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
    ),
    "several faults in the order of the checks": (
        None,
        spec({"privileged": True}, hostIPC=True),
        {},
        f"host namespaces (hostIPC=true), {NO_PRIVILEGE}",
    ),
}
WINDOWS = {"os": {"name": "windows"}}
NOT_ESCALATING = 'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)'
NOT_DROPPED = (
    'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"])'
)
NOT_SET = (
    'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to'
    ' "RuntimeDefault" or "Localhost")'
)
RESTRICTED_CASES: dict[str, tuple[int | None, Any, str]] = {
    "nothing is wrong": (None, strict(), ""),
    "escalation": (None, strict({"allowPrivilegeEscalation": True}), NOT_ESCALATING),
    "escalation not mentioned": (8, strict({"allowPrivilegeEscalation": None}), NOT_ESCALATING),
    "escalation before 1.8": (7, strict({"allowPrivilegeEscalation": True}), ""),
    "escalation on Windows": (25, strict({"allowPrivilegeEscalation": True}, **WINDOWS), ""),
    "escalation on Windows before 1.25": (
        24,
        strict({"allowPrivilegeEscalation": True}, **WINDOWS),
        NOT_ESCALATING,
    ),
    "capabilities not dropped": (None, strict({"capabilities": None}), NOT_DROPPED),
    "capabilities added": (
        22,
        strict({"capabilities": {"drop": ["CHOWN"], "add": ["NET_BIND_SERVICE", "BPF", "CHOWN"]}}),
        f'{NOT_DROPPED[:-1]}; container "a" must not include "BPF", "CHOWN" in securityContext.capabilities.add)',
    ),
    "capabilities before 1.22 as in baseline": (
        21,
        strict({"capabilities": {"add": ["BPF"]}}),
        'non-default capabilities (container "a" must not include "BPF" in securityContext.capabilities.add)',
    ),
    "capabilities on Windows": (None, strict({"capabilities": None}, **WINDOWS), ""),
    "procMount in a user namespace": (
        35,
        strict({"procMount": "Unmasked"}, hostUsers=False),
        'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ),
    "procMount is reported once": (
        None,
        strict({"procMount": "Unmasked"}),
        'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ),
    "a volume type": (
        None,
        strict(volumes=[{"name": "v", "nfs": {}}, {"name": "i", "image": {}}]),
        'restricted volume types (volume "v" uses restricted volume type "nfs")',
    ),
    "host paths are reported once": (
        0,
        strict(volumes=[{"name": "v", "hostPath": {}}, {"name": "w", "rbd": {}}, {"name": "x"}]),
        'restricted volume types (volumes "v", "w", "x" use restricted volume types "hostPath", "rbd", "unknown")',
    ),
    "root explicitly": (
        None,
        strict({"runAsNonRoot": False}, pod={"runAsNonRoot": False}),
        'runAsNonRoot != true (pod and container "a" must not set securityContext.runAsNonRoot=false)',
    ),
    "root by omission": (
        0,
        spec({}, {"runAsNonRoot": True}),
        'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)',
    ),
    "root in a user namespace": (35, strict(pod={"runAsNonRoot": False}, hostUsers=False), ""),
    "root in a user namespace before 1.35": (
        34,
        strict(pod={"runAsNonRoot": False}, hostUsers=False),
        "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
    ),
    "user 0": (
        None,
        strict({"runAsUser": 0}, pod={"runAsUser": 0}),
        'runAsUser=0 (pod and container "a" must not set runAsUser=0)',
    ),
    "user 0 before 1.23": (22, strict({"runAsUser": 0}), ""),
    "user 0 in a user namespace": (None, strict({"runAsUser": 0}, hostUsers=False), ""),
    "user 0 in a user namespace before 1.35": (
        34,
        strict({"runAsUser": 0}, hostUsers=False),
        'runAsUser=0 (container "a" must not set runAsUser=0)',
    ),
    "seccomp not set": (None, strict(pod={"seccompProfile": None}), NOT_SET),
    "seccomp set by the container": (
        19,
        strict({"seccompProfile": {"type": "Localhost"}}, pod={"seccompProfile": None}),
        "",
    ),
    "seccomp unconfined is reported once": (
        None,
        strict({"seccompProfile": {"type": "Unconfined"}}),
        'seccompProfile (container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    "seccomp before 1.19": (18, strict(pod={"seccompProfile": None}), ""),
    "seccomp on Windows": (None, strict(pod={"seccompProfile": None}, **WINDOWS), ""),
    "seccomp on Windows before 1.25": (
        24,
        strict(pod={"seccompProfile": None}, **WINDOWS),
        NOT_SET,
    ),
    "what baseline forbids comes first": (
        None,
        strict({"privileged": True, "allowPrivilegeEscalation": True}),
        f"{NO_PRIVILEGE}, {NOT_ESCALATING}",
    ),
    "a version that does not exist yet": (99, strict(pod={"seccompProfile": None}), NOT_SET),
}


@pytest.mark.parametrize("case", BASELINE_CASES)
def test_what_baseline_forbids(case: str) -> None:
    """Each check of the level `baseline`, with its versions and its text."""
    minor, pod, annotations, want = BASELINE_CASES[case]
    assert details(BASELINE, minor, pod, annotations) == want
    assert details(Level.PRIVILEGED, minor, pod, annotations) == ""


@pytest.mark.parametrize("case", RESTRICTED_CASES)
def test_what_restricted_adds(case: str) -> None:
    """Each check that the level `restricted` adds, with its versions and its text."""
    minor, pod, want = RESTRICTED_CASES[case]
    assert details(RESTRICTED, minor, pod) == want


@given(
    st.sampled_from([each[1] for each in BASELINE_CASES.values()]),
    st.none() | st.integers(0, 60),
)
def test_restricted_permits_nothing_that_baseline_forbids(pod: Any, minor: int | None) -> None:
    """A pod that violates `baseline` violates `restricted` of the same version."""
    if violations(LevelVersion(BASELINE, minor), {}, pod):
        assert violations(LevelVersion(RESTRICTED, minor), {}, pod)


def at(level: str, minor: int | None = None) -> LevelVersion:
    return LevelVersion(Level[level.upper()], minor)


PREFIX = "pod-security.kubernetes.io/"
NOTHING = Policy()
LABELS: dict[str, tuple[dict[str, str], Policy, list[str]]] = {
    "none": ({}, NOTHING, []),
    "the level to enforce is warned of too": (
        {"enforce": "baseline", "enforce-version": "v1.24"},
        Policy(at("baseline", 24), NOTHING.audit, at("baseline", 24)),
        [],
    ),
    "a level to warn of stays": (
        {"enforce": "restricted", "warn": "baseline"},
        Policy(at("restricted"), NOTHING.audit, at("baseline")),
        [],
    ),
    "a version to warn of stays": (
        {"enforce": "restricted", "enforce-version": "v1.9", "warn-version": "v1.8"},
        Policy(at("restricted", 9), NOTHING.audit, at("restricted", 8)),
        [],
    ),
    "a stricter level to warn of": (
        {"enforce": "baseline", "warn": "restricted", "audit": "restricted"},
        Policy(at("baseline"), at("restricted"), at("restricted")),
        [],
    ),
    "levels that do not exist": (
        {"enforce": "strict", "audit": "Baseline", "warn": ""},
        Policy(at("restricted"), at("privileged"), at("privileged")),
        [
            f'metadata.labels[{PREFIX}enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted',
            f'metadata.labels[{PREFIX}audit]: Invalid value: "Baseline": must be one of privileged, baseline, restricted',
            f'metadata.labels[{PREFIX}warn]: Invalid value: "": must be one of privileged, baseline, restricted',
        ],
    ),
    "versions that do not exist": (
        {"enforce": "baseline", "enforce-version": "1.24", "audit-version": "v1.024"},
        Policy(at("baseline"), NOTHING.audit, at("baseline")),
        [
            f'metadata.labels[{PREFIX}enforce-version]: Invalid value: "1.24": must be "latest" or "v1.x"',
            f'metadata.labels[{PREFIX}audit-version]: Invalid value: "v1.024": must be "latest" or "v1.x"',
        ],
    ),
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_choose_levels(case: str) -> None:
    """Labels of a namespace choose a level and a version for each mode; values that make no sense are reported by label."""
    labels, policy, errors = LABELS[case]
    given_labels = {f"{PREFIX}{name}": value for name, value in labels.items()}
    found, problems = policy_of({**given_labels, "other": "x"}, Policy())
    assert (found, [str(each) for each in problems]) == (policy, errors)


def test_defaults_apply_to_what_labels_leave_out() -> None:
    """A namespace without a label for a mode has the cluster's default there."""
    defaults = Policy(at("baseline", 20), at("restricted"), at("restricted"))
    found, _ = policy_of({f"{PREFIX}enforce": "privileged"}, defaults)
    assert found == Policy(at("privileged", 20), at("restricted"), at("restricted"))


CONFIGURATION = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "kind": "PodSecurityConfiguration",
    "defaults": {"enforce": "baseline", "enforce-version": "v1.30", "warn": "restricted"},
    "exemptions": {"usernames": ["u"], "namespaces": ["n"], "runtimeClasses": ["r"]},
}
SETTINGS = PodSecuritySettings(
    Policy(at("baseline", 30), at("privileged"), at("restricted")),
    frozenset({"u"}),
    frozenset({"r"}),
    frozenset({"n"}),
)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_configuration_is_read(wrapped: bool) -> None:
    """A PodSecurityConfiguration is read on its own and inside an AdmissionConfiguration."""
    document: Any = CONFIGURATION
    if wrapped:
        plugin = {"name": "PodSecurity", "configuration": CONFIGURATION}
        document = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AdmissionConfiguration",
            "plugins": [plugin],
        }
    assert settings_of(document) == (SETTINGS, [])


@pytest.mark.parametrize(
    ("change", "want"),
    [
        ({"kind": "Other"}, 'kind: Unsupported value: "Other"'),
        ({"apiVersion": "v1"}, 'apiVersion: Unsupported value: "v1"'),
        ({"defaults": {"enforce": "x"}}, 'defaults.enforce: Invalid value: "x": must be one of'),
        ({"defaults": {"warn-version": "x"}}, 'defaults.warn-version: Invalid value: "x": must be'),
        ({"exemptions": {"usernames": [""]}}, "exemptions.usernames[0]: Invalid value"),
        ({"exemptions": {"namespaces": ["A"]}}, "exemptions.namespaces[0]: Invalid value"),
        (
            {"exemptions": {"runtimeClasses": ["a", "a"]}},
            "exemptions.runtimeClasses[1]: Duplicate value",
        ),
    ],
)
def test_a_wrong_configuration_names_its_field(change: dict[str, Any], want: str) -> None:
    """What a configuration cannot mean is reported with the path of the field."""
    _, errors = settings_of({**CONFIGURATION, **change})
    assert [str(each)[: len(want)] for each in errors] == [want]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"exemptions": {"userNames": []}}, "exemptions.userNames"),
        ({"defaults": {"enforce": 1}}, "defaults.enforce"),
    ],
)
def test_fields_that_do_not_exist_are_refused(change: dict[str, Any], path: str) -> None:
    """A field that is not one, or has another type, is an error, because an exemption with a typo would be ignored silently."""
    with pytest.raises(DecodeError) as raised:
        settings_of({**CONFIGURATION, **change})
    assert str(raised.value).startswith(path)


def changed(**more: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": [{"name": "a", "image": "i"}], **more}}


@pytest.mark.parametrize(
    ("new", "want"),
    [
        (changed(), False),
        ({**changed(), "metadata": {"labels": {"a": "b"}}}, False),
        (changed(activeDeadlineSeconds=3, tolerations=[{}]), False),
        (changed(containers=[{"name": "a", "image": "j"}]), True),
        (changed(initContainers=[{"name": "b"}]), True),
        (changed(ephemeralContainers=[{"name": "b"}]), True),
        ({**changed(), "metadata": {"annotations": {SECCOMP_POD: "unconfined"}}}, True),
        ({**changed(), "metadata": {"annotations": {SECCOMP_A: "unconfined"}}}, True),
        ({**changed(), "metadata": {"annotations": {"other": "x"}}}, False),
    ],
)
def test_which_updates_are_judged(new: dict[str, Any], want: bool) -> None:
    """Only an update that changes what a policy is about is judged, so that old pods can still be labelled and finished."""
    assert is_significant(new, changed()) is want
