"""Tables are whole in a pipe and fit on a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.cli.table import EXTRA, Column, Table, cut, folded
from drayman.questions.devices.ordering import natural

COLUMNS = (
    Column("NAME", may_be_cut=True),
    Column("EXTRA", spare=EXTRA),
    Column("NUMBER", is_number=True),
    Column("NOTE", empty="-"),
)
DEVICES = (
    Column("NODE", is_name=True),
    Column("DRIVER", may_be_cut=True),
    Column("DEVICE", is_name=True, stays=True),
    Column("STATE"),
    Column("HOLDER", is_name=True),
    Column("LEFT", spare=2),
)
NAMES = st.text(alphabet="ab-1", min_size=1, max_size=63)


def test_a_pipe_gets_everything() -> None:
    """However long a name is; a column with nothing in it is left out."""
    name = "a" * 100
    text = Table(COLUMNS, [(name, "more", "7", "-")]).plain()
    assert text.splitlines() == [f"{'NAME':<100}  EXTRA  NUMBER", f"{name}  more        7"]


def test_a_terminal_gets_what_fits() -> None:
    """First the columns that matter least are left out, then texts are cut in the middle."""
    table = Table(COLUMNS, [("node-1.rack-1.example.com", "more", "7", ("seen", "red"))])
    assert table.text(60).plain.splitlines()[0].split() == ["NAME", "EXTRA", "NUMBER", "NOTE"]
    assert table.text(40).plain.splitlines()[0].split() == ["NAME", "NUMBER", "NOTE"]
    assert table.text(30).plain.splitlines()[1] == "node-1.~mple.com       7  seen"


@given(st.text(alphabet="abc-123", min_size=1, max_size=90), st.integers(26, 120))
def test_no_line_is_wider_than_the_terminal(text: str, width: int) -> None:
    """A text that may be cut is as short as it has to be."""
    lines = Table(COLUMNS, [(text, "extra", "1", "-")]).text(width).plain.splitlines()
    assert max(map(len, lines)) <= width


def test_texts_that_differ_look_different() -> None:
    """A cut that would make two texts alike is not made: the column stays as wide as it takes to tell them apart."""
    rows = [(f"gpu{number}.vendor.example.com", "e", "7", "-") for number in range(3)]
    rows.append(("gpu0.vendor.elsewhere.example.com", "e", "7", "-"))
    for width in range(20, 60):
        lines = Table(COLUMNS, rows).text(width).plain.splitlines()
        assert len(set(lines)) == len(lines)


@given(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=4), st.integers(20, 120))
def test_names_are_whole_at_any_width(rows: list[tuple[str, ...]], width: int) -> None:
    """Each name of a row is in one piece, in the row or in a line of its own below it."""
    table = Table(
        DEVICES,
        [
            (node, "gpu.example.com", device, "used", f"default/{pod}", "7/8")
            for node, device, pod in rows
        ],
    )
    lines = table.text(width).plain.splitlines()
    words = [word for line in lines for word in line.split()]
    for node, device, pod in rows:
        assert {node, device, f"default/{pod}"} <= set(words)


def test_a_name_without_space_is_below_its_row() -> None:
    """Drivers are cut first; then holders leave the rows in which they have no space, then nodes leave all rows."""
    rows = [
        ("dgx-h100-mig-0", "compute-domain.nvidia.com", "channel-0", "free", "-", "-"),
        (
            "dgx-h100-mig-1",
            "gpu.nvidia.com",
            "gpu-0-mig-1g10gb-me-20-0",
            "used",
            "team-a/trainer-worker-17-x7k2p",
            "-",
        ),
    ]
    assert Table(DEVICES, rows).text(80).plain.splitlines() == [
        "NODE            DRIVER             DEVICE                    STATE  HOLDER  LEFT",
        "dgx-h100-mig-0  compute-~idia.com  channel-0                 free   -       -",
        "dgx-h100-mig-1  gpu.nvidia.com     gpu-0-mig-1g10gb-me-20-0  used           -",
        "    holder: team-a/trainer-worker-17-x7k2p",
    ]
    assert Table(DEVICES, rows).text(60).plain.splitlines() == [
        "DRIVER               DEVICE                    STATE  HOLDER",
        "compute-d~vidia.com  channel-0                 free   -",
        "    node: dgx-h100-mig-0",
        "gpu.nvidia.com       gpu-0-mig-1g10gb-me-20-0  used",
        "    node: dgx-h100-mig-1",
        "    holder: team-a/trainer-worker-17-x7k2p",
    ]


@given(st.text(max_size=60), st.integers(3, 40))
def test_a_cut_text_keeps_both_ends(text: str, width: int) -> None:
    """It is as wide as it may be, and names that are short enough stay as they are."""
    short = cut(text, width)
    assert len(short) == min(len(text), width)
    assert short == text or (text.startswith(short.split("~")[0]) and text.endswith(short[-1]))


def test_a_list_of_names_continues_on_the_next_line() -> None:
    """It is broken between names."""
    columns = (Column("DEVICE", is_name=True, stays=True), Column("CLAIMS", is_name=True))
    row = ("pci-0000-18-00-0", "default/serve-a,default/serve-b")
    assert Table(columns, [row]).text(36).plain.splitlines() == [
        "DEVICE            CLAIMS",
        "pci-0000-18-00-0  default/serve-a,",
        "                  default/serve-b",
    ]
    assert Table(columns, [row]).text(30).plain.splitlines() == [
        "DEVICE",
        "pci-0000-18-00-0",
        "    claims: default/serve-a,",
        "      default/serve-b",
    ]


def test_an_indented_name_stays_indented() -> None:
    """Queues are shown below their cohorts."""
    columns = (Column("QUEUE", is_name=True, stays=True), Column("USED", is_number=True))
    lines = Table(columns, [("all/", "6"), ("  team-a", "4")]).text(80).plain.splitlines()
    assert lines[1:] == ["all/         6", "  team-a     4"]


@given(st.lists(NAMES, min_size=1, max_size=6), st.integers(1, 40))
def test_a_folded_list_is_whole(names: list[str], width: int) -> None:
    """Its pieces make up the list, each has whole names, and none is too long unless a single name is."""
    text = ",".join(names)
    pieces = folded(text, width)
    assert "".join(pieces) == text
    assert [name for piece in pieces for name in piece.rstrip(",").split(",")] == names
    assert all(len(piece) <= width or "," not in piece[:-1] for piece in pieces)


def test_control_characters_do_not_reach_the_terminal() -> None:
    """Names from a cluster are spelt out."""
    assert "\x1b" not in Table(COLUMNS, [("\x1b[2J", "", "1", "-")]).plain()


def test_numbers_in_names_sort_as_numbers() -> None:
    """The tenth node comes after the second; a name without digits can stand beside one that begins with some."""
    assert sorted(["n-10", "n-2", "n", "7", "n-2-b"], key=natural) == ["7", "n", "n-2", "n-2-b", "n-10"]  # fmt: skip
