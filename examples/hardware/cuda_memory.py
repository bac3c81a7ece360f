"""What a program gets of the first GPU that it sees: whether it may have so many MiB of its memory at once.

    python cuda_memory.py 512 2048

It uses the library of NVIDIA's driver alone, so that it runs wherever a GPU does.
"""

from __future__ import annotations

import ctypes
import signal
import sys

OUT_OF_MEMORY = 2
LONGEST_S = 60
MEBIBYTE = 2**20


class CudaError(Exception):
    """A call that CUDA refuses."""


class Cuda:
    """The few functions that are needed."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: object) -> None:
        """Raises CudaError."""
        problem = self.status(name, *arguments)
        if problem:
            raise CudaError(f"{name}: {self.name_of(problem)}")

    def status(self, name: str, *arguments: object) -> int:
        return int(getattr(self._library, name)(*arguments))

    def name_of(self, problem: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(problem, ctypes.byref(text))
        return (text.value or str(problem).encode()).decode()


def describe(cuda: Cuda, sizes: list[int]) -> str:
    """The GPU, and which of the sizes it gives. Raises CudaError."""
    device, context, name = ctypes.c_int(), ctypes.c_void_p(), ctypes.create_string_buffer(96)
    cuda.call("cuDeviceGet", ctypes.byref(device), 0)
    cuda.call("cuDeviceGetName", name, len(name), device)
    cuda.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    cuda.call("cuCtxSetCurrent", context)
    found = []
    for size in sizes:
        place = ctypes.c_uint64()
        problem = cuda.status(
            "cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size * MEBIBYTE)
        )
        if problem == OUT_OF_MEMORY:
            found.append(f"{size} MiB refused")
            continue
        if problem:
            raise CudaError(f"cuMemAlloc: {cuda.name_of(problem)}")
        cuda.call("cuMemFree_v2", place)
        found.append(f"{size} MiB allocated")
    cuda.call("cuDevicePrimaryCtxRelease_v2", device)
    return f"{name.value.decode()}: {', '.join(found)}"


def main() -> None:
    signal.alarm(LONGEST_S)  # a GPU that hangs must not keep whoever asks
    try:
        print(describe(Cuda(), [int(each) for each in sys.argv[1:]]))
    except (OSError, CudaError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
