"""`--profile` says what it takes, and what is wrong with what it got."""

from __future__ import annotations

from pathlib import Path

import pytest

from drayman.drivers.profiles import ProfileError, parse_profiles, simulate

OWN = """\
apiVersion: drayman.dev/v1alpha1
kind: HardwareProfile
metadata:
  name: acme
spec:
  description: two ACME accelerators and a counter set each
  nodesPerUnit: 2
  node:
    labels: {acme.com/generation: "3"}
    capacity: {cpu: "16", memory: 64Gi}
  drivers:
  - name: acc.acme.com
    sharedCounters:
    - name: acc-$(index)
      count: 2
      counters: {cores: {value: "4"}}
    devices:
    - name: acc-$(index)
      each:
      - {bus: "1a", numa: 0}
      - {bus: "9b", numa: 1}
      attributes:
        index: {int: $(index)}
        uuid: {string: $(uuid)}
        where: {string: $(node)/$(bus)}
        resource.kubernetes.io/numaNode: {int: $(numa)}
      capacity:
        memory: {value: 32Gi}
      consumesCounters:
      - counterSet: acc-$(index)
        counters: {cores: {value: "4"}}
  deviceClasses:
  - metadata: {name: acc.acme.com}
    spec:
      selectors:
      - cel: {expression: device.driver == 'acc.acme.com'}
"""


def write(folder: Path, text: str) -> str:
    path = folder / "acme.yaml"
    path.write_text(text)
    return str(path)


TEXTS = [
    ("dgx-h100=4,cpu=2", [("dgx-h100", 4), ("cpu", 2)]),
    ("dgx-h100", [("dgx-h100", 1)]),
    ("cpu=1, cpu=2", [("cpu", 3)]),
    ("", []),
]


@pytest.mark.parametrize(("text", "wanted"), TEXTS, ids=[text or "nothing" for text, _ in TEXTS])
def test_names_and_counts_are_read(text: str, wanted: list[tuple[str, int]]) -> None:
    """`NAME[=COUNT]`, separated by commas; the same name twice adds up."""
    assert [(one.profile.name, one.count) for one in parse_profiles(text)] == wanted


def test_several_options_are_one_list() -> None:
    """`--profile` may be given again."""
    assert [one.count for one in parse_profiles(["cpu=1,mi300x=2", "cpu=3"])] == [4, 2]


WRONG = [
    ("dgx-h1000=2", "there is no profile 'dgx-h1000'; did you mean dgx-h100"),
    ("cpu=many", "'many' is not a count; write NAME=COUNT"),
    ("cpu=-1", "'-1' is not a count"),
    ("cpu=0", "--profile 'cpu=0': the count must be at least 1"),
    ("=3", "which profile?"),
    ("cpu=999999", "asks for 999999 nodes; the most is 20000"),
    ("./nowhere.yaml", "./nowhere.yaml: cannot be read: no such file or directory"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text for text, _ in WRONG])
def test_what_is_wrong_is_said(text: str, message: str) -> None:
    """One line that names it, and what is allowed."""
    with pytest.raises(ProfileError) as raised:
        parse_profiles(text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_profile_of_ones_own(tmp_path: Path) -> None:
    """Templates are repeated, placeholders filled in with the type they have, and what is not said has a default."""
    cluster = simulate(parse_profiles(f"{write(tmp_path, OWN)}=2"))
    names = [node.node.metadata.name for node in cluster.nodes]
    assert names == ["acme-0-00", "acme-0-01", "acme-1-00", "acme-1-01"]
    node = cluster.nodes[1]
    assert str(node.node.status.capacity["cpu"]) == "16"
    assert str(node.node.status.capacity["pods"]) == "110"
    assert node.node.metadata.labels["acme.com/generation"] == "3"
    counters, published = node.slices
    assert [item.name for item in counters.spec.shared_counters or ()] == ["acc-0", "acc-1"]
    first, second = published.spec.devices or ()
    assert first.attributes["index"].int_ == 0
    assert second.attributes["where"].string == "acme-0-01/9b"
    assert second.attributes["resource.kubernetes.io/numaNode"].int_ == 1
    assert first.attributes["uuid"].string != second.attributes["uuid"].string
    assert second.consumes_counters[0].counter_set == "acc-1"


MISTAKES = [
    (
        "unknown field",
        ("capacity: {cpu", "capactiy: {cpu"),
        ":10: spec.node.capactiy: there is no such field",
    ),
    (
        "unknown field of a device",
        ("capacity:\n        memory", "kapacity:\n        memory"),
        ":27: spec.drivers[0].devices[0].kapacity: there is no such field",
    ),
    (
        "unknown placeholder",
        ("$(bus)", "$(slot)"),
        "$(slot) is not known; there are index, node, uuid, bus, numa",
    ),
    (
        "wrong type",
        ("{int: $(index)}", "{int: one}"),
        ":23: spec.drivers[0].devices[0].attributes[index].int: expected integer, got string",
    ),
    ("no name", ("name: acme\n", "labels: {}\n"), "metadata.name: a name is required"),
    (
        "count and each",
        ("each:", "count: 2\n      each:"),
        "spec.drivers[0].devices[0]: count and each exclude one another",
    ),
    (
        "another kind",
        ("kind: HardwareProfile", "kind: Pod"),
        "expected apiVersion: drayman.dev/v1alpha1 and kind: HardwareProfile",
    ),
    (
        "no driver name",
        ("- name: acc.acme.com\n    shared", "- name: ''\n    shared"),
        "spec.drivers[0].name: a driver needs its name",
    ),
    (
        "selector that does not compile",
        ("device.driver == 'acc.acme.com'", "device.driver ="),
        "spec.deviceClasses[0].spec.selectors[0].cel.expression",
    ),
    (
        "not valid for the API",
        ("index: {int: $(index)}", "no-identifier: {int: 1}"),
        "spec.drivers[0]: acme-0-00-acc.acme.com-01: spec.devices[0].attributes",
    ),
    ("no YAML", ("metadata:\n", "metadata: [\n"), "acme.yaml:"),
    (
        "two objects",
        ("apiVersion", "kind: A\n---\napiVersion"),
        "expected one HardwareProfile, found 2 objects",
    ),
]


@pytest.mark.parametrize(
    ("change", "message"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES]
)
def test_mistakes_in_a_file_are_named(
    change: tuple[str, str], message: str, tmp_path: Path
) -> None:
    """The error names the file, the line where it is known, the field and what is wrong."""
    assert change[0] in OWN
    path = write(tmp_path, OWN.replace(change[0], change[1], 1))
    with pytest.raises(ProfileError) as raised:
        parse_profiles(path)
    assert message in str(raised.value)
    assert "acme.yaml" in str(raised.value)


def test_two_files_with_one_name_are_refused(tmp_path: Path) -> None:
    """Their nodes would have the same names."""
    (tmp_path / "b").mkdir()
    paths = [write(tmp_path, OWN), write(tmp_path / "b", OWN)]
    with pytest.raises(ProfileError, match="two profiles are called 'acme'"):
        parse_profiles(paths)


def test_units_of_known_nodes_are_left_out() -> None:
    """The lowest numbers that are free are taken, those of a rack as a whole."""
    wanted = parse_profiles("example=2,gb200-nvl72=1")
    rack = simulate(wanted).nodes[-1].node.metadata.name
    names = {"example-0", rack}
    found = [node.node.metadata.name for node in simulate(wanted, names).nodes]
    assert found[:2] == ["example-1", "example-2"]
    assert len(found) == 20
    assert names.isdisjoint(found)
