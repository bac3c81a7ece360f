"""The verbs, through the server without sockets."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from building import CountingIds, Harness, config, decoded
from drayman.apiserver.verbs.patches import APPLY, JSON_PATCH, MERGE_PATCH


async def test_create_gives_an_object_what_only_the_server_can() -> None:
    """Identity, time, namespace, version and an owner of its fields; what a client sent for those is replaced."""
    harness = Harness()
    base = await harness.namespace()
    body = config("a", k="v")
    body["metadata"] |= {"uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z"}
    created = await harness.json("POST", f"{base}/configmaps", body)
    metadata = created["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] == "2026-01-02T03:04:05Z"
    assert (metadata["namespace"], metadata["resourceVersion"]) == ("ns", "2")
    assert [entry["manager"] for entry in metadata["managedFields"]] == ["tests"]
    assert await harness.json("GET", f"{base}/configmaps/a") == created


async def test_objects_of_one_template_share_their_owners() -> None:
    """The entries of the second are those of the first, at their own time."""
    harness = Harness()
    base = await harness.namespace()
    first = await harness.json("POST", f"{base}/configmaps", config("a", k="v"))
    harness.clock.pass_seconds(5)
    second = await harness.json("POST", f"{base}/configmaps", config("b", k="v"))
    (one,), (other,) = first["metadata"]["managedFields"], second["metadata"]["managedFields"]
    assert one["fieldsV1"] == other["fieldsV1"]
    assert (one["time"], other["time"]) == ("2026-01-02T03:04:05Z", "2026-01-02T03:04:10Z")


async def test_generated_names_begin_as_asked() -> None:
    """Cut to 58 characters, then five more."""
    harness = Harness()
    base = await harness.namespace()
    body = {"metadata": {"generateName": "g" * 70}}
    created = await harness.json("POST", f"{base}/configmaps", body)
    assert created["metadata"]["name"][:-5] == "g" * 58


async def test_an_update_that_changes_nothing_is_not_written() -> None:
    """The version stays, and so does everything else."""
    harness = Harness()
    base = await harness.namespace()
    created = await harness.json("POST", f"{base}/configmaps", config("a", k="v"))
    harness.clock.pass_seconds(5)
    assert await harness.json("PUT", f"{base}/configmaps/a", config("a", k="v")) == created


async def test_a_stale_version_is_a_conflict() -> None:
    """Optimistic concurrency, for PUT and for a patch that names a version."""
    harness = Harness()
    base = await harness.namespace()
    created = await harness.json("POST", f"{base}/configmaps", config("a", k="1"))
    await harness.json("PUT", f"{base}/configmaps/a", config("a", k="2"))
    stale = await harness.send("PUT", f"{base}/configmaps/a", created)
    assert (stale.status, decoded(stale)["reason"]) == (409, "Conflict")
    change = {
        "metadata": {"resourceVersion": created["metadata"]["resourceVersion"]},
        "data": {"k": "3"},
    }
    headers = {"content-type": MERGE_PATCH}
    patched = await harness.send("PATCH", f"{base}/configmaps/a", change, headers)
    assert patched.status == 409


async def test_generation_counts_changes_of_the_spec() -> None:
    """Labels and status leave it alone."""
    harness = Harness()
    base = await harness.namespace()
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    created = await harness.json("POST", f"{base}/pods", pod)
    assert created["metadata"]["generation"] == 1
    headers = {"content-type": MERGE_PATCH}
    for change, path, generation in [
        ({"metadata": {"labels": {"a": "b"}}}, "", 1),
        ({"status": {"phase": "Running"}}, "/status", 1),
        ({"status": {"phase": "Failed"}}, "", 1),
        ({"spec": {"nodeName": "n"}}, "", 2),
    ]:
        patched = decoded(await harness.send("PATCH", f"{base}/pods/p{path}", change, headers))
        assert patched["metadata"]["generation"] == generation
    assert patched["status"]["phase"] == "Running"


async def test_put_creates_where_the_resource_allows_it() -> None:
    """A lease, but not a config map."""
    harness = Harness()
    await harness.namespace()
    leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
    made = await harness.send("PUT", f"{leases}/l", {"metadata": {"name": "l"}})
    missing = await harness.send("PUT", "/api/v1/namespaces/ns/configmaps/a", config("a"))
    assert (made.status, missing.status) == (201, 404)
    assert made.warnings == ("leases are going out of fashion",)


async def test_dry_run_answers_and_stores_nothing() -> None:
    """A created object has no version then."""
    harness = Harness()
    base = await harness.namespace()
    created = await harness.json("POST", f"{base}/configmaps", config("a"), dryRun="All")
    assert "resourceVersion" not in created["metadata"]
    assert (await harness.send("GET", f"{base}/configmaps/a")).status == 404


@pytest.mark.parametrize("media", [JSON_PATCH, MERGE_PATCH, APPLY])
async def test_every_kind_of_patch_ends_in_the_same_object(media: str) -> None:
    """Three ways to set one key."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("a", k="v"))
    change = {
        JSON_PATCH: [{"op": "add", "path": "/data/x", "value": "1"}],
        MERGE_PATCH: {"data": {"x": "1"}},
        APPLY: config("a", x="1"),
    }[media]
    query = {"fieldManager": "m"} if media == APPLY else {}
    headers = {"content-type": media}
    patched = decoded(await harness.send("PATCH", f"{base}/configmaps/a", change, headers, **query))
    assert patched["data"] == {"k": "v", "x": "1"}


async def test_apply_creates_what_is_not_there() -> None:
    """With the applier as the owner."""
    harness = Harness()
    base = await harness.namespace()
    headers = {"content-type": APPLY}
    response = await harness.send(
        "PATCH", f"{base}/configmaps/a", config("a", x="1"), headers, fieldManager="m"
    )
    (entry,) = decoded(response)["metadata"]["managedFields"]
    assert (response.status, entry["manager"], entry["operation"]) == (201, "m", "Apply")


async def test_nothing_is_created_without_its_namespace() -> None:
    """404 for none, 403 while it is going away."""
    harness = Harness()
    missing = await harness.send("POST", "/api/v1/namespaces/no/configmaps", config("a"))
    base = await harness.namespace()
    await harness.json("DELETE", base)
    leaving = await harness.send("POST", f"{base}/configmaps", config("a"))
    assert (missing.status, leaving.status) == (404, 403)
    assert decoded(leaving)["details"]["causes"][0]["reason"] == "NamespaceTerminating"


async def test_pages_add_up_to_the_list_of_their_revision() -> None:
    """What changes between pages shows in none of them."""
    harness = Harness()
    base = await harness.namespace()
    names = [f"c{i}" for i in range(5)]
    for name in names:
        await harness.json("POST", f"{base}/configmaps", config(name))
    page = await harness.json("GET", f"{base}/configmaps", limit="2")
    assert page["metadata"]["remainingItemCount"] == 3
    await harness.json("DELETE", f"{base}/configmaps/c3")
    seen = [item["metadata"]["name"] for item in page["items"]]
    while token := page["metadata"].get("continue"):
        page = await harness.json("GET", f"{base}/configmaps", limit="2", **{"continue": token})
        seen += [item["metadata"]["name"] for item in page["items"]]
    assert seen == names


async def test_an_old_page_tells_how_to_go_on() -> None:
    """410 with a token for the present state."""
    harness = Harness()
    base = await harness.namespace()
    for name in ("a", "b", "c"):
        await harness.json("POST", f"{base}/configmaps", config(name))
    page = await harness.json("GET", f"{base}/configmaps", limit="1")
    await harness.json("POST", f"{base}/configmaps", config("d"))
    harness.store.compact(harness.store.revision)
    token = page["metadata"]["continue"]
    gone = await harness.send("GET", f"{base}/configmaps", **{"continue": token})
    assert (gone.status, decoded(gone)["reason"]) == (410, "Expired")
    rest = await harness.json(
        "GET", f"{base}/configmaps", **{"continue": decoded(gone)["metadata"]["continue"]}
    )
    assert [item["metadata"]["name"] for item in rest["items"]] == ["b", "c", "d"]


@dataclass(slots=True)
class RepeatingIds(CountingIds):
    """Ends of generated names in the order given, the last one for ever."""

    ends: list[str] = field(default_factory=list)

    def suffix(self) -> str:
        return self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]


@pytest.mark.parametrize(
    ("ends", "name"),
    [(["aaaaa", "bbbbb"], "g-bbbbb"), (["aaaaa"] * 7 + ["bbbbb"], "g-bbbbb")],
    ids=["second-attempt", "eighth-attempt"],
)
async def test_a_generated_name_that_is_taken_gets_another_end(ends: list[str], name: str) -> None:
    """Up to eight are tried."""
    harness = Harness(ids=RepeatingIds(ends=ends))
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("g-aaaaa"))
    body = {"metadata": {"generateName": "g-"}}
    assert (await harness.json("POST", f"{base}/configmaps", body))["metadata"]["name"] == name


async def test_where_every_generated_name_is_taken_the_client_is_told_to_come_again() -> None:
    """409 with a time to wait, which names the last attempt."""
    harness = Harness(ids=RepeatingIds(ends=["aaaaa"] * 8 + ["bbbbb"]))
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("g-aaaaa"))
    refused = await harness.send("POST", f"{base}/configmaps", {"metadata": {"generateName": "g-"}})
    status = decoded(refused)
    assert (refused.status, status["reason"]) == (409, "AlreadyExists")
    assert status["message"] == (
        'configmaps "g-aaaaa" already exists, '
        "the server was not able to generate a unique name for the object"
    )
    assert status["details"]["retryAfterSeconds"] == 1
