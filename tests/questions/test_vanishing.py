"""What goes away while a cluster is being read, list by list, ends no explanation."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import pytest

from drayman.cluster import Client, DeleteOptions, InProcessClient, ListOptions
from drayman.cluster.backend import Target as Place
from drayman.cluster.client import Page
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Codec,
    Resource,
)
from drayman.questions.errors import NoSuchObjectError
from drayman.questions.explaining import explanation_of
from drayman.questions.following import follow
from drayman.questions.reading import read_world
from drayman.questions.subjects import Target
from drayman.reasons.reason import Reason
from explain.scenarios.collected import SCENARIOS
from explain.scenarios.playing import Play, server

T = TypeVar("T")
HALF_FULL: Final = next(each for each in SCENARIOS if each.reason is Reason.FRAGMENTED)
GOING: Final[tuple[Resource[Any], ...]] = (
    NODES,
    DEVICE_CLASSES,
    RESOURCE_SLICES,
    RESOURCE_CLAIMS,
    PODS,
)


async def remove_all(client: Client, resource: Resource[Any]) -> None:
    for each in (await client.list_all(resource)).items:
        name, namespace = each.metadata.name, each.metadata.namespace or None
        at_once = DeleteOptions(grace_period_seconds=0)
        try:
            await client.delete(resource, name, namespace, options=at_once)
        except NotFoundError:  # a controller was first
            continue


class SlowReader(InProcessClient):
    """Reads so slowly that everything of a kind is gone after the first list."""

    def __init__(self, other: InProcessClient, gone: Resource[Any]) -> None:
        super().__init__(other._backend)
        self._other = other
        self._gone: Resource[Any] | None = gone

    async def _list(self, target: Place, codec: Codec[T], options: ListOptions) -> Page[T]:
        found = await super()._list(target, codec, options)
        if self._gone is not None:
            gone, self._gone = self._gone, None
            await remove_all(self._other, gone)
        return found


@pytest.mark.parametrize("gone", GOING, ids=lambda resource: resource.plural)
async def test_objects_that_go_while_others_are_read(gone: Resource[Any]) -> None:
    """The pod is explained with what was found; if it is gone itself, that is said, also to those who follow it."""
    scene = HALF_FULL.scene()
    async with server(scene.features) as client:
        assert isinstance(client, InProcessClient)
        play = Play(client, scene.world().objects, scene.objects)
        await play.begin()
        await play.waits_for(HALF_FULL.reason)
        subject = Target("pod", play.subject.metadata.name)
        world = await read_world(SlowReader(client, gone), namespace="default")
        if world.pod("default", subject.name) is None:
            assert gone is PODS
            with pytest.raises(NoSuchObjectError):
                explanation_of(world, subject, "default")
        else:
            assert explanation_of(world, subject, "default").headline.sentence.endswith(".")
        await remove_all(client, PODS)
        with pytest.raises(NoSuchObjectError):
            async for _ in follow(client, subject, "default", heartbeat=lambda: None):
                pass
