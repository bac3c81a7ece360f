"""Cluster roles whose rules are those of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from security.realm import MERGE, RBAC_PATH, Realm, realm, role, rule

from drayman.apiserver.security.aggregation import RoleAggregation, aggregated_rules
from patience import PATIENCE_S

ROLES = f"{RBAC_PATH}/clusterroles"
PODS, SECRETS = rule("pods", "get"), rule("secrets", "get")


def part(name: str, *rules: dict[str, Any], **labels: str) -> dict[str, Any]:
    made = role(name, *rules, kind="ClusterRole")
    made["metadata"]["labels"] = labels
    return made


def gathering(*selectors: dict[str, Any], name: str = "all") -> dict[str, Any]:
    rules = {"clusterRoleSelectors": list(selectors)}
    return role(name, kind="ClusterRole", aggregationRule=rules)


BY_LABEL = {"matchLabels": {"to": "all"}}


@pytest.mark.parametrize(
    ("roles", "want"),
    [
        ([part("a", PODS, to="all"), part("b", SECRETS, to="other")], [PODS]),
        ([part("b", SECRETS, to="all"), part("a", PODS, to="all")], [PODS, SECRETS]),
        ([part("a", PODS, to="all"), part("b", PODS, SECRETS, to="all")], [PODS, SECRETS]),
        ([part("all", PODS, to="all")], []),
        ([], []),
    ],
    ids=["selected", "by name", "each once", "not itself", "none"],
)
def test_the_rules_of_an_aggregated_role(
    roles: list[dict[str, Any]], want: list[dict[str, Any]]
) -> None:
    """Those of every other role that is selected, in the order of their names."""
    assert aggregated_rules(gathering(BY_LABEL), roles) == want


def test_a_role_is_selected_by_any_selector() -> None:
    """Several selectors add up, and each may use expressions."""
    exists = {"matchExpressions": [{"key": "also", "operator": "Exists"}]}
    roles = [part("a", PODS, to="all"), part("b", SECRETS, also="x")]
    assert aggregated_rules(gathering(BY_LABEL, exists), roles) == [PODS, SECRETS]


@asynccontextmanager
async def aggregating() -> AsyncIterator[Realm]:
    async with realm() as here:
        aggregation = RoleAggregation(here.server.core)
        aggregation.start()
        try:
            yield here
        finally:
            await aggregation.stop()


async def rules_become(here: Realm, name: str, want: list[dict[str, Any]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await here.send("GET", f"{ROLES}/{name}")).body.get("rules", []) != want:
            await asyncio.sleep(0)


async def test_an_aggregated_role_follows_its_parts() -> None:
    """Roles that come, change and go, and what a user writes into its rules."""
    async with aggregating() as here:
        await here.make(ROLES, gathering(BY_LABEL))
        await here.make(ROLES, part("a", PODS, to="all"))
        await rules_become(here, "all", [PODS])
        change = {"rules": [SECRETS]}
        await here.send("PATCH", f"{ROLES}/a", change, {"content-type": MERGE})
        await rules_become(here, "all", [SECRETS])
        await here.send("PATCH", f"{ROLES}/all", {"rules": [PODS]}, {"content-type": MERGE})
        await rules_become(here, "all", [SECRETS])
        await here.send("DELETE", f"{ROLES}/a")
        await rules_become(here, "all", [])


async def test_operators_extend_the_first_roles() -> None:
    """A role with the label of `view` adds to `view`, `edit` and `admin`."""
    mine = part("mine", rule("widgets", "get", "example.com"))
    mine["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    async with aggregating() as here:
        await here.make(ROLES, mine)
        async with asyncio.timeout(PATIENCE_S):
            for name in ("view", "edit", "admin"):
                while (
                    mine["rules"][0]
                    not in (await here.send("GET", f"{ROLES}/{name}")).body["rules"]
                ):
                    await asyncio.sleep(0)
