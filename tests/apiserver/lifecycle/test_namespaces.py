"""The end of namespaces: first what is in them, then they themselves."""

from __future__ import annotations

from apiserver.lifecycle.world import (
    CONFIG,
    DEFINITION,
    NAMESPACE,
    WIDGET,
    Object,
    owner,
    widgets_definition,
    world,
)
from drayman.cluster.options import WriteOptions

INSIDE = CONFIG._replace(namespace="ending")


async def test_an_empty_namespace_goes() -> None:
    """Nothing has to be deleted first."""
    async with world() as w:
        await w.create(NAMESPACE, "ending")
        await w.delete(NAMESPACE, "ending")
        await w.until_gone(NAMESPACE, "ending")


async def test_everything_in_a_namespace_goes_before_it() -> None:
    """Objects of every resource, more than are deleted at a time, custom ones too; other namespaces are left alone."""
    async with world() as w:
        await w.backend.create(DEFINITION, widgets_definition(), WriteOptions())
        await w.create(NAMESPACE, "ending")
        for number in range(150):
            await w.create(INSIDE, f"config-{number}")
        await w.create(WIDGET._replace(namespace="ending"), "widget")
        await w.config("outside")
        await w.delete(NAMESPACE, "ending")
        await w.until_gone(NAMESPACE, "ending")
        assert await w.names(INSIDE) == set()
        assert await w.names(WIDGET._replace(namespace="ending")) == set()
        assert await w.names() == {"outside"}


async def test_a_namespace_waits_for_finalizers() -> None:
    """As long as something in it has a finalizer the namespace is Terminating, and it goes with the last one."""
    async with world() as w:
        await w.create(NAMESPACE, "ending")
        for name in ("one", "two"):
            await w.create(INSIDE, name, finalizers=("example.com/held",))
        await w.create(INSIDE, "free")
        await w.delete(NAMESPACE, "ending")
        await w.until_gone(INSIDE, "free")
        for name in ("one", "two"):
            await w.quiet()
            namespace, held = await w.get(NAMESPACE, "ending"), await w.get(INSIDE, name)
            assert namespace is not None
            assert namespace["status"]["phase"] == "Terminating"
            assert held is not None
            assert "deletionTimestamp" in held["metadata"]
            await w.change(INSIDE, name, without_finalizers)
        await w.until_gone(NAMESPACE, "ending")


def without_finalizers(metadata: Object) -> None:
    metadata["finalizers"] = []


async def test_a_finalizer_of_the_namespace_itself_keeps_it() -> None:
    """Its contents are gone, and it goes once nobody holds it."""
    async with world() as w:
        await w.create(NAMESPACE, "ending", finalizers=("example.com/held",))
        await w.create(INSIDE, "inside")
        await w.delete(NAMESPACE, "ending")
        await w.until_gone(INSIDE, "inside")
        await w.quiet()
        assert await w.get(NAMESPACE, "ending") is not None
        await w.change(NAMESPACE, "ending", without_finalizers)
        await w.until_gone(NAMESPACE, "ending")


async def test_a_namespace_that_was_ending_when_the_server_stopped() -> None:
    """It ends after the next start, and the next one of its name begins anew."""
    async with world(running=False) as w:
        await w.create(NAMESPACE, "ending")
        top = await w.create(INSIDE, "top")
        await w.create(INSIDE, "below", owner(top))
        await w.delete(NAMESPACE, "ending")
        w.lifecycle.start()
        await w.until_gone(NAMESPACE, "ending")
        await w.create(NAMESPACE, "ending")
        await w.create(INSIDE, "top")
        await w.quiet()
        assert await w.names(INSIDE) == {"top"}
