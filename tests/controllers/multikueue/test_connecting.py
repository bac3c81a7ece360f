"""Which kubeconfigs are used, and what is said about clusters and checks that cannot be."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from controllers.multikueue.clusters import (
    CHECKS,
    CLUSTERS,
    CONFIGS,
    active,
    cluster,
    clusters,
    is_active,
    runs_in,
)
from drayman.api.kueue import ClusterSource, KubeConfigSource, MultiKueueClusterSpec
from drayman.cluster.errors import ConfigurationError
from drayman.cluster.resources import NAMESPACES
from drayman.controllers.multikueue.connecting import SECRETS, find_access

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://worker.example:6443"}}]
users: [{name: u, user: USER}]
"""


def spec_for(location: str, kind: str = "Path") -> MultiKueueClusterSpec:
    source = KubeConfigSource(location=location, location_type=kind)
    return MultiKueueClusterSpec(cluster_source=ClusterSource(kube_config=source))


class NoCluster:
    """Nobody has to be asked for a file."""


@pytest.mark.parametrize(
    ("user", "says"),
    [
        pytest.param("{exec: {command: sh}}", "names a command", id="a command"),
        pytest.param("{auth-provider: {name: x}}", "names a command", id="an old kind of command"),
    ],
)
async def test_a_file_is_refused_that_names(user: str, says: str, tmp_path: Path) -> None:
    """Whoever writes a kubeconfig must not run commands here."""
    path = tmp_path / "worker.yaml"
    path.write_text(KUBECONFIG.replace("USER", user))
    client: Any = NoCluster()
    with pytest.raises(ConfigurationError, match=says):
        await find_access(client, spec_for(str(path)), "kueue-system")


async def test_a_file_may_name_other_files(tmp_path: Path) -> None:
    """Whoever writes it has access to the machine already."""
    (tmp_path / "token").write_text("secret")
    path = tmp_path / "worker.yaml"
    path.write_text(KUBECONFIG.replace("USER", "{tokenFile: token}"))
    client: Any = NoCluster()
    found = await find_access(client, spec_for(str(path)), "kueue-system")
    assert found.connection.server == "https://worker.example:6443"


async def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    client: Any = NoCluster()
    with pytest.raises(ConfigurationError, match=r"missing\.yaml: cannot be read"):
        await find_access(client, spec_for(str(tmp_path / "missing.yaml")), "kueue-system")


async def test_a_cluster_profile_is_not_supported() -> None:
    client: Any = NoCluster()
    with pytest.raises(ConfigurationError, match="kubeConfig is missing"):
        await find_access(client, MultiKueueClusterSpec(), "kueue-system")


async def test_secrets_say_how_to_reach_a_worker(tmp_path: Path) -> None:
    """The cluster is inactive, with the reason, until its Secret is there and can be used; then work goes there."""
    async with clusters(tmp_path, {"one": "cpu=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        source = {"kubeConfig": {"location": "one", "locationType": "Secret"}}
        await manager.create(
            CLUSTERS, {"metadata": {"name": "one"}, "spec": {"clusterSource": source}}
        )
        found = await manager.until_one(CLUSTERS, "one", lambda c: active(c)[0] == "False")
        assert active(found) == ("False", "BadKubeConfig")
        assert found.status["conditions"][0]["message"] == "there is no Secret kueue-system/one"
        await manager.client.create(NAMESPACES.as_values(), {"metadata": {"name": "kueue-system"}})
        text = KUBECONFIG.replace("USER", "{tokenFile: /etc/passwd}").encode()
        await write_secret(manager.client, text)
        await manager.until_one(
            CLUSTERS, "one", lambda c: "names a file" in c.status["conditions"][0]["message"]
        )
        await manager.client.delete(SECRETS, "one", "kueue-system")
        await write_secret(manager.client, one.kubeconfig.read_bytes())
        await manager.until_one(CLUSTERS, "one", is_active)


async def write_secret(client: Any, content: bytes) -> None:
    data = {"kubeconfig": base64.b64encode(content).decode()}
    await client.create(
        SECRETS, {"metadata": {"name": "one", "namespace": "kueue-system"}, "data": data}
    )


async def test_checks_say_whether_they_can_be_used(tmp_path: Path) -> None:
    """Without a configuration, without clusters, with clusters that do not exist."""
    async with cluster(tmp_path) as manager:
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
        spec = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
        await manager.create(CHECKS, {"metadata": {"name": "elsewhere"}, "spec": spec})
        await manager.until_one(CHECKS, "elsewhere", lambda c: active(c) == ("False", "BadConfig"))
        await manager.create(CONFIGS, {"metadata": {"name": "all"}, "spec": {"clusters": ["one"]}})
        found = await manager.until_one(
            CHECKS, "elsewhere", lambda c: active(c) == ("False", "NoUsableClusters")
        )
        assert found.status["conditions"][0]["message"] == "Missing clusters: one"


async def test_the_manager_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Everything that it has to know is in objects: the job that runs elsewhere is found again, and ends."""
    async with clusters(tmp_path, {"one": "cpu=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        await place.join("one")
        await manager.job("train", run_for="2s")
        await manager.workload(runs_in("one"))
        await one.running_pod()
        await manager.stop()
        await manager.start()
        done = await manager.workload(lambda w: w.status.is_true("Finished"))
        assert not done.status.is_true("Evicted")
