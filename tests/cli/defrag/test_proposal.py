"""`drayman defrag`: what it prints, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from drayman.api.core import Pod
from drayman.cli.main import cli
from drayman.simulate.snapshot import snapshot
from simulate.cluster import pod
from simulate.moving.fragments import fragmented, group, member, running

PRESENT = [running("x", "node-a", [0, 1]), running("y", "node-b", [0])]


def saved(folder: Path, waiting: Sequence[Pod], *, small: bool = False) -> None:
    """A snapshot of nodes that are partly in use, with pods that wait."""
    sizes = {"node-a": 4, "node-b": 4}
    present = [*PRESENT, running("z", "node-a", [2, 3])] if small else PRESENT
    world = fragmented(sizes, present, waiting, pod_groups=(group("ring", 1),))
    (folder / "cluster.yaml").write_bytes(b"".join(b"---\n%b\n" % t for t in snapshot(world)))


def asked(*words: str) -> Result:
    return CliRunner().invoke(cli, ["defrag", "--snapshot", "cluster.yaml", *words])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_moves_are_listed(folder: Path) -> None:
    """First the answer, then each step with pod, owner and both places, what gets room, and what it costs, within 80 columns."""
    saved(folder, [pod("big", "four")])
    result = asked()
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "Fits: moving 1 pod makes room for pod default/big."
    assert any(
        line.split() == ["1", "y", "Job/y-owner", "node-b:", "gpu-0", "node-a:", "gpu-2"]
        for line in lines
    ), result.output
    assert any(line.split()[:2] == ["big", "node-b:"] for line in lines)
    assert "1 pod moved; 46m40s of device time lost" in result.output
    assert max(map(len, lines)) <= 80


def test_the_same_as_data(folder: Path) -> None:
    """`-o json` has steps and places."""
    saved(folder, [pod("big", "four")])
    found = json.loads(asked("--for", "pod/big", "-o", "json").output)
    ((room,),) = (found["rooms"],)
    assert room["steps"][0]["pods"][0]["after"]["node"] == "node-a"
    assert found["cost"]["pods"] == 1


def test_why_not(folder: Path) -> None:
    """Where no moves make room, the status is 1, and it is said why, and why the pod waits."""
    saved(folder, [pod("big", "four")], small=True)
    result = asked()
    assert result.exit_code == 1
    assert result.output.startswith("Does not fit: no moves make room.")
    assert "pods that would have to move have no other place" in result.output
    assert "Fragmented" in result.output or "DevicesInUse" in result.output


def test_room_for_one_of_two(folder: Path) -> None:
    """What the first one gets is not there for the second."""
    saved(folder, [pod("big", "four"), pod("too", "four")])
    result = asked()
    assert result.exit_code == 1
    assert "makes room for pod default/big; 1 of 2 get none" in " ".join(result.output.split())
    assert "what gets none (beside what gets room)\n  pod default/too: " in result.output


def test_nothing_to_do(folder: Path) -> None:
    """If nothing waits, or what waits has room, nothing is proposed."""
    saved(folder, [])
    assert asked().output == "Nothing to do: no pods wait for devices.\n"
    saved(folder, [pod("small", "one")])
    result = asked("--for", "pod/small")
    assert (result.exit_code, result.output.splitlines()[0]) == (
        0,
        "Nothing to do: no moves are needed.",
    )
    assert asked("--for", "pod/x").output == "Nothing to do: pod/x has no pods that wait.\n"


def test_room_for_a_group(folder: Path) -> None:
    """A group is named as for kubectl, and gets room for as many pods as have to start together."""
    saved(folder, [member("m-0", "ring", "four"), pod("other", "four")])
    result = asked("--for", "podgroup/ring", "-o", "json")
    assert [room["name"] for room in json.loads(result.output)["rooms"]] == [
        "pod group default/ring"
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--for", "pod/none"), "there is no pod/none", id="no such pod"),
        pytest.param(("--for", "node/node-a"), "room is made for pods", id="not pods"),
        pytest.param(("--for", "big"), "Say its kind too: pod/big", id="no kind"),
        pytest.param(("--max-moves", "0"), "0 is not in the range", id="no moves"),
    ],
)
def test_what_makes_no_sense(folder: Path, words: tuple[str, ...], said: str) -> None:
    """Errors name what is wrong, and end with 2: 1 would be an answer."""
    saved(folder, [pod("big", "four")])
    result = asked(*words)
    assert result.exit_code == 2
    assert said in result.output
