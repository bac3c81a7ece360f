"""`drayman top owners`: who holds devices, since when, and at which cost."""

from __future__ import annotations

import json
from dataclasses import replace as structure
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from cli.top.readings import claim
from drayman.api.codec import convert, to_dict
from drayman.api.core import Pod
from drayman.api.custom_groups import KaiPodGroup, KaiQueue
from drayman.api.jobs import Job
from drayman.api.kueue_workload import Workload
from drayman.api.resource import ResourceClaim
from drayman.api.times import timestamp_at
from drayman.cli.main import cli
from drayman.cli.table import Table
from drayman.cli.top.rows import owner_cells, owner_columns
from drayman.drivers.profiles import parse_profiles
from drayman.placement.price_table import read_price_table
from drayman.placement.world import Objects, World
from drayman.questions.devices.ordering import sorted_owners
from drayman.questions.devices.owners import Grouping, OwnerRow, Owners, owners
from drayman.questions.devices.reading import Reading, reading_of, reading_of_world
from drayman.simulate.snapshot import snapshot

QUEUE = "kai.scheduler/queue"
NOW = 1_900_000_000.0
HOUR = 3600.0
PRICES = b"currency: USD\ninstanceTypes:\n  dgx-h100: 80\n"
TABLE = read_price_table("prices.yaml", PRICES)


def gpu(node: int, number: int) -> str:
    return f"gpu.nvidia.com/dgx-h100-{node}/gpu-{number}"


def nic(node: int, number: int) -> str:
    return f"dra.net/dgx-h100-{node}/{number}"


def since(made: ResourceClaim, hours: float, namespace: str = "team") -> ResourceClaim:
    """The claim as it was allocated that long ago."""
    allocation = made.status.allocation
    assert allocation is not None
    moment = timestamp_at(NOW - hours * HOUR)
    status = replace(made.status, allocation=replace(allocation, allocation_timestamp=moment))
    return replace(made, metadata=replace(made.metadata, namespace=namespace), status=status)


def pod(name: str, kind: str = "", owner: str = "", **fields: Any) -> Pod:
    """The pod of `claim(name, ...)`, made by something."""
    made_by = {"apiVersion": "v1", "kind": kind, "name": owner, "uid": owner, "controller": True}
    metadata = {
        "name": name,
        "namespace": "team",
        "uid": f"pod-{name}",
        "labels": fields.get("labels", {}),
        "annotations": fields.get("annotations", {}),
        "ownerReferences": [made_by] if kind else [],
    }
    status = {"startTime": fields["started"]} if "started" in fields else {}
    return convert(Pod, {"metadata": metadata, "spec": {"nodeName": "x"}, "status": status})


def objects(claims: list[ResourceClaim], pods: list[Pod], **labels: str) -> Objects:
    """Two nodes with eight GPUs each; the second has these labels instead of an instance type."""
    (wanted,) = parse_profiles("dgx-h100=2")
    first, second = (next(iter(wanted.profile.unit(number))) for number in range(2))
    other = replace(second.node, metadata=replace(second.node.metadata, labels=labels))
    return Objects(
        nodes=(first.node, other),
        slices=(*first.slices, *second.slices),
        claims=tuple(claims),
        pods=tuple(pods),
    )


def reading(claims: list[ResourceClaim], pods: list[Pod], **labels: str) -> Reading:
    given = objects(claims, pods, **labels)
    return reading_of(given.nodes, given.slices, given.claims, pods=given.pods)


def rows(found: Owners, order: str = "rate") -> list[tuple[Any, ...]]:
    return [
        (row.namespace, row.owner, row.pods, dict(row.devices), row.cost_per_hour, row.cost)
        for row in sorted_owners(found.rows, order)
    ]


CLAIMS = [
    since(claim("train-0", gpu(0, 0), gpu(0, 1)), 2),
    since(claim("train-1", gpu(0, 2), gpu(0, 3)), 1),
    since(claim("web-x", gpu(0, 4)), 10),
    since(claim("lone", gpu(1, 0)), 5, "other"),
]
PODS = [
    pod("train-0", "Job", "train"),
    pod("train-1", "Job", "train"),
    pod("web-x", "ReplicaSet", "web-abc", labels={"pod-template-hash": "abc"}),
]


def test_claims_belong_to_what_made_their_pods() -> None:
    """A Job with all its pods, the Deployment of a ReplicaSet, and a pod that is not to be seen by its name."""
    found = owners(reading(CLAIMS, PODS), NOW, TABLE)
    assert rows(found) == [
        ("team", "Job/train", 2, {"gpu": 4}, 40.0, 60.0),
        ("team", "Deployment/web", 1, {"gpu": 1}, 10.0, 100.0),
        ("other", "Pod/lone", 1, {"gpu": 1}, None, None),
    ]
    assert [row.since for row in sorted_owners(found.rows, "since")] == [
        timestamp_at(NOW - hours * HOUR) for hours in (10, 5, 2)
    ]
    total = found.total
    assert (dict(total.devices), total.cost_per_hour, total.cost) == ({"gpu": 6}, 50.0, 160.0)
    assert total.unpriced_devices == 1
    assert found.currency == "USD"


def test_the_same_by_namespace() -> None:
    """And for one namespace only."""
    found = owners(reading(CLAIMS, PODS), NOW, TABLE, by=Grouping.NAMESPACE)
    assert rows(found) == [
        ("team", "", 3, {"gpu": 5}, 50.0, 160.0),
        ("other", "", 1, {"gpu": 1}, None, None),
    ]
    assert rows(owners(reading(CLAIMS, PODS), NOW, TABLE, namespace="other")) == [
        ("other", "Pod/lone", 1, {"gpu": 1}, None, None)
    ]


def test_the_same_by_queue() -> None:
    """What has quota of a queue, over all namespaces; the quota of a Job is that of its pods."""
    admission = {"clusterQueue": "team-a", "podSetAssignments": []}
    made = [
        {"name": "j", "ownerReferences": [{"kind": "Job", "name": "train", "uid": "train"}]},
        {"name": "p", "ownerReferences": [{"kind": "Pod", "name": "lone", "uid": "pod-lone"}]},
    ]
    workloads = tuple(
        convert(Workload, {"metadata": metadata, "status": {"admission": admission}})
        for metadata in made
    )
    given = structure(objects(CLAIMS, PODS), queued_workloads=workloads)
    there = reading_of_world(World(given, NOW))
    assert rows(owners(there, NOW, TABLE, by=Grouping.QUEUE)) == [
        ("", "ClusterQueue/team-a", 3, {"gpu": 5}, 40.0, 60.0),
        ("", "(no queue)", 1, {"gpu": 1}, 10.0, 100.0),
    ]


def test_the_same_by_queue_of_the_kai_scheduler() -> None:
    """As the pod group says, or the label of the pod or of its Job. A queue that there is not is none."""
    group = {
        "metadata": {"name": "g", "namespace": "team"},
        "spec": {"queue": "ml", "minMember": 1},
    }
    job = {"name": "train", "namespace": "team", "uid": "train", "labels": {QUEUE: "web"}}
    pods = [
        pod("train-0", annotations={"pod-group-name": "g"}),
        pod("train-1", "Job", "train"),
        pod("web-x", labels={QUEUE: "gone"}),
    ]
    given = structure(
        objects(CLAIMS, pods),
        kai_queues=tuple(convert(KaiQueue, {"metadata": {"name": n}}) for n in ("ml", "web")),
        kai_pod_groups=(convert(KaiPodGroup, group),),
        jobs=(convert(Job, {"metadata": job, "spec": {"template": {}}}),),
    )
    there = reading_of_world(World(given, NOW))
    assert rows(owners(there, NOW, TABLE, by=Grouping.QUEUE), "name") == [
        ("", "(no queue)", 2, {"gpu": 2}, 10.0, 100.0),
        ("", "Queue/ml", 1, {"gpu": 2}, 20.0, 40.0),
        ("", "Queue/web", 1, {"gpu": 2}, 20.0, 20.0),
    ]


def test_a_label_is_a_price_too() -> None:
    """Without any table."""
    found = owners(reading(CLAIMS, PODS, **{"drayman.dev/price-per-hour": "8"}), NOW)
    assert ("other", "Pod/lone", 1, {"gpu": 1}, 1.0, 5.0) in rows(found)


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("rate", ["Job/train", "Deployment/web", "Pod/lone"]),
        ("cost", ["Deployment/web", "Job/train", "Pod/lone"]),
        ("devices", ["Job/train", "Pod/lone", "Deployment/web"]),
        ("since", ["Deployment/web", "Pod/lone", "Job/train"]),
        ("name", ["Pod/lone", "Deployment/web", "Job/train"]),
    ],
)
def test_orders(order: str, names: list[str]) -> None:
    """What is most comes first; ties are broken by namespace and name."""
    found = owners(reading(CLAIMS, PODS), NOW, TABLE)
    assert [row.owner for row in sorted_owners(found.rows, order)] == names


def test_what_workloads_share_is_paid_by_each_in_part() -> None:
    """The devices are listed for both; in a namespace they count once."""
    both = CLAIMS[2]
    users = (*both.status.reserved_for, *CLAIMS[0].status.reserved_for)
    shared = replace(both, status=replace(both.status, reserved_for=users))
    there = reading([shared], PODS)
    assert rows(owners(there, NOW, TABLE)) == [
        ("team", "Deployment/web", 1, {"gpu": 1}, 5.0, 50.0),
        ("team", "Job/train", 1, {"gpu": 1}, 5.0, 50.0),
    ]
    assert rows(owners(there, NOW, TABLE, by=Grouping.NAMESPACE)) == [
        ("team", "", 2, {"gpu": 1}, 10.0, 100.0)
    ]


def test_a_claim_without_a_user_belongs_to_itself() -> None:
    """Its devices are held all the same; admin access and claims without devices hold nothing."""
    held = replace(CLAIMS[0], status=replace(CLAIMS[0].status, reserved_for=()))
    idle = replace(CLAIMS[1], status=replace(CLAIMS[1].status, allocation=None))
    allocation = CLAIMS[2].status.allocation
    assert allocation is not None
    results = tuple(replace(each, admin_access=True) for each in allocation.devices.results)
    seeing = replace(allocation, devices=replace(allocation.devices, results=results))
    admin = replace(CLAIMS[2], status=replace(CLAIMS[2].status, allocation=seeing))
    found = owners(reading([held, idle, admin], PODS), NOW, TABLE)
    assert rows(found) == [("team", "ResourceClaim/train-0-claim", 0, {"gpu": 2}, 20.0, 40.0)]


def test_a_group_of_pods_may_hold_a_claim() -> None:
    """It is reserved for the group as one."""
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"}
    given = to_dict(CLAIMS[0])
    given["status"]["reservedFor"] = [group]
    found = owners(reading([convert(ResourceClaim, given)], PODS), NOW, TABLE)
    assert [(row.owner, row.pods) for row in found.rows] == [("PodGroup/g", 0)]


def test_without_a_note_of_the_allocation_the_start_of_the_pod_counts() -> None:
    """Without either, nothing is known about the past."""
    unnoted, unstarted = claim("train-0", gpu(0, 0)), claim("train-1", gpu(0, 1))
    started = timestamp_at(NOW - 3 * HOUR)
    users = [pod("train-0", "Job", "a", started=started), pod("train-1", "Job", "b")]
    found = sorted_owners(owners(reading([unnoted, unstarted], users), NOW, TABLE).rows, "name")
    assert [(row.since, row.cost_per_hour, row.cost) for row in found] == [
        (started, 10.0, 30.0),
        (None, 10.0, None),
    ]


def test_lines_fit_on_a_terminal() -> None:
    """Of 80 columns, whatever the names; owners are whole as long as possible."""
    row = OwnerRow(
        namespace="a-namespace-with-a-long-name",
        owner="Deployment/inference-a",
        claims=100,
        pods=100,
        devices={"gpu": 800, "nic": 800},
        since=timestamp_at(NOW - 100 * HOUR),
        cost_per_hour=98_765.43,
        cost=9_876_543.21,
    )
    table = Table(owner_columns("USD"), [owner_cells(row, datetime.fromtimestamp(NOW, UTC))])
    lines = table.text(80).plain.splitlines()
    assert max(map(len, lines)) <= 80
    assert "Deployment/inference-a" in lines[1]
    assert "98,765.43" in lines[1]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A snapshot of such a cluster, beside a table of prices."""
    world = World(objects(CLAIMS, PODS, **{"drayman.dev/price-per-hour": "much"}), NOW)
    (tmp_path / "cluster.yaml").write_bytes(b"".join(snapshot(world)))
    (tmp_path / "prices.yaml").write_bytes(PRICES)
    return tmp_path


def run(folder: Path, *words: str) -> Result:
    files = ("--snapshot", str(folder / "cluster.yaml"), "--prices", str(folder / "prices.yaml"))
    return CliRunner().invoke(cli, ["top", "owners", *words, *files], prog_name="drayman")


def test_a_snapshot_is_shown_at_its_own_time(saved: Path) -> None:
    """As text, with the total; what is wrong with labels is said beside it."""
    result = run(saved)
    assert result.exit_code == 0, result.output
    heading, *lines = result.stdout.splitlines()
    assert heading == f"cluster: as saved in {saved / 'cluster.yaml'}"
    assert [line.split() for line in lines] == [
        ["NAMESPACE", "OWNER", "PODS", "DEVICES", "SINCE", "USD/H", "SO", "FAR"],
        ["team", "Job/train", "2", "4", "gpu", "120m", "40.00", "60.00"],
        ["team", "Deployment/web", "1", "1", "gpu", "10h", "10.00", "100.00"],
        ["other", "Pod/lone", "1", "1", "gpu", "5h", "-", "-"],
        ["total", "-", "6", "gpu", "-", "50.00+", "160.00+"],
    ]
    assert "label drayman.dev/price-per-hour: 'much' is not a price" in result.stderr


def test_the_same_as_data(saved: Path) -> None:
    """With the total, the currency and what there is to remark."""
    result = run(saved, "-o", "json", "--by", "namespace", "-n", "team")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["cluster"] == {"snapshot": str(saved / "cluster.yaml")}
    assert found["owners"] == [
        {
            "namespace": "team",
            "claims": 3,
            "pods": 3,
            "devices": {"gpu": 5},
            "since": timestamp_at(NOW - 10 * HOUR),
            "costPerHour": 50.0,
            "cost": 160.0,
        }
    ]
    assert found["total"] == {"devices": {"gpu": 5}, "costPerHour": 50.0, "cost": 160.0}
    assert found["currency"] == "USD"
    assert len(found["notes"]) == 1


def test_a_wrong_command_line_is_refused(saved: Path) -> None:
    """A file cannot be watched, a table has to be right, and a snapshot is a cluster."""
    assert "not one in a file" in run(saved, "--watch").stderr
    assert "already names a cluster" in run(saved, "--context", "x").stderr
    (saved / "prices.yaml").write_text("instanceTypes:\n  a: b\n")
    assert "prices.yaml:2: a: 'b' is not a price" in run(saved).stderr
    assert run(saved).exit_code == 1
