"""CDI files: what is accepted, which version they declare, and what a container gets for an id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from drayman.plugins.cdi import (
    CdiDevice,
    ContainerEdits,
    DeviceNode,
    Devices,
    Hook,
    IntelRdt,
    Mount,
    NetDevice,
    Spec,
    file_name,
    lowest_version,
    merged,
    problems_of,
    read_spec,
    write_spec,
)
from drayman.plugins.cdi.merging import completed
from drayman.plugins.errors import CdiError

KIND = "vendor.com/class"


def spec(edits: ContainerEdits, *, kind: str = KIND, name: str = "d", **more) -> Spec:
    return Spec(
        cdi_version="1.1.0",
        kind=kind,
        devices=(CdiDevice(name=name, container_edits=edits),),
        **more,
    )


ENV = ContainerEdits(env=("A=1",))
NODE = ContainerEdits(device_nodes=(DeviceNode(path="/dev/a"),))
VERSIONS = {
    "env": ("0.3.0", spec(ENV)),
    "device node": ("0.3.0", spec(NODE)),
    "mount": ("0.3.0", spec(ContainerEdits(mounts=(Mount(host_path="/a", container_path="/b"),)))),
    "type of a mount": (
        "0.4.0",
        spec(ContainerEdits(mounts=(Mount(host_path="/a", container_path="/b", type_="tmpfs"),))),
    ),
    "another path on the host": (
        "0.5.0",
        spec(ContainerEdits(device_nodes=(DeviceNode(path="/dev/a", host_path="/dev/b"),))),
    ),
    "a name that begins with a digit": ("0.5.0", spec(ENV, name="0")),
    "a class with a dot": ("0.6.0", spec(ENV, kind="vendor.com/a.b")),
    "annotations": ("0.6.0", spec(ENV, annotations={"a": "b"})),
    "annotations of a device": (
        "0.6.0",
        Spec(
            kind=KIND, devices=(CdiDevice(name="d", annotations={"a": "b"}, container_edits=ENV),)
        ),
    ),
    "groups": ("0.7.0", spec(ContainerEdits(additional_gids=(5,)))),
    "RDT": ("0.7.0", spec(ContainerEdits(intel_rdt=IntelRdt(clos_id="a")))),
    "monitoring by RDT": (
        "1.1.0",
        spec(ContainerEdits(intel_rdt=IntelRdt(clos_id="a", enable_monitoring=True))),
    ),
    "network devices": (
        "1.1.0",
        spec(ContainerEdits(net_devices=(NetDevice(host_interface_name="eth1", name="net1"),))),
    ),
    "in the edits of the file": ("0.7.0", spec(ENV, container_edits=ContainerEdits(additional_gids=(5,)))),
}  # fmt: skip


@pytest.mark.parametrize("name", VERSIONS)
def test_a_file_declares_the_lowest_version_that_has_its_fields(name: str, tmp_path: Path) -> None:
    """Runtimes refuse what is newer than they are; what is written reads back as it was."""
    version, written = VERSIONS[name]
    assert lowest_version(written) == version
    path = tmp_path / "f.json"
    write_spec(path, written)
    assert json.loads(path.read_text())["cdiVersion"] == version
    assert read_spec(path) == replace(written, cdi_version=version)
    assert [found.name for found in tmp_path.iterdir()] == ["f.json"]


def edits(**fields) -> Spec:
    return spec(ContainerEdits(**fields))


WRONG = {
    "unknown version": (replace(spec(ENV), cdi_version="9.0.0"), "cdiVersion: '9.0.0' is not known"),
    "version too low": (
        replace(edits(additional_gids=(5,)), cdi_version="0.6.0"),
        "cdiVersion: 0.6.0 has not all of the fields that are used; they need 0.7.0",
    ),
    "no vendor": (spec(ENV, kind="class"), "kind: 'class' has no class"),
    "vendor with a slash in front": (spec(ENV, kind="/class"), "kind: '/class' has no vendor"),
    "class too long": (spec(ENV, kind=f"v/{'c' * 64}"), "has no class of up to 63"),
    "no device": (Spec(cdi_version="0.3.0", kind=KIND), "devices: at least one is required"),
    "device without a name": (spec(ENV, name=""), "devices[0].name: '' is no name"),
    "name with a slash": (spec(ENV, name="a/b"), "devices[0].name: 'a/b' is no name"),
    "same device twice": (
        replace(spec(ENV), devices=spec(ENV).devices * 2),
        "devices[1].name: 'd' is there twice",
    ),
    "device without edits": (edits(), "devices[0].containerEdits: at least one is required"),
    "no variable": (edits(env=("A",)), "devices[0].containerEdits.env[0]: 'A' is not NAME=value"),
    "no name of a variable": (edits(env=("=a",)), "env[0]: '=a' is not NAME=value"),
    "node without a path": (edits(device_nodes=(DeviceNode(),)), "deviceNodes[0].path: a value is required"),
    "type of a node": (edits(device_nodes=(DeviceNode(path="/d", type_="x"),)), "type: 'x' is none of"),
    "permissions": (edits(device_nodes=(DeviceNode(path="/d", permissions="rx"),)), "permissions: 'rx' has other"),
    "mount without a source": (edits(mounts=(Mount(container_path="/a"),)), "mounts[0].hostPath: a value is required"),
    "mount without a target": (edits(mounts=(Mount(host_path="/a"),)), "mounts[0].containerPath: a value is required"),
    "moment of a hook": (edits(hooks=(Hook(hook_name="never", path="/a"),)), "hooks[0].hookName: 'never' is none of"),
    "path of a hook": (edits(hooks=(Hook(hook_name="prestart", path="a"),)), "hooks[0].path: 'a' is no absolute path"),
    "variable of a hook": (edits(hooks=(Hook(hook_name="prestart", path="/a", env=("x",)),)), "hooks[0].env[0]: 'x'"),
    "network device twice": (
        edits(net_devices=(NetDevice(host_interface_name="a", name="n"), NetDevice(host_interface_name="b", name="n"))),
        "netDevices[0].name: 'n' is there twice",
    ),
    "annotation": (spec(ENV, annotations={"a b": ""}), "annotations[a b]: "),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_breaks_a_rule_is_named_with_its_field(name: str) -> None:
    """One problem for each."""
    wrong, problem = WRONG[name]
    found = problems_of(wrong)
    assert any(problem in each for each in found), found


@pytest.mark.parametrize("permissions", ["", "r", "rwm", "none"])
def test_permissions_are_letters_or_none(permissions: str) -> None:
    """`none` is a word, not letters: the node is there and may not be used."""
    node = DeviceNode(path="/d", permissions=permissions)
    assert problems_of(edits(device_nodes=(node,))) == []


def test_what_is_wrong_is_not_written(tmp_path: Path) -> None:
    """A runtime never sees it, and the file that was there stays."""
    path = tmp_path / "f.json"
    write_spec(path, spec(ENV))
    before = path.read_bytes()
    with pytest.raises(CdiError, match=r"f\.json: devices\[0\]"):
        write_spec(path, spec(ContainerEdits(env=("A",))))
    assert path.read_bytes() == before


READING = {
    "not JSON": ("{", "f.json: "),
    "no object": ("[]", "it is no object"),
    "unknown field": (
        '{"cdiVersion": "0.3.0", "kind": "v/c", "devices": [{"nam": "d"}]}',
        r"unknown fields: devices\[0\]\.nam",
    ),
    "wrong type": ('{"cdiVersion": "0.3.0", "kind": 3}', "kind: expected string"),
}


@pytest.mark.parametrize("name", READING)
def test_a_file_that_is_no_specification_says_why(name: str, tmp_path: Path) -> None:
    """With its path and the field."""
    text, problem = READING[name]
    path = tmp_path / "f.json"
    path.write_text(text)
    with pytest.raises(CdiError, match=problem):
        read_spec(path)


def test_yaml_is_read_too(tmp_path: Path) -> None:
    """Files that people write often are."""
    path = tmp_path / "f.yaml"
    path.write_text(
        "cdiVersion: 0.3.0\nkind: v/c\ndevices:\n- {name: d, containerEdits: {env: [A=1]}}\n"
    )
    assert read_spec(path).devices[0].container_edits == ENV


def test_a_transient_file_is_named_after_its_kind_and_id() -> None:
    """So that two drivers cannot meet."""
    assert file_name("k8s.gpu.example.com/claim", "u") == "k8s.gpu.example.com-claim_u.json"


def folder(path: Path, **files: Spec) -> Path:
    for name, content in files.items():
        write_spec(path / f"{name}.json", content)
    path.mkdir(exist_ok=True)
    return path


def two(kind: str = KIND) -> Spec:
    """Two devices, and edits for whoever uses any of them."""
    return Spec(
        kind=kind,
        devices=(
            CdiDevice(name="a", container_edits=ContainerEdits(env=("A=1", "BOTH=a"))),
            CdiDevice(name="b", container_edits=ContainerEdits(env=("B=1", "BOTH=b"))),
        ),
        container_edits=ContainerEdits(env=("ALL=1", "BOTH=none")),
    )


def test_edits_of_a_file_come_once_and_before_those_of_its_devices(tmp_path: Path) -> None:
    """Later edits win over earlier ones."""
    devices = Devices.load([folder(tmp_path, f=two())])
    found = devices.edits([f"{KIND}=a", f"{KIND}=b", f"{KIND}=a"])
    assert [each.env[0] for each in found] == ["ALL=1", "A=1", "B=1"]
    assert merged(found).env == {"ALL": "1", "A": "1", "B": "1", "BOTH": "b"}


def test_a_later_folder_hides_an_earlier_one(tmp_path: Path) -> None:
    """As the dynamic folder does with the static one."""
    static = folder(tmp_path / "etc", f=spec(ContainerEdits(env=("FROM=static",))))
    dynamic = folder(tmp_path / "run", f=spec(ContainerEdits(env=("FROM=dynamic",))))
    devices = Devices.load([static, dynamic])
    assert merged(devices.edits([f"{KIND}=d"])).env == {"FROM": "dynamic"}


def test_a_device_that_a_folder_has_twice_cannot_be_used(tmp_path: Path) -> None:
    """Nobody can tell which of the two is meant; a later folder settles it."""
    both = folder(tmp_path / "a", f=spec(ENV), g=spec(NODE))
    with pytest.raises(CdiError, match=r"f\.json and .*g\.json: one of them has to go"):
        Devices.load([both]).edits([f"{KIND}=d"])
    settled = Devices.load([both, folder(tmp_path / "b", f=spec(NODE))])
    assert settled.edits([f"{KIND}=d"]) == [NODE]


def test_an_id_that_no_file_has_is_an_error_with_the_broken_files(tmp_path: Path) -> None:
    """The reason is usually there."""
    (tmp_path / "bad.json").write_text("{")
    folder(tmp_path, good=spec(ENV))
    devices = Devices.load([tmp_path, tmp_path / "absent"])
    assert devices.ids == (f"{KIND}=d",)
    with pytest.raises(CdiError, match=r"no CDI file has v/c=x .*bad\.json"):
        devices.edits(["v/c=x", f"{KIND}=d"])


def test_hidden_files_and_other_files_are_left_alone(tmp_path: Path) -> None:
    """A file that is being written begins with a dot."""
    (tmp_path / ".f.json.123").write_text("{")
    (tmp_path / "notes.txt").write_text("hello")
    assert Devices.load([tmp_path]) == Devices({}, {}, ())


def test_device_nodes_and_mounts_of_the_same_place_are_one() -> None:
    """The later one; mounts are ordered so that what lies below comes after."""
    first = ContainerEdits(
        device_nodes=(DeviceNode(path="/dev/a", major=1), DeviceNode(path="/dev/b")),
        mounts=(Mount(host_path="/1", container_path="/x/y"),),
        additional_gids=(5, 6),
    )
    second = ContainerEdits(
        device_nodes=(DeviceNode(path="/dev/a", major=2),),
        mounts=(
            Mount(host_path="/2", container_path="/x/y"),
            Mount(host_path="/3", container_path="/x"),
        ),
        hooks=(Hook(hook_name="prestart", path="/h"),),
        additional_gids=(6, 0),
    )
    found = merged([first, second])
    assert found.device_nodes == (DeviceNode(path="/dev/b"), DeviceNode(path="/dev/a", major=2))
    assert [mount.host_path for mount in found.mounts] == ["/3", "/2"]
    assert found.additional_gids == (5, 6)
    assert len(found.hooks) == 1


def test_a_node_without_numbers_gets_those_of_the_host() -> None:
    """Drivers need not know them."""
    node = completed(DeviceNode(path="/dev/in-container", host_path="/dev/null"))
    assert (node.type_, node.major, node.minor) == ("c", 1, 3)
    given = DeviceNode(path="/dev/x", type_="c", major=195, minor=1)
    assert completed(given) == given


@pytest.mark.parametrize("path", ["/dev/not-there", "/etc/hostname"])
def test_a_node_that_the_host_does_not_have_is_an_error(path: str) -> None:
    """With the path on the host."""
    with pytest.raises(CdiError, match=path):
        completed(DeviceNode(path="/dev/a", host_path=path))
