"""What pods read, by every place in which they can name it."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.pod_sources import config_maps_of, secrets_of
from drayman.node.agent.environment import wanted_sources
from drayman.node.agent.spec import RunnablePod


def _in(sort: str, **container: Any) -> dict[str, Any]:
    return {sort: [{"name": "c"}, {"name": "d", **container}]}


def _variable(reference: str) -> dict[str, Any]:
    plain = {"name": "a", "value": "b"}
    return {"env": [plain, {"name": "b", "valueFrom": {reference: {"name": "n", "key": "k"}}}]}


def _all(reference: str) -> dict[str, Any]:
    return {"envFrom": [{"prefix": "x"}, {reference: {"name": "n"}}]}


def _volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "e", "emptyDir": {}}, {"name": "v", **source}]}


def _projected(kind: str) -> dict[str, Any]:
    return _volume(projected={"sources": [{"downwardAPI": {}}, {kind: {"name": "n"}}]})


MAPS = {
    "a variable": _in("containers", **_variable("configMapKeyRef")),
    "one of an init container": _in("initContainers", **_variable("configMapKeyRef")),
    "all variables": _in("containers", **_all("configMapRef")),
    "a volume": _volume(configMap={"name": "n"}),
    "a part of one": _projected("configMap"),
}
SECRETS = {
    "a variable": _in("containers", **_variable("secretKeyRef")),
    "one of an init container": _in("initContainers", **_variable("secretKeyRef")),
    "all variables": _in("containers", **_all("secretRef")),
    "a volume": _volume(secret={"secretName": "n"}),
    "a part of one": _projected("secret"),
}


@pytest.mark.parametrize("spec", MAPS.values(), ids=MAPS)
def test_config_maps_that_a_pod_reads(spec: dict[str, Any]) -> None:
    """Each place counts, for those who let a node read and for the node."""
    pod = {"spec": spec}
    assert (list(config_maps_of(pod)), list(secrets_of(pod))) == (["n"], [])
    assert wanted_sources(convert(RunnablePod, pod)) == ({"n"}, set())


@pytest.mark.parametrize("spec", SECRETS.values(), ids=SECRETS)
def test_secrets_that_a_pod_reads(spec: dict[str, Any]) -> None:
    """Each place counts, for those who let a node read and for the node."""
    pod = {"spec": spec}
    assert (list(config_maps_of(pod)), list(secrets_of(pod))) == ([], ["n"])
    assert wanted_sources(convert(RunnablePod, pod)) == (set(), {"n"})


def test_secrets_of_images_and_of_containers_that_come_later() -> None:
    """They are read by kubelets, and not by nodes of ours, which pull nothing and add no containers to a pod."""
    spec = {
        "imagePullSecrets": [{"name": "registry"}, {}],
        **_in("ephemeralContainers", **_variable("secretKeyRef")),
    }
    assert sorted(secrets_of({"spec": spec})) == ["n", "registry"]
    assert wanted_sources(convert(RunnablePod, {"spec": spec})) == (set(), set())
