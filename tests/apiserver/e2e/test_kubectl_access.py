"""kubectl as somebody else: tokens, roles, impersonation, and what people may do."""

from __future__ import annotations

import json

import pytest

from apiserver.e2e.driving import Kubectl


@pytest.fixture
def robot(kubectl: Kubectl) -> str:
    """A service account that may read pods; its token."""
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    account = f"--serviceaccount={kubectl.namespace}:robot"
    kubectl("create", "rolebinding", "robot-reads", "--role=reader", account)
    return kubectl("create", "token", "robot", "--duration=10m").strip()


def test_who_the_administrator_is(kubectl: Kubectl) -> None:
    """The token of the kubeconfig belongs to an administrator."""
    answer = json.loads(kubectl("auth", "whoami", "-o", "json"))
    user = answer["status"]["userInfo"]
    assert user["username"] == "kubernetes-admin"
    assert set(user["groups"]) == {"system:masters", "system:authenticated"}
    assert kubectl("auth", "can-i", "*", "*") == "yes\n"


def test_who_a_service_account_is(kubectl: Kubectl, robot: str) -> None:
    """A token that was asked for names its account."""
    answer = json.loads(kubectl("auth", "whoami", "-o", "json", f"--token={robot}"))
    name = f"system:serviceaccount:{kubectl.namespace}:robot"
    assert answer["status"]["userInfo"]["username"] == name


def test_roles_are_enforced(kubectl: Kubectl, robot: str) -> None:
    """Who may read pods may read pods, in that namespace, and nothing else."""
    token = f"--token={robot}"
    assert kubectl("get", "pods", "-o", "name", token) == ""
    user = f'User "system:serviceaccount:{kubectl.namespace}:robot"'
    refusal = kubectl.refused("get", "secrets", token)
    assert f'secrets is forbidden: {user} cannot list resource "secrets" in API group ""' in refusal
    elsewhere = Kubectl(kubectl.server, "default", kubectl.home)
    assert 'in the namespace "default"' in elsewhere.refused("get", "pods", token)
    assert "cannot create" in kubectl.refused("run", "mine", "--image=app", token)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("list pods", "yes"),
        ("get pods/anything", "yes"),
        ("delete pods", "no"),
        ("list secrets", "no"),
        ("get /healthz", "yes"),
        ("get /metrics", "no"),
    ],
)
def test_can_i(kubectl: Kubectl, robot: str, question: str, answer: str) -> None:
    """`auth can-i` tells before one tries, with exit status 1 for no."""
    asked = kubectl.attempt("auth", "can-i", *question.split(), f"--token={robot}")
    assert asked.stdout.split()[0] == answer
    assert asked.returncode == (0 if answer == "yes" else 1)


def test_the_list_of_rights(kubectl: Kubectl, robot: str) -> None:
    """`auth can-i --list` shows what the rules add up to."""
    table = [line.split() for line in kubectl("auth", "can-i", "--list", f"--token={robot}").splitlines()]  # fmt: skip
    assert ["pods", "[]", "[]", "[get", "list]"] in table


def test_impersonation(kubectl: Kubectl, robot: str) -> None:
    """An administrator may act as somebody else; a robot may not."""
    assert "forbidden" in kubectl.refused("get", "pods", "--as=jane")
    kubectl("create", "rolebinding", "jane-reads", "--role=reader", "--user=jane")
    assert kubectl("get", "pods", "-o", "name", "--as=jane") == ""
    answer = json.loads(kubectl("auth", "whoami", "-o", "json", "--as=jane", "--as-group=ops"))
    user = answer["status"]["userInfo"]
    assert (user["username"], set(user["groups"])) == ("jane", {"ops", "system:authenticated"})
    assert "cannot impersonate" in kubectl.refused("get", "pods", "--as=jane", f"--token={robot}")


def test_a_wrong_token_is_nobody(kubectl: Kubectl) -> None:
    """What is no token of this server is turned away."""
    refusal = kubectl.refused("get", "pods", "--token=wrong")
    assert "You must be logged in to the server" in refusal


def test_a_token_ends_with_its_account(kubectl: Kubectl, robot: str) -> None:
    """Once the account is gone its tokens are worthless."""
    kubectl("delete", "serviceaccount", "robot")
    assert "You must be logged in" in kubectl.refused("get", "pods", f"--token={robot}")
