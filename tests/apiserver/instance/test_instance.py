"""Instances in this process: what a start leaves in its folder, what it refuses in one sentence, and what an end leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drayman.apiserver.extensions.serving import DefinedResources
from drayman.apiserver.instance import Folder, Instance, InstanceError, Options, start
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster.backend import Target
from drayman.cluster.embedded import Key
from drayman.cluster.kube.kubeconfig import Kubeconfig
from drayman.cluster.options import DeleteOptions, GetOptions, WriteOptions
from drayman.testing.ports import kept_port

DEFINITIONS = Target("apiextensions.k8s.io", "v1", "customresourcedefinitions")
WIDGETS = Target("example.com", "v1", "widgets", "default")
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget"}


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(Folder(tmp_path / "data"))


@asynccontextmanager
async def started(options: Options) -> AsyncIterator[Instance]:
    """An instance for the time of a test."""
    instance = await start(options)
    try:
        yield instance
    finally:
        await instance.stop()


async def refusal(options: Options) -> str:
    """The sentence with which an instance does not start, after which nothing of it runs."""
    before = asyncio.all_tasks()
    with pytest.raises(InstanceError) as refused:
        await start(options)
    assert asyncio.all_tasks() == before
    sentence = str(refused.value)
    assert "\n" not in sentence
    return sentence


async def test_a_start_fills_its_folder(options: Options) -> None:
    """Everything an instance needs is in its folder, for the owner only; the record is there while it runs."""
    folder = options.folder
    async with started(options) as instance:
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        for path in (folder.kubeconfig, folder.token, folder.signing_key, folder.store):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        record = folder.running()
        assert record is not None
        assert (record.pid, record.url) == (os.getpid(), instance.url)
        assert record.durable
        config = json.loads(folder.kubeconfig.read_bytes())
        assert config["clusters"][0]["cluster"]["server"] == instance.url
        assert instance.store.get(Key("namespaces", "", "default")) is not None
    assert folder.running() is None


async def test_objects_tokens_and_keys_outlive_the_instance(options: Options) -> None:
    """A second start on the same folder goes on where the first ended."""
    options = replace(options, control_plane=None)  # whose controllers write at a time of their own
    folder = options.folder
    async with started(options) as instance:
        revision = instance.store.revision
        uid = instance.store.list("namespaces")[0].value["metadata"]["uid"]
        secrets = [path.read_bytes() for path in (folder.token, folder.signing_key)]
    async with started(options) as instance:
        assert instance.store.revision == revision
        assert instance.store.list("namespaces")[0].value["metadata"]["uid"] == uid
        assert [p.read_bytes() for p in (folder.token, folder.signing_key)] == secrets


async def test_in_memory_no_object_is_written(options: Options) -> None:
    """Without durability there is no store file, and the next instance begins anew."""
    options = replace(options, durable=False)
    async with started(options):
        record = options.folder.running()
        assert record is not None
        assert not record.durable
        assert not options.folder.store.exists()


async def test_the_kubeconfig_goes_where_it_is_asked_to(options: Options, tmp_path: Path) -> None:
    """It is for its owner only there too, also in place of a file that everybody could read."""
    path = tmp_path / "config"
    path.write_text("kind: Config")
    path.chmod(0o644)
    async with started(replace(options, kubeconfig=path)) as instance:
        assert instance.kubeconfig == path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not options.folder.kubeconfig.exists()


async def test_a_kubeconfig_keeps_the_entries_of_others(options: Options, tmp_path: Path) -> None:
    """Those of other clusters, and those that a user has added for this one; its own are written again, however often it starts."""
    path = tmp_path / "config"
    path.write_text(
        """
        kind: Config
        current-context: prod
        preferences: {colors: true}
        clusters: [{name: prod, cluster: {server: "https://prod.example.com"}}]
        users: [{name: me, user: {token: precious}}]
        contexts:
        - {name: prod, context: {cluster: prod, user: me}}
        - {name: mine, context: {cluster: drayman, user: me}}
        """
    )
    for _ in range(2):
        async with started(replace(options, kubeconfig=path)) as instance:
            config = Kubeconfig.load([path])
            assert config.connection().server == instance.url
            assert config.connection("mine").server == instance.url
            assert config.connection("prod").server == "https://prod.example.com"
    written = json.loads(path.read_bytes())
    assert [len(written[each]) for each in ("clusters", "users", "contexts")] == [2, 2, 3]
    assert written["preferences"] == {"colors": True}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{kind: Pod, metadata: {name: p}}", "kind is 'Pod', not 'Config'"),
        ("not a kubeconfig", "Expected `object`, got `str`"),
        ("a: [", "not valid YAML"),
    ],
)
async def test_a_file_that_is_not_a_kubeconfig_is_left_alone(
    options: Options, tmp_path: Path, content: str, why: str
) -> None:
    """It is refused with its name and what to do instead."""
    path = tmp_path / "config"
    path.write_text(content)
    sentence = await refusal(replace(options, kubeconfig=path))
    assert str(path) in sentence
    assert why in sentence
    assert sentence.endswith(
        "; it was left alone: name another file with --kubeconfig, or move it away"
    )
    assert path.read_text() == content


async def test_stopping_leaves_nothing_open(options: Options, tmp_path: Path) -> None:
    """No task, no socket, no lock and no open file is left; stopping twice is stopping once."""
    with kept_port() as port:
        there = replace(options, port=port)
        tasks, files = asyncio.all_tasks(), open_files()
        instance = await start(replace(there, audit_log=tmp_path / "audit"))
        await instance.stop()
        await instance.stop()
        assert asyncio.all_tasks() == tasks
        assert open_files() == files
        async with started(there) as again:
            assert again.url == instance.url


def open_files() -> int:
    if not sys.platform.startswith("linux"):
        return 0
    return len(os.listdir("/proc/self/fd"))


async def test_without_controllers_nothing_is_tidied_up(options: Options) -> None:
    """The API alone runs no task that changes objects."""
    before = asyncio.all_tasks()
    async with started(replace(options, control_plane=None)):
        assert not [t for t in asyncio.all_tasks() - before if t.get_name() == "lifecycle"]
    async with started(options):
        assert [t for t in asyncio.all_tasks() - before if t.get_name() == "lifecycle"]


async def test_a_second_instance_on_the_same_folder(options: Options) -> None:
    """It is told who has the folder, and the first one goes on undisturbed."""
    async with started(options) as instance:
        sentence = await refusal(options)
        assert sentence == f"{options.folder.store} is in use by process {os.getpid()}"
        record = options.folder.running()
        assert record is not None
        assert record.url == instance.url


async def test_a_taken_port(options: Options, tmp_path: Path) -> None:
    """The sentence names the address; what was opened before is closed, so that another try can succeed."""
    audit = tmp_path / "audit"
    with kept_port() as port:
        with socket.create_server(("127.0.0.1", port)):
            files = open_files()
            sentence = await refusal(replace(options, port=port, audit_log=audit))
            assert sentence == f"cannot listen on 127.0.0.1:{port}: address already in use"
            assert open_files() == files
        assert options.folder.running() is None
        async with started(replace(options, port=port)):
            pass


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("store.db", "is not a Drayman store"),
        ("admin.token", "holds no token"),
        ("accounts.key", "is no signing key"),
        ("pki/ca.crt", "is not a certificate"),
        ("pki/server.key", "is not a private key"),
    ],
)
async def test_a_broken_file(options: Options, name: str, words: str) -> None:
    """The sentence names the file, which is left as it is."""
    async with started(options):
        pass
    path, content = options.folder.path / name, b"\xff broken" * 1000
    path.write_bytes(content)
    sentence = await refusal(options)
    assert sentence.startswith(str(path))
    assert words in sentence
    assert path.read_bytes() == content


async def test_folders_that_cannot_be(options: Options, tmp_path: Path) -> None:
    """A file, a path below a file, and a place where nobody can make anything, whoever asks."""
    file = tmp_path / "file"
    file.touch()
    assert await refusal(replace(options, folder=Folder(file))) == f"{file} is not a directory"
    below = file / "below"
    sentence = await refusal(replace(options, folder=Folder(below)))
    assert sentence == f"cannot make {below}: not a directory"


@pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="needs a folder that root cannot write in"
)
@pytest.mark.parametrize("path", ["/proc/drayman", "/proc/self"], ids=["to-be-made", "there"])
@pytest.mark.parametrize("durable", [True, False], ids=["durable", "memory"])
async def test_a_folder_that_cannot_be_written(options: Options, path: str, durable: bool) -> None:
    """The sentence names the folder or the file in it, also for root."""
    sentence = await refusal(replace(options, folder=Folder(Path(path)), durable=durable))
    assert path in sentence


@pytest.mark.parametrize("which", ["kubeconfig", "audit_log"])
async def test_files_that_cannot_be_written(options: Options, tmp_path: Path, which: str) -> None:
    """The sentence names the file that was asked for, and the folder is free again."""
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "below"
    assert str(path) in await refusal(replace(options, **{which: path}))
    async with started(options):
        pass


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("example.com", False),
    ],
)
def test_loopback_is_told_from_the_rest(options: Options, host: str, expected: bool) -> None:
    """Only addresses of this machine itself are loopback; names other than localhost could be anything."""
    assert replace(options, host=host).is_loopback == expected


async def test_an_address_of_another_machine(options: Options) -> None:
    """An address that is not of this machine cannot be listened on, and the sentence says so."""
    sentence = await refusal(replace(options, host="192.0.2.1"))
    assert sentence == "cannot listen on 192.0.2.1:0: cannot assign requested address"


async def test_stopping_ends_what_goes_on_for_definitions(options: Options) -> None:
    """Objects that are being rewritten for a definition that has changed are left for the next start, and no task is left."""
    options = replace(options, control_plane=None)
    tasks = asyncio.all_tasks()
    async with started(options) as instance:
        backend = ServerBackend(instance.server.core)
        await backend.create(DEFINITIONS, widgets("v1"), WriteOptions())
        for number in range(300):
            body = {**WIDGET, "metadata": {"name": f"w{number}"}}
            await backend.create(WIDGETS, body, WriteOptions())
        found = await backend.get(DEFINITIONS._replace(name="widgets.example.com"), GetOptions())
        changed = {**widgets("v2"), "metadata": found.value["metadata"]}
        await backend.update(
            DEFINITIONS._replace(name="widgets.example.com"), changed, WriteOptions()
        )
        assert instance.server.core.resources.serves("example.com", "v2")
        assert asyncio.all_tasks() - tasks, "nothing was under way"
    assert asyncio.all_tasks() == tasks
    async with started(options) as instance:
        resources = instance.server.core.resources
        assert isinstance(resources, DefinedResources)
        await resources.settled()
        stored = instance.store.list("widgets.example.com")
        assert {one.value["apiVersion"] for one in stored} == {"example.com/v2"}


def widgets(storage: str) -> dict[str, Any]:
    """A custom resource in two versions, stored in one of them."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {"openAPIV3Schema": schema},
        }
        for name in ("v1", "v2")
    ]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": versions,
        },
    }


async def test_a_new_cluster_has_a_class_of_volumes(options: Options) -> None:
    """Whoever deletes it is rid of it, also after a restart; the API alone has none, as nobody would make its volumes."""
    key = Key("storageclasses.storage.k8s.io", "", "standard")
    async with started(options) as instance:
        assert instance.store.get(key) is not None
        backend = ServerBackend(instance.server.core)
        target = Target("storage.k8s.io", "v1", "storageclasses", name="standard")
        await backend.delete(target, DeleteOptions())
    async with started(options) as instance:
        assert instance.store.get(key) is None
    alone = replace(options, folder=Folder(options.folder.path / "alone"), control_plane=None)
    async with started(alone) as instance:
        assert instance.store.get(key) is None
