"""What the server remembers of earlier objects changes nothing about later ones but how long they take."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.building import CountingIds, FixedClock
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.protocol.exchange import Request, Response
from drayman.apiserver.served.recurring import MOST_KEPT, Recurring, forget_everything, text_of
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.apiserver.serving.server import ApiServer
from drayman.cluster.backend import Target
from drayman.cluster.embedded import Store
from drayman.cluster.errors import StatusError
from drayman.cluster.options import WriteOptions
from rounds import rounds

Object = dict[str, Any]

TARGETS = {
    "Pod": ("", "v1", "pods"),
    "ResourceClaim": ("resource.k8s.io", "v1", "resourceclaims"),
    "ResourceClaimTemplate": ("resource.k8s.io", "v1", "resourceclaimtemplates"),
    "Event": ("events.k8s.io", "v1", "events"),
    "Job": ("batch", "v1", "jobs"),
}

NAMES = st.sampled_from(["a", "b-1", "Not A Name", "x" * 300, "a/b"])
ANNOTATIONS = st.sampled_from(
    [
        {"note": "text"},
        {"kubernetes.io/config.mirror": "x"},
        {"controller.kubernetes.io/pod-deletion-cost": "much"},
        {"not a key": "x"},
    ]
)
OWNERS = st.sampled_from(
    [
        [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1", "controller": True}],
        [{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u2", "controller": True}],
        [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}] * 2,
        [{"apiVersion": "v1", "kind": "Event", "name": "p", "uid": ""}],
    ]
)


@st.composite
def metadata(draw: st.DrawFn) -> Object:
    found: Object = {draw(st.sampled_from(["name", "generateName"])): draw(NAMES)}
    for member, values in (("annotations", ANNOTATIONS), ("ownerReferences", OWNERS)):
        if draw(st.booleans()):
            found[member] = draw(values)
    if draw(st.booleans()):
        found["labels"] = draw(st.sampled_from([{"app": "web"}, {"app": "not a value"}]))
    return found


def optional(**members: list[Any]) -> st.SearchStrategy[Object]:
    """Some of these members, each with one of its values."""
    values = {name: st.sampled_from(some) for name, some in members.items()}
    return st.fixed_dictionaries({}, optional=values)


CONTAINERS = optional(
    image=["i", "i:1", ""],
    resources=[
        {"claims": [{"name": "g"}]},
        {"limits": {"cpu": "1000m"}},
        {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
        {"limits": {"cpu": "much"}},
    ],
    env=[[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}], [{"name": "="}]],
    ports=[[{"containerPort": 80}], [{"containerPort": 0}]],
    unknown=[1],
).map(lambda more: {"name": "c", "image": "i", **more})

POD_SPECS = st.builds(
    lambda container, more: {"containers": [container], **more},
    CONTAINERS,
    optional(
        resourceClaims=[
            [{"name": "g", "resourceClaimTemplateName": "t"}],
            [{"name": "g"}],
            [],
        ],
        volumes=[
            [{"name": "v"}],
            [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}],
        ],
        schedulingGates=[[{"name": "example.com/gate"}]],
        nodeName=["n", "Not A Name"],
        tolerations=[[{"key": "k", "operator": "Exists"}], [{"operator": "Sometimes"}]],
        topologySpreadConstraints=[
            [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]
        ],
        restartPolicy=["Always", "Never", "Seldom", 7],
        containers=[[], None],
        terminationGracePeriodSeconds=[-3, 0],
        priority=[5],
    ),
)
CLAIM_SPECS = optional(
    devices=[
        {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]},
        {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}]},
        {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}]},
        {"requests": [{"name": "Not A Name", "exactly": {"deviceClassName": "gpu"}}]},
        {"requests": [{"name": "r", "exactly": {"deviceClassName": "g", "allocationMode": "?"}}]},
        {
            "requests": [
                {
                    "name": "r",
                    "exactly": {
                        "deviceClassName": "gpu",
                        "selectors": [{"cel": {"expression": "device.driver =="}}],
                    },
                }
            ]
        },
        {"requests": [{"name": "r", "firstAvailable": []}]},
        [],
    ],
    unknown=[{}],
)
EVENTS = optional(
    eventTime=["2026-01-01T00:00:00.000001Z", "2026-02-30T00:00:00.000000Z", "yesterday"],
    reportingController=["example.com/x", ""],
    reportingInstance=["x"],
    action=["Binding"],
    reason=["Scheduled"],
    regarding=[{"kind": "Pod", "namespace": "default", "name": "p"}, {"namespace": "other"}],
    note=["n", "n" * 2000],
    type=["Normal", "Other"],
)
BODIES = st.one_of(
    st.tuples(st.just("Pod"), metadata(), POD_SPECS.map(lambda spec: {"spec": spec})),
    st.tuples(st.just("ResourceClaim"), metadata(), CLAIM_SPECS.map(lambda spec: {"spec": spec})),
    st.tuples(
        st.just("ResourceClaimTemplate"),
        metadata(),
        CLAIM_SPECS.map(lambda spec: {"spec": {"spec": spec}}),
    ),
    st.tuples(
        st.just("Job"),
        metadata(),
        POD_SPECS.map(lambda spec: {"spec": {"template": {"spec": spec}}}),
    ),
    st.tuples(st.just("Event"), metadata(), EVENTS),
)


async def make() -> ApiServer:
    server = make_server(Store.open(None), clock=FixedClock(), ids=CountingIds())
    await create_first_objects(server.core)
    return server


def whole(kind: str, metadata: Object, rest: Object) -> Object:
    group, version, _ = TARGETS[kind]
    api_version = f"{group}/{version}" if group else version
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


async def post(server: ApiServer, body: Object, separators: tuple[str, str]) -> tuple[Any, ...]:
    """All that a client hears about a body that it sends."""
    group, version, plural = TARGETS[body["kind"]]
    root = f"/apis/{group}" if group else "/api"
    path = f"{root}/{version}/namespaces/default/{plural}"
    data = json.dumps(body, separators=separators).encode()
    answer = await server.handle(Request("POST", path, body=data))
    assert isinstance(answer, Response)
    return answer.status, answer.body, answer.warnings


async def create(server: ApiServer, body: Object) -> Any:
    """What a client in the same process gets."""
    group, version, plural = TARGETS[body["kind"]]
    target = Target(group, version, plural, "default")
    try:
        document = await ServerBackend(server.core).create(target, body, WriteOptions())
    except StatusError as error:
        return error.status
    return document.data


@settings(max_examples=rounds(60), deadline=None)
@given(
    bodies=st.lists(BODIES, min_size=1, max_size=4),
    separators=st.sampled_from([(",", ":"), (", ", ": ")]),
)
def test_memory_makes_no_difference(bodies: list[Any], separators: tuple[str, str]) -> None:
    """The same objects in the same order come to the same bytes, errors and warnings, with and without memory of others."""

    async def outcomes(*, forgetful: bool) -> list[Any]:
        posting, creating = await make(), await make()
        found = []
        for parts in [*bodies, *bodies]:
            for send in (
                lambda body: post(posting, body, separators),
                lambda body: create(creating, body),
            ):
                if forgetful:
                    forget_everything()
                found.append(await send(json.loads(json.dumps(whole(*parts)))))
        return found

    assert asyncio.run(outcomes(forgetful=False)) == asyncio.run(outcomes(forgetful=True))


async def test_objects_share_nothing_that_can_change() -> None:
    """A pod that is changed leaves another one, made from the same spec, as it was."""
    forget_everything()
    server = await make()
    spec = {"containers": [{"name": "c", "image": "i"}]}
    first, second = (whole("Pod", {"name": name}, {"spec": spec}) for name in ("a", "b"))
    await create(server, first)
    before = await create(server, second)
    path = "/api/v1/namespaces/default/pods/a"
    change = b'{"spec":{"containers":[{"name":"c","image":"other"}]}}'
    headers = {"content-type": "application/strategic-merge-patch+json"}
    answer = await server.handle(Request("PATCH", path, headers=headers, body=change))
    assert isinstance(answer, Response)
    assert answer.status == 200
    unchanged = await server.handle(Request("GET", "/api/v1/namespaces/default/pods/b"))
    assert isinstance(unchanged, Response)
    assert unchanged.body.strip() == before


def test_memory_is_bounded() -> None:
    """The oldest is forgotten for the newest."""
    memory: Recurring[int] = Recurring()
    for number in range(MOST_KEPT + 1):
        memory.keep(number, number)
    assert memory.find(0) is None
    assert memory.find(1) == 1
    assert memory.find(MOST_KEPT) == MOST_KEPT


def test_what_is_no_json_has_no_text() -> None:
    """Nothing is remembered of a value that cannot be written down."""
    assert text_of({"x": object()}) is None
    assert text_of("\ud800") is None
    assert text_of("x" * 100_000) is None
