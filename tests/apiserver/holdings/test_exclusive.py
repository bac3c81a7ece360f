"""No device is given to two claims, whoever writes the allocation."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from holdings.claims import CLAIMS, DRIVER, MERGE, guarded, result, status

from drayman.apiserver.verbs.batch import Batch
from drayman.cluster.embedded.errors import RefusedError
from drayman.cluster.embedded.model import Delete, Key, Put
from drayman.cluster.errors import HELD_BY

SHARES = ("8c4bb7d4-0a2d-4a2c-9f1c-1f7d6e0e0001", "8c4bb7d4-0a2d-4a2c-9f1c-1f7d6e0e0002")


def refusal(claim: str, why: str) -> tuple[int, str]:
    prefix = "Operation cannot be fulfilled on resourceclaims.resource.k8s.io"
    return 409, f'{prefix} "{claim}": {why}'


async def test_a_device_is_held_by_one_claim() -> None:
    """409, which names the holder. Once it is free, the next claim may have it."""
    async with guarded("a", "b") as here:
        assert (await here.allocate("a", result("gpu-0")))[0] == 200
        refused = await here.allocate("b", result("gpu-1"), result("gpu-0"))
        why = f"device {DRIVER}/p/gpu-0 is allocated to ResourceClaim default/a"
        assert refused == refusal("b", why)
        body = status(result("gpu-0"))
        _, answer = await here.send("PATCH", f"{CLAIMS}/b/status", body, MERGE)
        cause = {"reason": HELD_BY, "message": "default/a", "field": "status.allocation"}
        assert answer["details"]["causes"] == [cause]
        assert (await here.allocate("b", result("gpu-0", pool="other")))[0] == 200
        await here.free("b")
        await here.free("a")
        assert (await here.allocate("b", result("gpu-0")))[0] == 200


async def test_devices_that_are_not_published_are_not_guarded() -> None:
    """As in Kubernetes, a claim may be allocated to anything. But a device that was published when it was given away stays held."""
    async with guarded("a", "b", "c", "d") as here:
        for name in ("a", "b"):
            assert (await here.allocate(name, result("made-up")))[0] == 200
        await here.allocate("c", result("gpu-0"))
        await here.publish({"name": "other"}, generation=5)
        assert (await here.allocate("d", result("gpu-0")))[0] == 409


async def test_a_deleted_claim_holds_nothing() -> None:
    """Its devices are free at once."""
    async with guarded("a", "b") as here:
        await here.allocate("a", result("gpu-0"))
        assert (await here.send("DELETE", f"{CLAIMS}/a"))[0] == 200
        assert (await here.allocate("b", result("gpu-0")))[0] == 200


async def test_a_claim_may_be_written_again() -> None:
    """What it holds already is not held against it."""
    async with guarded("a") as here:
        await here.allocate("a", result("gpu-0"))
        code, _ = await here.send(
            "PATCH", f"{CLAIMS}/a", {"metadata": {"labels": {"x": "y"}}},
            "application/merge-patch+json",
        )  # fmt: skip
        assert code == 200
        assert (await here.allocate("a", result("gpu-0")))[0] == 200


async def test_one_claim_cannot_hold_a_device_twice() -> None:
    """Not even within one allocation."""
    async with guarded("a") as here:
        refused = await here.allocate("a", result("gpu-0"), result("gpu-0"))
        assert refused[0] == 409


async def test_admin_access_holds_nothing() -> None:
    """It looks at devices that others have."""
    async with guarded("a", "b") as here:
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await here.send(
            "PATCH", "/api/v1/namespaces/default", label, "application/merge-patch+json"
        )
        await here.allocate("a", result("gpu-0"))
        assert (await here.allocate("b", {**result("gpu-0"), "adminAccess": True}))[0] == 200


async def test_shares_add_up_to_the_capacity_of_their_device() -> None:
    """Several claims may hold shares, as long as there is enough; a whole device excludes shares, and the other way round."""
    capacity = {"memory": {"value": "10Gi"}}
    async with guarded("a", "b", "c") as here:
        device = {"name": "gpu-0", "allowMultipleAllocations": True, "capacity": capacity}
        await here.publish(device)
        assert (await here.allocate("a", result("gpu-0", SHARES[0], memory="6Gi")))[0] == 200
        why = (
            f"device {DRIVER}/p/gpu-0 has not that much memory left beside ResourceClaim default/a"
        )
        too_much = result("gpu-0", SHARES[1], memory="5Gi")
        assert await here.allocate("b", too_much) == refusal("b", why)
        assert (await here.allocate("b", result("gpu-0", SHARES[1], memory="4Gi")))[0] == 200
        why = f"device {DRIVER}/p/gpu-0 is allocated to ResourceClaim default/a, default/b"
        assert await here.allocate("c", result("gpu-0")) == refusal("c", why)


async def test_a_share_has_one_holder() -> None:
    """The same share cannot be given twice."""
    async with guarded("a", "b") as here:
        await here.allocate("a", result("gpu-0", SHARES[0], memory="1Gi"))
        assert (await here.allocate("b", result("gpu-0", SHARES[0], memory="1Gi")))[0] == 409


async def test_partitions_add_up_to_the_counters_of_their_pool() -> None:
    """A partition for which counters are missing is refused with the claims that use them."""

    def partition(name: str, amount: str) -> dict[str, Any]:
        consumed = {"counterSet": "gpu-0", "counters": {"memory": {"value": amount}}}
        return {"name": name, "consumesCounters": [consumed]}

    async with guarded("a", "b", "c") as here:
        counters = [{"name": "gpu-0", "counters": {"memory": {"value": "8Gi"}}}]
        await here.publish(sharedCounters=counters, slices=2)
        await here.publish( partition("half", "4Gi"), partition("large", "5Gi"),
                      partition("rest", "4Gi"), slices=2)  # fmt: skip
        assert (await here.allocate("a", result("half")))[0] == 200
        why = f"counter memory of gpu-0 in pool {DRIVER}/p does not suffice beside ResourceClaim default/a"
        assert await here.allocate("b", result("large")) == refusal("b", why)
        assert (await here.allocate("b", result("rest")))[0] == 200
        await here.free("a")
        assert (await here.allocate("c", result("half")))[0] == 200


async def test_a_refusal_names_only_claims_that_draw_from_the_counter() -> None:
    """Not those of another card in the pool, nor of devices that draw from no counter: freeing those would not help."""

    def partition(name: str, card: str) -> dict[str, Any]:
        consumed = {"counterSet": card, "counters": {"memory": {"value": "4Gi"}}}
        return {"name": name, "consumesCounters": [consumed]}

    async with guarded("a", "b", "c", "d") as here:
        counters = [
            {"name": card, "counters": {"memory": {"value": "6Gi"}}} for card in ("one", "two")
        ]
        await here.publish(sharedCounters=counters, slices=2)
        parts = [partition("a", "one"), partition("b", "two"), partition("d", "one")]
        await here.publish(*parts, {"name": "c"}, slices=2)
        for name in ("a", "b", "c"):
            assert (await here.allocate(name, result(name)))[0] == 200
        why = f"counter memory of one in pool {DRIVER}/p does not suffice beside ResourceClaim default/a"
        assert await here.allocate("d", result("d")) == refusal("d", why)
        _, answer = await here.send("PATCH", f"{CLAIMS}/d/status", status(result("d")), MERGE)
        assert [cause["message"] for cause in answer["details"]["causes"]] == ["default/a"]


async def test_counters_that_have_shrunk_concern_only_what_draws_from_them() -> None:
    """A card that has become smaller than what is in use of it does not keep partitions of another from being given away."""

    def partition(name: str, card: str) -> dict[str, Any]:
        consumed = {"counterSet": card, "counters": {"memory": {"value": "4Gi"}}}
        return {"name": name, "consumesCounters": [consumed]}

    def cards(first: str) -> list[dict[str, Any]]:
        sizes = {"first": first, "second": "8Gi"}
        return [{"name": n, "counters": {"memory": {"value": v}}} for n, v in sizes.items()]

    async with guarded("a", "b", "c") as here:
        parts = [partition("a", "first"), partition("b", "first"), partition("c", "second")]
        for generation, size in enumerate(("8Gi", "2Gi"), start=1):
            shared = {"slices": 2, "generation": generation}
            await here.publish(sharedCounters=cards(size), **shared)
            await here.publish(*parts, **shared)
            if generation == 1:
                assert (await here.allocate("a", result("a")))[0] == 200
        assert (await here.allocate("b", result("b")))[0] == 409
        assert (await here.allocate("c", result("c")))[0] == 200


async def test_a_transaction_is_judged_as_a_whole() -> None:
    """A device can change hands in one transaction, and cannot be given twice in one."""
    async with guarded("a", "b") as here:
        await here.allocate("a", result("gpu-0"))
        given = (await here.send("GET", f"{CLAIMS}/a"))[1]
        without = {key: value for key, value in given.items() if key != "status"}
        other = {**given, "metadata": {**given["metadata"], "name": "b"}}
        key = Key("resourceclaims.resource.k8s.io", "default", "a")
        batch = Batch(here.store)
        await batch.write([Put(key, lambda _: msgspec.json.encode(without))])
        await batch.write([Put(key._replace(name="b"), lambda _: msgspec.json.encode(other))])
        await batch.commit()
        twice = [
            Put(key, lambda _: msgspec.json.encode(given)),
            Put(key._replace(name="c"), lambda _: msgspec.json.encode(other)),
        ]
        with pytest.raises(RefusedError):
            await here.store.write([Delete(key._replace(name="b"), lambda _: b"{}"), *twice])
        assert here.store.get(key._replace(name="c")) is None


async def test_a_refused_write_leaves_no_trace() -> None:
    """What it asked for beside is still free."""
    async with guarded("a", "b", "c") as here:
        await here.allocate("a", result("gpu-0"))
        await here.allocate("b", result("gpu-1"), result("gpu-0"))
        assert (await here.allocate("c", result("gpu-1")))[0] == 200


async def test_devices_held_before_a_start_are_held(tmp_path: Path) -> None:
    """Claims that exist count from the first write on."""
    async with guarded("a", path=tmp_path / "store") as here:
        await here.allocate("a", result("gpu-0"))
    async with guarded("b", path=tmp_path / "store") as here:
        assert (await here.allocate("b", result("gpu-0")))[0] == 409


@pytest.mark.parametrize("seed", range(20))
async def test_random_allocations_never_share_a_device(seed: int) -> None:
    """Whatever is given, freed and deleted: a write is refused exactly if it would give a held device away."""
    rng = random.Random(seed)
    names = [f"c{number}" for number in range(6)]
    held: dict[str, set[str]] = {}
    async with guarded(*names) as here:
        for _ in range(60):
            name = rng.choice(names)
            match rng.choice(["give", "give", "give", "free", "delete"]):
                case "give" if name not in held:
                    wanted = set(rng.sample([f"gpu-{n}" for n in range(8)], rng.randint(1, 3)))
                    code, _ = await here.allocate(name, *map(result, sorted(wanted)))
                    is_free = not any(wanted & others for others in held.values())
                    assert code == (200 if is_free else 409)
                    if is_free:
                        held[name] = wanted
                case "free":
                    await here.free(name)
                    held.pop(name, None)
                case "delete":
                    await here.send("DELETE", f"{CLAIMS}/{name}")
                    held.pop(name, None)
                    await here.claim(name)
