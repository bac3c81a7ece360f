"""Explanations fit where they are shown, say the answer first, and are safe to show."""

from __future__ import annotations

import json
import shlex
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from cli.explain.examples import ALL, LONGEST, MISSPELT, NAMESPACE, NOW, RUNS, WAITS
from drayman.cli.explain.drawing import STYLES, Drawing
from drayman.cli.explain.layout import age, broken, devices_listed, shell
from drayman.explain.answer import DriverStep, Explanation, Holder
from drayman.reasons.reason import Headline, Outlook, Reason


def drawn(explanation: Explanation, width: int, *, terminal: bool = False) -> str:
    file = StringIO()
    out = Console(file=file, width=width, force_terminal=terminal, highlight=False)
    out.print(Drawing(explanation, NOW))
    return file.getvalue()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("width", [80, 120, 200])
def test_it_fits(name: str, width: int) -> None:
    """No line is wider than the terminal, unless a name alone does not fit into it, and none ends in blanks."""
    lines = drawn(ALL[name], width).splitlines()
    assert all(len(line) <= width or max(map(len, line.split())) > width - 30 for line in lines)
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("name", ALL)
def test_the_answer_comes_first(name: str) -> None:
    """The first line begins with the reason and its kind."""
    assert drawn(ALL[name], 80).startswith(f"{ALL[name].headline.reason.title}: ")


def test_everything_is_told() -> None:
    """What the explanation holds is there to read."""
    text = " ".join(drawn(WAITS, 200).split())
    for words in (
        "pod team-a/trainer-0",
        "you may not list it: outside of namespace team-a: pods, jobs.batch",
        "all nodes 14",
        "node fit 12 (1 cordoned, 1 too little cpu)",
        "claim gpus, request gpu: 4 wanted",
        "class 12 96 gpu.nvidia.com",
        "free 2 5 (91 in use)",
        "nearest miss (dgx-h100-3)",
        "gpu-2, gpu-3: held by team-b/eval-0",
        "team-b/eval-0 (job/eval) gpu-2, gpu-3 of dgx-h100-3 0 3h20m",
        "hidden from you",
        "1. lower the count of request gpu to 3 then on dgx-h100-3 with gpu-0, gpu-1, gpu-5",
        "drayman device untaint dgx-h100-3/gpu-4 example.com/hot:NoSchedule",
        "freeing pods was tried on 32 of 120 nodes only",
        "cluster at resource versions 4502 to 4790",
    ):
        assert words in text


def test_what_is_to_be_done_about_drivers_is_told_with_its_command() -> None:
    """Instead of saying that nothing was found that would help."""
    command = "drayman driver classes gpu.nvidia.com | kubectl apply -f -"
    step = DriverStep(sentence="Class gpu.nvidia.com comes with driver x:", command=command)
    headline = Headline.of(Reason.CLASS_MISSING, "device class gpu.nvidia.com does not exist.")
    found = Explanation(kind="Pod", name="p", headline=headline, driver_steps=(step,))
    lines = [line.strip() for line in drawn(found, 80).splitlines()]
    assert lines[lines.index("what would help") + 1 :][:2] == [step.sentence, command]
    both = drawn(replace(found, remedies=WAITS.remedies), 80)
    assert "what would help (those with numbers were tried by a search)" in both


def test_a_misspelt_constraint_is_that_of_its_claim() -> None:
    """It is written once for all requests, so none is named."""
    of_claim = [replace(each, request="") for each in MISSPELT.spelling]
    text = drawn(replace(MISSPELT, spelling=tuple(of_claim)), 120)
    assert "claim gpus: no device has the attribute gpu.nvidia.com/prodcutName" in text


def test_a_misspelt_attribute_is_told_with_its_neighbours() -> None:
    """The name, where it stands, the names like it, and on how many devices they are."""
    text = drawn(MISSPELT, 120)
    assert "no device has the attribute gpu.nvidia.com/prodcutName" in text
    assert "gpu.nvidia.com/productName is on 16 devices" in text


def test_a_wrong_value_is_told_with_those_that_there_are() -> None:
    """What is wanted of what, and the values that devices have, with their numbers."""
    text = " ".join(drawn(MISSPELT, 120).split())
    assert "no device that would do otherwise has gpu.nvidia.com/profile == '5g.50gb'" in text
    assert "4g.40gb is on 8 devices 7g.80gb is on 1 device and 3 more values" in text


def test_holders_of_one_workload_are_one_line() -> None:
    """Its name, kind and the number of its pods."""
    holder = Holder(
        devices=("d/p/0", "d/p/1"),
        namespace="team-a",
        pods=("sweep-0", "sweep-1"),
        workload="Job/sweep",
        count=2,
    )
    assert "team-a/sweep (Job, 2 pods)" in drawn(replace(WAITS, holders=(holder,)), 200)


def test_an_overview_counts_what_it_leaves_out() -> None:
    """Each reason with its number, of many objects the first ones, and how to go on."""
    text = drawn(NAMESPACE, 80)
    assert "DevicesInUse (not now): 25" in text
    assert "job/sweep (25 pods)" in text
    assert "NodesFull (not now): 30" in text
    assert "pod/pod-19" in text
    assert "pod/pod-20" not in text
    assert "and 10 more" in text
    assert "drayman explain job/sweep -n default" in text


def test_a_holder_of_devices_in_several_pools_has_a_line_for_each() -> None:
    """No line begins with the sign between two pools, however wide the terminal is."""
    mig, whole = "gpu.nvidia.com/dgx-h100-mig-0", "gpu.nvidia.com/dgx-h100-1"
    devices = tuple(f"{pool}/gpu-{number}" for pool in (mig, whole) for number in range(4, 8))
    holder = Holder(
        devices=devices, namespace="default", workload="Deployment/web", count=2, pods=("a", "b")
    )
    held = replace(WAITS, holders=(holder,))
    for width in range(60, 140):
        lines = [line.strip() for line in drawn(held, width).splitlines()]
        assert not [line for line in lines if line.startswith(";")]


def part(kind: str, name: str, reason: Reason, *, count: int = 1) -> Explanation:
    told = Headline.of(reason, "It waits.")
    return Explanation(kind=kind, namespace="team-a", name=name, headline=told, count=count)


def test_an_overview_says_what_keeps_pods_from_starting() -> None:
    """After what the node says, as a sentence."""
    stuck = part("Pod", "p", Reason.NOT_STARTED)
    stuck = replace(stuck, refused_configs=("claim c: driver d refuses it",))
    text = drawn(replace(NAMESPACE, parts=(stuck,)), 120)
    assert "It waits. Claim c: driver d refuses it." in text


def test_pods_are_told_of_what_has_some() -> None:
    """A workload that has no pods yet is not said to have one."""
    empty = part("Deployment", "empty", Reason.NO_PODS)
    sweep = part("Job", "sweep", Reason.DEVICES_IN_USE, count=3)
    text = drawn(replace(NAMESPACE, parts=(sweep, empty)), 80)
    assert "job/sweep (3 pods)" in text
    assert "deployment/empty " in text
    assert "pod)" not in text


@pytest.mark.parametrize(
    ("parts", "command"),
    [
        ((("RayCluster", "rays"), ("Job", "sweep")), "drayman explain job/sweep -n team-a"),
        ((("RayCluster", "rays"),), None),
    ],
    ids=["the first that can be", "none can be"],
)
def test_only_what_can_be_explained_is_to_be_asked_about(
    parts: tuple[tuple[str, str], ...], command: str | None
) -> None:
    """Anything may make pods; the command that is proposed is one that works."""
    waiting = tuple(part(kind, name, Reason.DEVICES_IN_USE) for kind, name in parts)
    text = drawn(replace(NAMESPACE, parts=waiting), 80)
    assert "raycluster/rays" in text
    assert "drayman explain raycluster" not in text
    assert command is None or command in text


def test_what_runs_is_told_with_the_alternatives() -> None:
    """The chosen node is marked; only scores in which nodes differ have a column; nothing is to be remedied."""
    text = drawn(RUNS, 80)
    assert "*  dgx-h100-0" in text
    assert "PCIe" in text
    assert "split roots: PCIe roots with some devices taken and some left" in text
    assert "balance: how much CPU and memory is left there, and how evenly; more is better" in text
    assert "lost" not in text
    assert "what would help" not in text


def test_nothing_in_it_steers_the_terminal() -> None:
    """Control characters are spelt out and markup is shown as it is."""
    text = drawn(LONGEST, 80)
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text
    assert "[bold]markup[/]" in text


@pytest.mark.parametrize("kind", [None, *Outlook])
def test_colours_show_on_dark_and_light(kind: Outlook | None) -> None:
    """Only named colours of the terminal, and neither black nor white."""
    words = STYLES[kind].split()
    assert set(words) <= {"bold", "green", "red", "magenta", "cyan"}


def test_colour_is_for_terminals() -> None:
    """The same words with and without."""
    coloured = drawn(WAITS, 80, terminal=True)
    assert "\x1b[1;35mDevicesInUse (not now)" in coloured
    assert "\x1b" not in drawn(WAITS, 80)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (3_725, "1h2m"), (90_061, "1d1h"), (7_200, "2h")],
)
def test_ages(seconds: int, expected: str) -> None:
    """The two largest units, as kubectl has it."""
    assert age("2026-09-21T14:13:20Z", NOW + seconds) == expected


@pytest.mark.parametrize(
    ("devices", "node", "expected"),
    [
        (["d/n/a", "d/n/b"], "n", "a, b"),
        (["d/n/a", "d/n/b"], "", "a, b of d/n"),
        (["d/n/a", "e/n/b"], "n", "a, b"),
        (["d/n/a", "e/n/a"], "n", "a of d/n; a of e/n"),
        (["d/pool/a", "d/n/b"], "n", "a of d/pool; b"),
        (
            [f"d/n/{number}" for number in range(14)],
            "",
            "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 of d/n and 2 more",
        ),
    ],
    ids=["of-the-node", "anywhere", "two-drivers", "same-name", "another-pool", "many"],
)
def test_devices_in_few_words(devices: list[str], node: str, expected: str) -> None:
    """Driver and pool once, and not at all where the node says it; never so that two look the same."""
    assert devices_listed(devices, node) == expected


def test_most_lists_are_of_one_version() -> None:
    """Which is told once, with what differs."""
    evidence = {"nodes": "7", "pods": "7", "pod": "5"}
    assert "read: cluster at resource version 7, pod at 5" in drawn(
        replace(RUNS, evidence=evidence), 80
    )
    planned = {"nodes": "7", "pods": "7", "pod": ""}
    text = drawn(replace(RUNS, evidence=planned), 80)
    assert text.rstrip().endswith("read: cluster at resource version 7")


def test_lists_of_many_versions_are_told_on_one_line() -> None:
    """The first and the last of them, by number; the data has each."""
    evidence = {f"resource-{number}": str(99_999_990 + number) for number in range(20)}
    text = drawn(replace(RUNS, evidence={**evidence, "pod": "99999980"}), 80)
    last = text.rstrip().splitlines()[-1]
    assert last == "read: cluster at resource versions 99999990 to 100000009, pod at 99999980"


def test_an_unknown_age_is_not_told() -> None:
    """Where nobody said since when."""
    assert age("", NOW) == ""


def read_by_a_shell(command: str, width: int) -> list[str]:
    text = "\n".join(str(line) for line in shell(command, 3, width))
    return shlex.split(text.replace("\\\n", ""))


WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1).filter(
    lambda word: word[0] not in "[{"
)


@given(st.lists(WORDS, min_size=1), st.integers(20, 120))
def test_commands_can_be_copied(words: list[str], width: int) -> None:
    """However a command is broken over lines, a shell reads the same words."""
    assert read_by_a_shell(shlex.join(words), width) == words


JSON = st.recursive(
    st.integers() | st.text(st.characters(min_codepoint=32, max_codepoint=126)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc/"), inner),
)


@given(JSON, st.integers(20, 120))
def test_json_in_commands_can_be_copied(value: object, width: int) -> None:
    """However a patch is broken over lines, it says the same."""
    written = json.dumps([value], separators=(",", ":"))
    *_, patch = read_by_a_shell(f"kubectl patch pod x -p {shlex.quote(written)}", width)
    assert json.loads(patch) == [value]


def test_long_patches_fit() -> None:
    """A patch of short parts stays within the terminal."""
    patch = json.dumps([{"op": "remove", "path": f"/spec/{number}"} for number in range(9)])
    lines = [str(line) for line in shell(f"kubectl patch pod x -p '{patch}'", 3, 80)]
    assert len(lines) > 3
    assert max(map(len, lines)) <= 80


@given(st.text(st.sampled_from("ab.([)]'\" &"), max_size=60), st.integers(5, 40))
def test_breaking_an_expression_keeps_it(expression: str, room: int) -> None:
    """Nothing is lost or added but blanks."""
    assert "".join(broken(expression, room).split()) == "".join(expression.split())
