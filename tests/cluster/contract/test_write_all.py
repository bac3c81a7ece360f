"""Several writes whose answers nobody reads."""

from __future__ import annotations

import pytest

from cluster.contract.conftest import Open
from cluster.contract.objects import config_map
from drayman.cluster import CreateWrite, DeleteWrite
from drayman.cluster.errors import AlreadyExistsError, NotFoundError
from drayman.cluster.resources import CONFIG_MAPS


async def test_writes_without_answers_are_carried_out(open_cluster: Open) -> None:
    """They are done when the call returns, in order."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await client.create(CONFIG_MAPS, config_map("old"), namespace)
        await client.write_all(
            [
                CreateWrite(CONFIG_MAPS, config_map("new", x="1"), namespace),
                DeleteWrite(CONFIG_MAPS, "old", namespace),
            ]
        )
        assert (await client.get(CONFIG_MAPS, "new", namespace))["data"] == {"x": "1"}
        with pytest.raises(NotFoundError):
            await client.get(CONFIG_MAPS, "old", namespace)


async def test_a_refusal_is_raised(open_cluster: Open) -> None:
    """What is refused is told, and what was created before it is not left behind."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        await client.create(CONFIG_MAPS, config_map("taken"), namespace)
        with pytest.raises(AlreadyExistsError):
            await client.write_all(
                [
                    CreateWrite(CONFIG_MAPS, config_map("new"), namespace),
                    CreateWrite(CONFIG_MAPS, config_map("taken"), namespace),
                ]
            )
        with pytest.raises(NotFoundError):
            await client.get(CONFIG_MAPS, "new", namespace)
