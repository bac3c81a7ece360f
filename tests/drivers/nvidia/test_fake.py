"""The library that stands in for NVML is like it."""

from __future__ import annotations

import ctypes
import inspect

import pytest

from drayman.testing import FakeNvml
from drayman.testing.nvml_values import InstanceInfo, ProfileInfo


def test_the_fake_takes_what_the_library_takes() -> None:
    """Every function by its name, with as many arguments; where the package is installed."""
    library = pytest.importorskip("pynvml")
    for name, mine in inspect.getmembers(FakeNvml, inspect.isfunction):
        if name.startswith("nvml"):
            real = inspect.signature(getattr(library, name)).parameters
            own = list(inspect.signature(mine).parameters)[1:]
            assert own == list(real), name


STRUCTURES = {
    "c_nvmlGpuInstancePlacement_t": FakeNvml.c_nvmlGpuInstancePlacement_t,
    "c_nvmlGpuInstanceProfileInfo_v2_t": ProfileInfo,
    "c_nvmlGpuInstanceInfo_t": InstanceInfo,
    "c_nvmlGpuFabricInfoV_t": FakeNvml.c_nvmlGpuFabricInfoV_t,
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_fake_has_the_structures_of_the_library(name: str) -> None:
    """Field by field."""
    library = pytest.importorskip("pynvml")
    real = [field for field, *_ in getattr(library, name)._fields_]
    assert [field for field, *_ in STRUCTURES[name]._fields_] == real


def test_the_fake_has_the_errors_and_numbers_of_the_library() -> None:
    """The same classes for the same numbers, with the same texts; and handles of instances are pointers."""
    library = pytest.importorskip("pynvml")
    for name, mine in inspect.getmembers(FakeNvml):
        if name.startswith("NVMLError_"):
            value = mine().value
            assert type(library.NVMLError(value)).__name__ == name
            assert str(library.NVMLError(value)) == str(FakeNvml.NVMLError(value))
        elif name.startswith(("NVML_", "nvmlEventType")):
            assert mine == getattr(library, name), name
    for each in (library, FakeNvml):
        assert issubclass(each.c_nvmlGpuInstance_t, ctypes._Pointer)
