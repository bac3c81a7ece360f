"""The end of namespaces: first what is in them, then they themselves."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.lifecycle.world import (
    CONFIG,
    DEFINITION,
    NAMESPACE,
    WIDGET,
    Object,
    World,
    owner,
    widgets_definition,
    world,
)
from drayman.apiserver.lifecycle.namespace_conditions import (
    DISCOVERY,
    FAILURE,
    FINALIZERS,
    PARSING,
    REMAINING,
    deletion_conditions,
)
from drayman.apiserver.protocol.errors import forbidden
from drayman.apiserver.verbs.admission import Admitted
from drayman.cluster.backend import Target
from drayman.cluster.embedded import Key
from drayman.cluster.options import WriteOptions

INSIDE = CONFIG._replace(namespace="ending")
PODS_INSIDE = Target("", "v1", "pods", "ending")
POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


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


async def test_a_namespace_tells_what_it_waits_for() -> None:
    """What is left, behind whose finalizers, in the conditions of its status; and when all is gone, that it is."""
    async with world() as w:
        await w.create(NAMESPACE, "ending", finalizers=("example.com/kept",))
        for name, finalizer in (("one", "example.com/a"), ("two", "example.com/b")):
            await w.create(INSIDE, name, finalizers=(finalizer, "example.com/c"))
        await w.create(INSIDE, "free")
        await w.delete(NAMESPACE, "ending")
        await w.until_gone(INSIDE, "free")
        await w.quiet()
        conditions = await conditions_of(w)
        assert conditions[REMAINING] == (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances",
        )
        assert conditions[FINALIZERS] == (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/a in 1 resource "
            "instances, example.com/b in 1 resource instances, example.com/c in 2 resource instances",
        )
        assert {conditions[kind][0] for kind in (DISCOVERY, PARSING, FAILURE)} == {"False"}
        for name in ("one", "two"):
            await w.change(INSIDE, name, without_finalizers)
        await w.until_gone(INSIDE, "one", "two")
        await w.quiet()
        assert {status for status, _, _ in (await conditions_of(w)).values()} == {"False"}
        await w.change(NAMESPACE, "ending", without_finalizers)
        await w.until_gone(NAMESPACE, "ending")


async def test_a_namespace_tells_what_cannot_be_deleted() -> None:
    """What refuses keeps nothing else from going, and is tried again."""
    async with world() as w:
        refusing = RefuseDeletion("stubborn")
        w.core.admission.plugins.append(refusing)
        await w.create(NAMESPACE, "ending")
        await w.create(INSIDE, "stubborn")
        await w.create(INSIDE, "willing")
        await w.delete(NAMESPACE, "ending")
        await w.until_gone(INSIDE, "willing")
        await w.until(lambda: says(w, FAILURE, "True"), "a condition that tells of the failure")
        status, reason, message = (await conditions_of(w))[FAILURE]
        assert (status, reason) == ("True", "ContentDeletionFailed")
        assert 'configmaps "stubborn" is forbidden: not now' in message
        refusing.name = ""
        await w.until_gone(NAMESPACE, "ending")


async def test_other_objects_wait_for_the_pods() -> None:
    """What still runs keeps what it may need."""
    async with world() as w:
        await w.create(NAMESPACE, "ending")
        await w.create(INSIDE, "needed")
        await w.create(PODS_INSIDE, "runs", finalizers=("example.com/held",), **POD)
        await w.delete(NAMESPACE, "ending")
        await w.until(lambda: says(w, REMAINING, "True"), "a condition that tells of the pod")
        await w.quiet()
        needed = await w.get(INSIDE, "needed")
        assert needed is not None
        assert "deletionTimestamp" not in needed["metadata"]
        await w.change(PODS_INSIDE, "runs", without_finalizers)
        await w.until_gone(NAMESPACE, "ending")


@dataclass
class RefuseDeletion:
    """Admission that lets one object not be deleted."""

    name: str

    def admit(self, write: Admitted) -> None:
        if write.operation == "DELETE" and write.name == self.name:
            raise forbidden(write.resource.subject(write.name), "not now")

    def validate(self, write: Admitted) -> None:
        pass


async def conditions_of(w: World) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition of the namespace."""
    namespace = await w.get(NAMESPACE, "ending")
    assert namespace is not None
    return {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in namespace["status"]["conditions"]
    }


def says(w: World, kind: str, status: str) -> bool:
    """Whether the namespace has a condition in this status."""
    stored = w.store.get(Key("namespaces", "", "ending"))
    conditions = [] if stored is None else stored.value["status"].get("conditions") or []
    return any((c["type"], c["status"]) == (kind, status) for c in conditions)


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


def test_conditions_keep_the_time_of_their_last_change() -> None:
    """Only a condition whose status changes gets a new time; those of others stay as they are."""
    other = {"type": "example.com/Other", "status": "True"}
    first = deletion_conditions([other], {"pods.": 2}, {}, [], "then")
    second = deletion_conditions(first, {"pods.": 1}, {"example.com/f": 1}, [], "later")
    times = {c["type"]: c.get("lastTransitionTime") for c in second}
    assert second[0] == other
    assert (times[REMAINING], times[FAILURE], times[FINALIZERS]) == ("then", "then", "later")
    assert deletion_conditions(second, {"pods.": 1}, {"example.com/f": 1}, [], "never") == second
