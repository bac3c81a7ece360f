"""Objects are named as kubectl has them named."""

from __future__ import annotations

import click
import pytest

from drayman.cli.explain.command import subject_of


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("pod/a", "pod/a"),
        ("pods/a", "pod/a"),
        ("po a", "pod/a"),
        ("Pod a", "pod/a"),
        ("resourceclaim/a", "resourceclaim/a"),
        ("claim a", "resourceclaim/a"),
        ("resourceclaims.resource.k8s.io/a", "resourceclaim/a"),
        ("job/a", "job/a"),
        ("jobs.batch/a", "job/a"),
        ("deploy/a", "deployment/a"),
        ("deployments.apps a", "deployment/a"),
        ("rs/a", "replicaset/a"),
        ("sts a", "statefulset/a"),
        ("ds/a", "daemonset/a"),
        ("no a", "node/a"),
        ("nodes/a", "node/a"),
        ("ns/a", "namespace/a"),
        ("podgroup a", "podgroup/a"),
        ("podgroups.scheduling.run.ai/a", "podgroup/a"),
    ],
)
def test_kinds_and_names(words: str, expected: str) -> None:
    """KIND/NAME or KIND NAME, in the singular, the plural or short, with its group or without."""
    assert str(subject_of(words.split())) == expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("a", "Say its kind too: pod/a"),
        ("pod", "which pod?"),
        ("", "or use --all"),
        ("service/a", "these are: pod, resourceclaim, job, deployment, replicaset, statefulset,"),
        ("nodes.apps/a", "is no kind that is known here"),
        ("pods.batch/a", "is no kind that is known here"),
        ("podgroups.batch/a", "is no kind that is known here"),
        ("pod/", "does not name an object"),
        ("pod/a/b", "does not name an object"),
        ("pod a b", "one object at a time"),
        ("pod/a pod/b", "one object at a time"),
    ],
)
def test_what_names_nothing(words: str, sentence: str) -> None:
    """A wrong command line says what would be a right one."""
    with pytest.raises(click.UsageError, match=r".") as error:
        subject_of(words.split())
    assert sentence in error.value.message
