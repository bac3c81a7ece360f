"""The contract leaves nothing behind on the cluster that it is checked on."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.contract.cleaning import all_gone
from cluster.contract.clusters import IMPLEMENTATIONS, working_in
from cluster.contract.objects import DEPLOYMENTS, POD_VALUES, config_map, deployment, pod
from cluster.contract.test_parts import CLAIMS, PROTECTION
from cluster.contract.test_removing import OTHER, held
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import CONFIG_MAPS, NAMESPACES

WITHOUT_CONTROLLERS = "in-process"


@pytest.mark.parametrize("implementation", ["in-process", "http"])
async def test_a_namespace_goes_with_all_that_holds_it(implementation: str, tmp_path: Path) -> None:
    """Claims that somebody unknown has reserved, foreign finalizers, pods without a kubelet: with and without controllers."""
    async with IMPLEMENTATIONS[implementation](tmp_path) as client:
        async with working_in(client) as cluster:
            name = cluster.namespace
            await held(cluster, "reserved", PROTECTION)
            await held(cluster, "foreign", PROTECTION, OTHER)
            await held(cluster, "marked", PROTECTION, OTHER)
            await client.delete(CLAIMS, "marked", name)
            guarded = config_map("guarded")
            guarded["metadata"]["finalizers"] = ["example.com/hold"]
            await client.create(CONFIG_MAPS, guarded, name)
            await client.create(POD_VALUES, pod("bound"), name)
            await client.bind("bound", name, "node-1")
            await client.create(DEPLOYMENTS, deployment("d", 1), name)
        quiet_s = 0.0 if implementation == WITHOUT_CONTROLLERS else 60.0
        await all_gone(client, [name], quiet_s=quiet_s)
        with pytest.raises(NotFoundError):
            await client.get(NAMESPACES, name)
