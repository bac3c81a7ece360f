"""Lists without managedFields: the same objects, in every form that a list may have."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import Harness, config
from drayman.apiserver.answers.lean import without_managed_fields
from drayman.apiserver.served.encoding import stored_form
from drayman.apiserver.served.resources import GroupVersionKind
from drayman.apiserver.serving.http import Listener, start
from drayman.cluster.kube.client import HttpClient
from drayman.cluster.kube.connection import Connection
from drayman.cluster.options import ListOptions
from drayman.cluster.resources import CONFIG_MAPS

KIND = GroupVersionKind("apps", "v1", "Deployment")
Object = dict[str, Any]

HOSTILE = st.text(alphabet='"\\[]{},:a<é\u2028', max_size=8) | st.sampled_from(
    ['}]},"spec":{', ',"managedFields":[{', '\\"}]', '"metadata":{', "\\", "}]", '"}],"']
)
FIELDS = st.recursive(
    st.just({}), lambda inner: st.dictionaries(HOSTILE, inner, max_size=3), max_leaves=6
)
ENTRIES = st.lists(
    st.fixed_dictionaries({"manager": HOSTILE, "fieldsV1": FIELDS}, optional={"time": HOSTILE}),
    max_size=3,
)
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "labels": st.dictionaries(HOSTILE, HOSTILE, max_size=2),
    "ownerReferences": st.lists(st.fixed_dictionaries({"uid": HOSTILE}), max_size=2),
    "managedFields": ENTRIES,
    "deletionTimestamp": HOSTILE,
}
METADATA = st.fixed_dictionaries({}, optional=MEMBERS)


@given(METADATA, st.none() | METADATA, st.permutations(tuple(MEMBERS)))
def test_only_the_objects_own_are_left_out(
    metadata: Object, template: Object | None, order: list[str]
) -> None:
    """Whatever its texts look like, and also where a template in it has some."""
    given = {"name": "n", "uid": "u", **{k: metadata[k] for k in order if k in metadata}}
    spec = {} if template is None else {"spec": {"template": {"metadata": template}}}
    data = stored_form({"metadata": given, **spec}, KIND)(7)
    before, after = json.loads(data), json.loads(without_managed_fields(data))
    if before["metadata"].get("managedFields"):
        del before["metadata"]["managedFields"]
    assert after == before


async def _with_configs() -> tuple[Harness, str]:
    harness = Harness()
    base = f"{await harness.namespace()}/configmaps"
    for number in range(60):
        body = {**config(f"c{number:02}"), "data": {"a": "x" * 2_000}}
        body["metadata"]["labels"] = {"even": str(number % 2 == 0)}
        await harness.json("POST", base, body, fieldManager="somebody")
    return harness, base


LEAN = {"omitManagedFields": "true"}


async def test_through_the_api() -> None:
    """In pages, selected, and in each form that there is; lists that do not ask are as ever."""
    harness, base = await _with_configs()
    full = await harness.json("GET", base)
    assert all(item["metadata"].pop("managedFields") for item in full["items"])
    assert await harness.json("GET", base, **LEAN) == full
    paged: list[Object] = []
    token = ""
    while True:
        page = await harness.json("GET", base, **LEAN, limit="7", **{"continue": token})
        paged += page["items"]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert paged == full["items"]
    even = await harness.json("GET", base, **LEAN, labelSelector="even=True")
    assert even["items"] == full["items"][::2]
    pretty = await harness.send("GET", base, **LEAN, pretty="true")
    assert pretty.body.count(b"\n") > len(full["items"])
    assert json.loads(pretty.body) == full
    yaml = await harness.send("GET", base, headers={"accept": "application/yaml"}, **LEAN)
    assert msgspec.yaml.decode(yaml.body) == full
    assert "managedFields" in (await harness.json("GET", base))["items"][0]["metadata"]


ENCODINGS = {"takes it": ("gzip", "gzip"), "takes none": ("identity", "")}


@pytest.mark.parametrize(("accepted", "sent"), ENCODINGS.values(), ids=ENCODINGS)
async def test_over_a_socket(accepted: str, sent: str) -> None:
    """Compressed for who takes that, whole or in pages; and the same for all."""
    harness, base = await _with_configs()
    whole = await harness.json("GET", base, **LEAN)
    server = await start(harness.server, Listener())
    try:
        async with aiohttp.ClientSession(server.url) as session:
            headers = {"Accept-Encoding": accepted}
            async with session.get(base, headers=headers, params=LEAN) as response:
                assert await response.json() == whole
                assert response.headers.get("Content-Encoding", "") == sent
            few = {**LEAN, "limit": "3"}
            async with session.get(base, headers=headers, params=few) as response:
                assert "Content-Encoding" not in response.headers
                assert (await response.json())["items"] == whole["items"][:3]
            async with session.get(base, headers=headers) as response:
                assert response.headers.get("Content-Encoding", "") in ("", "gzip")
                assert len((await response.json())["items"]) == len(whole["items"])
    finally:
        await server.stop()


async def test_the_own_client_asks_for_them() -> None:
    """It gets the same objects, from a server of this kind."""
    harness, base = await _with_configs()
    namespace = base.split("/")[-2]
    server = await start(harness.server, Listener())
    try:
        async with HttpClient(Connection(server.url)) as client:
            lean = await client.list(
                CONFIG_MAPS, namespace, options=ListOptions(omit_managed_fields=True)
            )
            full = await client.list(CONFIG_MAPS, namespace)
    finally:
        await server.stop()
    assert all(item["metadata"].pop("managedFields") for item in full.items)
    assert lean.items == full.items
