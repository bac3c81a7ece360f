"""What a user needs to be allowed to ask questions about a cluster, and how they learn that."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from apiserver.e2e.driving import Kubectl
from cli.explain.people import Person
from drayman.cli.main import cli

QUESTIONS = (
    "explain --all -o json",
    "explain pod/third -n team-a -o json",
    "explain node/example-0 -o json",
    "top devices -o json",
    "top claims -o json",
    "top pools -o json",
    "top owners --by queue -o json",
    "map -o json",
    "device list -o json",
    "snapshot",
    "defrag",
    "queues",
)
"""Commands that read, each with all that it can show."""
_COMMAND = re.compile(r"`(kubectl create clusterrolebinding [^`]+)`")


def run(kubeconfig: Path, words: str) -> Result:
    return CliRunner().invoke(cli, [*words.split(), "--kubeconfig", str(kubeconfig)])


@pytest.fixture
def stranger(full: Kubectl, person: Person) -> Path:
    """The kubeconfig of a service account that may read nothing that matters."""
    return person("services", "csinodes")


@pytest.mark.parametrize("words", ["explain --all", "snapshot", "defrag"])
def test_all_that_is_missing_is_named_at_once(stranger: Path, words: str) -> None:
    """One error names every list that is refused, and the command with which an administrator grants them."""
    said = run(stranger, words).stderr
    for resource in ("nodes", "resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io"):
        assert resource in said.partition("in the whole cluster")[0]
    for resource in ("pods", "resourceclaims.resource.k8s.io"):
        assert resource in said
    assert "--clusterrole=drayman:reader --serviceaccount=team-a:person-" in said


@pytest.mark.parametrize("words", ["top devices", "map", "device list"])
def test_questions_about_devices_name_all_that_is_missing(stranger: Path, words: str) -> None:
    """Nodes and slices are needed, and both are named."""
    said = run(stranger, words).stderr
    assert "list nodes, resourceslices.resource.k8s.io in the whole cluster" in said
    assert "--clusterrole=drayman:reader" in said


def test_the_printed_role_is_sufficient(full: Kubectl, stranger: Path) -> None:
    """Once the role is applied and bound as the error says, every question is answered without a remark on permissions."""
    refused = run(stranger, "explain --all")
    assert refused.exit_code == 2
    printed = CliRunner().invoke(cli, ["explain", "--print-rbac"])
    assert printed.exit_code == 0
    full("delete", "clusterrole", "drayman:reader")
    full("apply", "-f", "-", given=printed.stdout)
    command = _COMMAND.search(refused.stderr)
    assert command is not None, refused.stderr
    full(*shlex.split(command[1])[1:])
    for words in QUESTIONS:
        found = run(stranger, words)
        assert found.exit_code in (0, 1), f"{words}: {found.stderr}"
        assert "you may not" not in found.output, words
        assert "may not list" not in found.output, words
    assert "unseen" not in json.loads(run(stranger, "explain --all -o json").stdout)


def test_the_cluster_has_the_role_from_the_start(full: Kubectl) -> None:
    """What is printed is what an embedded cluster grants to users whom the role is bound to."""
    printed = CliRunner().invoke(cli, ["explain", "--print-rbac"]).stdout
    full("apply", "--dry-run=server", "-f", "-", given=printed)
    diff = full.attempt("diff", "-f", "-", given=printed)
    changed = [line for line in diff.stdout.splitlines() if line[:1] in "+-"]
    assert not [line for line in changed if "resources" in line or "verbs" in line], diff.stdout
