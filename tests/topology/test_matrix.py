"""The matrix of a node."""

from __future__ import annotations

from drayman.api.resource import Device
from drayman.drivers.profiles import dgx_h100
from drayman.topology import DeviceKind, Matrix, matrix


def dgx() -> Matrix:
    slices = dgx_h100("node").slices
    return matrix(
        (each.spec.driver, device) for each in slices for device in each.spec.devices or ()
    )


def codes(of: Matrix, row: int) -> list[str]:
    return [link.code for link in of.rows[row].links]


def test_matrix_of_a_dgx_h100_is_the_one_nvidia_smi_prints() -> None:
    """GPUs are joined by NVLink; each has one NIC behind its own bridges, three on its NUMA node, four beyond it."""
    assert codes(dgx(), 0) == ["X", *["NV18"] * 7, "PXB", *["NODE"] * 3, *["SYS"] * 4]
    assert codes(dgx(), 5) == [
        *["NV18"] * 5,
        "X",
        *["NV18"] * 2,
        *["SYS"] * 4,
        "NODE",
        "PXB",
        "NODE",
        "NODE",
    ]
    assert codes(dgx(), 8) == ["PXB", *["NODE"] * 3, *["SYS"] * 4, "X", *["NODE"] * 3, *["SYS"] * 4]


def test_matrix_is_symmetric() -> None:
    """The distance from A to B is the distance from B to A."""
    rows = dgx().rows
    for i, row in enumerate(rows):
        assert [link.code for link in row.links] == [other.links[i].code for other in rows]


def test_gpus_come_before_nics_whatever_the_order_of_slices() -> None:
    """Rows are sorted by kind and keep the drivers' order within it."""
    nic, gpu = ("dra.net", Device(name="n")), ("gpu.nvidia.com", Device(name="g"))
    assert [row.kind for row in matrix([nic, gpu, nic]).rows] == [
        DeviceKind.GPU,
        DeviceKind.NIC,
        DeviceKind.NIC,
    ]


def test_legend_explains_the_codes_that_occur_and_no_others() -> None:
    """A reader sees each code of this node once, from near to far."""
    assert [code for code, _ in dgx().legend] == ["X", "NV#", "PXB", "NODE", "SYS"]


def test_devices_without_attributes_have_unknown_distances() -> None:
    """Nothing is guessed; a device is still itself."""
    bare = [("a.example.com", Device(name=name)) for name in ("one", "two")]
    assert codes(matrix(bare), 0) == ["X", "?"]


def test_matrix_of_nothing_is_empty() -> None:
    """A node without devices has no rows and an empty legend."""
    assert matrix([]) == Matrix(())
    assert matrix([]).legend == ()
