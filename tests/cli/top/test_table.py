"""Tables are whole in a pipe and fit on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.cli.top.table import EXTRA, Column, Table, cut, cut_list, folded
from drayman.questions.devices.ordering import natural

COLUMNS = (
    Column("NAME", may_be_cut=True),
    Column("EXTRA", spare=EXTRA),
    Column("NUMBER", is_number=True),
    Column("NOTE", empty="-"),
)


def test_a_pipe_gets_everything() -> None:
    """However long a name is; a column with nothing in it is left out."""
    name = "a" * 100
    text = Table(COLUMNS, [(name, "more", "7", "-")]).plain()
    assert text.splitlines() == [f"{'NAME':<100}  EXTRA  NUMBER", f"{name}  more        7"]


def test_a_terminal_gets_what_fits() -> None:
    """First the columns that matter least go, then names are cut in the middle."""
    table = Table(COLUMNS, [("node-1.rack-1.example.com", "more", "7", ("seen", "red"))])
    assert table.text(60).plain.splitlines()[0].split() == ["NAME", "EXTRA", "NUMBER", "NOTE"]
    assert table.text(40).plain.splitlines()[0].split() == ["NAME", "NUMBER", "NOTE"]
    assert table.text(30).plain.splitlines()[1] == "node-1.~mple.com       7  seen"


@given(
    st.lists(st.text(alphabet="abc-123", min_size=1, max_size=90), max_size=4), st.integers(26, 120)
)
def test_no_line_is_wider_than_the_terminal(names: list[str], width: int) -> None:
    """Unless what cannot be cut is wider by itself."""
    table = Table(COLUMNS, [(name, "extra", "1", "-") for name in names])
    assert max(len(line) for line in table.text(width).plain.splitlines()) <= width


@given(st.text(max_size=60), st.integers(3, 40))
def test_a_cut_text_keeps_both_ends(text: str, width: int) -> None:
    """It is as wide as it may be, and names that are short enough stay as they are."""
    short = cut(text, width)
    assert len(short) == min(len(text), width)
    assert short == text or (text.startswith(short.split("~")[0]) and text.endswith(short[-1]))


@pytest.mark.parametrize(
    ("names", "width", "shown"),
    [
        ("default/serve-a,default/serve-b", 31, "default/serve-a,default/serve-b"),
        ("default/serve-a,default/serve-b", 18, "default/serve-a,+1"),
        ("default/serve-a,default/serve-b", 13, "defa~rve-a,+1"),
        ("default/serve-a,default/serve-b,default/serve-c,+7", 20, "default/serve-a,+9"),
        ("default/serve-a", 9, "defa~ve-a"),
        ("a" * 9 + ",b" * 1000, 6, "aa~b,b"),
    ],
)
def test_a_list_that_is_cut_has_its_first_name(names: str, width: int, shown: str) -> None:
    """Shortened by itself, and how many others there are; a list that fits stays whole."""
    assert cut_list(names, width) == shown


@given(st.text(alphabet="ab/,+1", max_size=60), st.integers(3, 40))
def test_a_list_that_is_cut_has_room(text: str, width: int) -> None:
    """Whatever its names are."""
    assert len(cut_list(text, width)) <= width


FOLDING = (
    Column("DRIVER", may_be_cut=True),
    Column("DEVICE", may_be_cut=True, matters=True),
    Column("CLAIMS", folds=True),
)


def test_names_that_people_want_whole_go_on_in_the_next_line() -> None:
    """What people type stays as it is, a list is broken between names, and a name that has no room is below its row."""
    row = ("compute-domain.example.com", "pci-0000-18-00-0", "default/serve-a,default/serve-b")
    assert Table(FOLDING, [row]).text(52).plain.splitlines() == [
        "DRIVER            DEVICE            CLAIMS",
        "compute~mple.com  pci-0000-18-00-0  default/serve-a,",
        "                                    default/serve-b",
    ]
    row = ("compute-domain.example.com", "pci-0000-18-00-0", "default/trainer-devices-rl4kt")
    assert Table(FOLDING, [row]).text(52).plain.splitlines() == [
        "DRIVER                      DEVICE            CLAIMS",
        "compute-domain.example.com  pci-0000-18-00-0",
        "    claims: default/trainer-devices-rl4kt",
    ]


SPARE = (
    Column("NODE", may_be_cut=True),
    Column("DEVICE", may_be_cut=True, matters=True),
    Column("HOLDER", may_be_cut=True, spare=1),
    Column("LEFT", spare=2),
)


def test_columns_are_left_out_before_names_become_illegible() -> None:
    """The least important one first; what matters is cut last."""
    table = Table(SPARE, [("example-shared-0", "gpu-0-mig-1g10gb-19-0", "default/trainer", "8/8")])
    assert table.text(70).plain.splitlines()[0].split() == ["NODE", "DEVICE", "HOLDER", "LEFT"]
    assert table.text(50).plain.splitlines()[0].split() == ["NODE", "DEVICE", "HOLDER"]
    assert table.text(50).plain.splitlines()[1].split()[1] == "gpu-0-mig-1g10gb-19-0"
    assert table.text(40).plain.splitlines()[0].split() == ["NODE", "DEVICE"]
    assert table.text(40).plain.splitlines()[1].split()[1] == "gpu-0-mig-1g10gb-19-0"


@given(st.tuples(*[st.text(alphabet="ab-/,1", min_size=1, max_size=70)] * 3), st.integers(22, 120))
def test_no_folded_line_is_wider_than_the_terminal(row: tuple[str, ...], width: int) -> None:
    """However long the names are."""
    lines = Table(FOLDING, [row]).text(width).plain.splitlines()
    assert max(map(len, lines)) <= width


@given(st.text(alphabet="ab-/,:=.1", max_size=60), st.integers(1, 40))
def test_a_folded_text_is_whole(text: str, width: int) -> None:
    """Its pieces make up the text, and none is too long."""
    pieces = folded(text, width)
    assert "".join(pieces) == text
    assert all(len(piece) <= width for piece in pieces)


def test_control_characters_do_not_reach_the_terminal() -> None:
    """Names from a cluster are spelt out."""
    assert "\x1b" not in Table(COLUMNS, [("\x1b[2J", "", "1", "-")]).plain()


def test_numbers_in_names_sort_as_numbers() -> None:
    """The tenth node comes after the second; a name without digits can stand beside one that begins with some."""
    assert sorted(["n-10", "n-2", "n", "7", "n-2-b"], key=natural) == ["7", "n", "n-2", "n-2-b", "n-10"]  # fmt: skip
