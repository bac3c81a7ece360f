"""The drawing of a matrix."""

from __future__ import annotations

from drayman.cli.matrix import Drawing
from drayman.drivers.profiles import dgx_h100
from drayman.topology import Matrix, matrix

NAMES = [f"GPU{i}" for i in range(8)] + [f"NIC{i}" for i in range(8)]


def dgx() -> Matrix:
    slices = dgx_h100("n").slices
    return matrix(
        (each.spec.driver, device) for each in slices for device in each.spec.devices or ()
    )


def drawn(width: int, marks: dict[int, int] | None = None) -> list[str]:
    return [line.plain for line in Drawing(dgx(), NAMES, marks or {}).lines(width)]


def test_a_wide_terminal_shows_the_matrix_whole() -> None:
    """One panel with a row and a column for every device."""
    lines = drawn(200)
    assert lines[0].split() == [*NAMES, "NUMA"]
    assert lines[1].split()[:4] == ["GPU0", "X", "NV18", "NV18"]
    assert len(lines[1].split()) == 18


def test_80_columns_show_it_in_even_panels_without_repeating() -> None:
    """GPUs first, against all; then NICs against each other. No line is wider than the terminal."""
    lines = drawn(80)
    headers = [line.split() for line in lines if line.endswith("NUMA")]
    assert headers == [[*NAMES[:8], "NUMA"], [*NAMES[8:], "NUMA"]]
    assert sum(line.startswith("  NIC7") for line in lines) == 2
    assert sum(line.startswith("  GPU7") for line in lines) == 1
    assert max(map(len, lines)) <= 80


def test_a_tiny_terminal_still_gets_every_cell() -> None:
    """A panel has at least one column."""
    assert any(line.split() == ["NIC7", "NUMA"] for line in drawn(10))


def test_marks_show_in_text() -> None:
    """The number of the claim before its devices, brackets around what joins two of one claim."""
    lines = drawn(200, {0: 1, 8: 1, 4: 2})
    assert lines[1].startswith("1 GPU0")
    assert "[PXB]" in lines[1]
    assert lines[5].startswith("2 GPU4")
    assert "[" not in lines[5]
    assert lines[-1] == "  1 2  who holds it, by number; [ ] joins devices of one holder"


def test_an_empty_matrix_draws() -> None:
    """A node without devices has a matrix without rows."""
    assert [line.plain for line in Drawing(Matrix(()), [], {}).lines(80)]
