"""Kueue's Configuration file: what it means, what is refused with its field, and that it is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from drayman.controllers.quota.configuration import (
    ConfigurationFileError,
    configuration_of,
    default_configuration,
    read_configuration,
)
from drayman.controllers.quota.source import ConfigurationSource
from drayman.workloads.queued.kinds import FRAMEWORKS

HEAD = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
SYSTEM = {"kubernetes.io/metadata.name": "kube-system"}


def test_without_a_file_everything_that_names_a_queue_waits():
    """Outside of the namespaces of the system; pods have half an hour."""
    found = default_configuration()
    assert found.intake.frameworks == set(FRAMEWORKS)
    assert not found.intake.without_queue
    assert not found.intake.namespaces.matches(SYSTEM)
    assert found.intake.namespaces.matches({})
    assert (found.start_timeout_s, found.recovery_timeout_s) == (1800.0, 1800.0)


def test_what_a_file_says():
    """In YAML, as Kueue's own manifest has it; what only concerns Kueue's process is passed over."""
    text = b"""
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: ":8081"}
manageJobsWithoutQueueName: true
managedJobsNamespaceSelector:
  matchLabels: {team: a}
waitForPodsReady:
  timeout: 5m
  recoveryTimeout: 0s
  requeuingStrategy: {backoffLimitCount: 3, backoffBaseSeconds: 10}
integrations:
  frameworks: [batch/job, pod, leaderworkerset.x-k8s.io/leaderworkerset]
  labelKeysToCopy: [team]
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
objectRetentionPolicies: {workloads: {afterFinished: 1h}}
resources:
  deviceClassMappings:
  - {name: whole-gpus, deviceClassNames: [gpu.nvidia.com]}
"""
    found = read_configuration("kueue.yaml", text)
    assert found.intake.frameworks == {"batch/job", "pod"}
    assert found.intake.without_queue
    assert not found.intake.namespaces.matches({})
    assert (found.start_timeout_s, found.recovery_timeout_s) == (300.0, 0.0)
    assert found.quota.wait_for_pods_ready.requeuing_strategy.backoff_limit_count == 3
    assert found.quota.fair_sharing is not None
    assert (found.copied_labels, found.keep_finished_s) == (("team",), 3600.0)
    (mapping,) = found.mappings.of_class("gpu.nvidia.com")
    assert mapping.name == "whole-gpus"


REFUSED = {
    "a time to wait for clusters": (
        {"multiKueue": {"workerLostTimeout": "soon"}},
        "multiKueue.workerLostTimeout",
    ),
    "an interval of cleaning": ({"multiKueue": {"gcInterval": "often"}}, "multiKueue.gcInterval"),
    "an origin that is no label": ({"multiKueue": {"origin": "a b"}}, "multiKueue.origin"),
    "no origin": ({"multiKueue": {"origin": ""}}, "multiKueue.origin"),
    "a dispatcher of others": (
        {"multiKueue": {"dispatcherName": "example.com/mine"}},
        "multiKueue.dispatcherName",
    ),
    "another kind": ({"kind": "Config"}, "kind"),
    "another version": ({"apiVersion": "config.kueue.x-k8s.io/v1"}, "apiVersion"),
    "a kind that cannot wait": (
        {"integrations": {"frameworks": ["batch/cron"]}},
        "integrations.frameworks[0]",
    ),
    "a kind twice": (
        {"integrations": {"frameworks": ["pod", "pod"]}},
        "integrations.frameworks[1]",
    ),
    "a time that is none": ({"waitForPodsReady": {"timeout": "soon"}}, "waitForPodsReady.timeout"),
    "a negative number": (
        {"waitForPodsReady": {"requeuingStrategy": {"backoffBaseSeconds": -1}}},
        "waitForPodsReady.requeuingStrategy.backoffBaseSeconds",
    ),
    "an order that is none": (
        {"waitForPodsReady": {"requeuingStrategy": {"timestamp": "Birth"}}},
        "waitForPodsReady.requeuingStrategy.timestamp",
    ),
    "strategies in the wrong order": (
        {
            "fairSharing": {
                "preemptionStrategies": ["LessThanInitialShare", "LessThanOrEqualToFinalShare"]
            }
        },
        "fairSharing.preemptionStrategies",
    ),
    "a selector that makes no sense": (
        {"managedJobsNamespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
        "managedJobsNamespaceSelector",
    ),
    "a strategy that is none": (
        {"resources": {"quotaCheckStrategy": "Guess"}},
        "resources.quotaCheckStrategy",
    ),
    "prefixes without use": (
        {
            "resources": {
                "quotaCheckStrategy": "IgnoreUndeclared",
                "excludeResourcePrefixes": ["example.com/"],
            }
        },
        "resources.excludeResourcePrefixes",
    ),
    "two rules for a resource": (
        {"resources": {"transformations": [{"input": "cpu"}, {"input": "cpu"}]}},
        "resources.transformations[1].input",
    ),
    "a class in two mappings": (
        {
            "resources": {
                "deviceClassMappings": [
                    {"name": "a", "deviceClassNames": ["c"]},
                    {"name": "b", "deviceClassNames": ["c"]},
                ]
            }
        },
        "resources.deviceClassMappings[1].deviceClassNames[0]",
    ),
    "a value of the wrong type": ({"manageJobsWithoutQueueName": 3}, "manageJobsWithoutQueueName"),
    "what nobody here does": (
        {"objectRetentionPolicies": {"workloads": {"afterDeactivatedByKueue": "soon"}}},
        "objectRetentionPolicies.workloads.afterDeactivatedByKueue",
    ),
    "a grace period that is none": (
        {"drayman": {"unchargedGracePeriod": "soon"}},
        "drayman.unchargedGracePeriod",
    ),
    "a misspelt field of ours": (
        {"drayman": {"unchargedGracePeriods": "1s"}},
        "drayman.unchargedGracePeriods",
    ),
    "a weight below nothing": (
        {"admissionFairSharing": {"usageHalfLifeTime": "1h", "resourceWeights": {"cpu": -1}}},
        "admissionFairSharing.resourceWeights[cpu]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_names_its_field(case):
    """And the file."""
    change, field = REFUSED[case]
    with pytest.raises(ConfigurationFileError) as refused:
        configuration_of({**HEAD, **change}, "kueue.yaml")
    assert f"kueue.yaml: {field}: " in str(refused.value)


def test_uncharged_pods_are_tolerated_for_a_minute_unless_the_file_says_otherwise():
    """In a section of its own, since Kueue's Configuration has no such field."""
    assert default_configuration().uncharged_grace_s == 60.0
    assert configuration_of(HEAD).uncharged_grace_s == 60.0
    changed = configuration_of({**HEAD, "drayman": {"unchargedGracePeriod": "5s"}})
    assert changed.uncharged_grace_s == 5.0


def test_every_field_that_is_wrong_is_named():
    """Those of mappings together with the others, so that one attempt shows all of them."""
    mapped, _ = REFUSED["a class in two mappings"]
    wrong = {**HEAD, **mapped, "waitForPodsReady": {"timeout": "soon"}}
    with pytest.raises(ConfigurationFileError) as refused:
        configuration_of(wrong, "kueue.yaml")
    assert "resources.deviceClassMappings[1]" in str(refused.value)
    assert "waitForPodsReady.timeout" in str(refused.value)


def test_a_file_that_changes_is_read_again(tmp_path: Path):
    """One that makes no sense is passed over, and the one before stays in use."""
    path = tmp_path / "kueue.yaml"
    text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    path.write_text(text)
    source = ConfigurationSource.of_file(path)
    seen = []
    source.listen(seen.append)
    assert source.look() is None
    assert seen == []
    path.write_text(text + "manageJobsWithoutQueueName: true\n")
    assert source.look() == ""
    assert [each.intake.without_queue for each in seen] == [True]
    path.write_text(text + "manageJobsWithoutQueueName: perhaps, who knows\n")
    assert "manageJobsWithoutQueueName" in (source.look() or "")
    assert source.current.intake.without_queue
    assert source.text == text + "manageJobsWithoutQueueName: true\n"
    assert len(seen) == 1


def test_how_work_is_handed_to_other_clusters():
    """Kueue's defaults, or what the file says."""
    default = configuration_of(HEAD).dispatching
    assert (default.namespace, default.origin) == ("kueue-system", "multikueue")
    assert (default.lost_after_s, default.collect_every_s) == (900.0, 60.0)
    given = {"workerLostTimeout": "1m", "gcInterval": "5s", "origin": "here"}
    found = configuration_of({**HEAD, "namespace": "queues", "multiKueue": given}).dispatching
    assert (found.namespace, found.origin) == ("queues", "here")
    assert (found.lost_after_s, found.collect_every_s) == (60.0, 5.0)
