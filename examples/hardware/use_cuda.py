"""What a program gets of the first GPU that it sees: how many MiB of its memory, piece by piece, and how fast it writes the first.

    python use_cuda.py 512 2048 --seconds 5

It uses the library of NVIDIA's driver alone, so that it runs wherever a GPU does.
"""

from __future__ import annotations

import argparse
import ctypes
import signal
from time import monotonic

OUT_OF_MEMORY = 2
LONGEST_S = 60
MEBIBYTE = 2**20
ROUNDS = 20
"""Writes that are begun together: each takes the GPU about 0.1 ms."""


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


class Gpu:
    """The first one, ready to be used. Raises CudaError."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        device, context, name = ctypes.c_int(), ctypes.c_void_p(), ctypes.create_string_buffer(96)
        cuda.call("cuDeviceGet", ctypes.byref(device), 0)
        cuda.call("cuDeviceGetName", name, len(name), device)
        cuda.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        cuda.call("cuCtxSetCurrent", context)
        self.name = name.value.decode()

    def allocate(self, mebibytes: int) -> ctypes.c_uint64 | None:
        """Memory that is as large; None if that is refused. Raises CudaError."""
        place, size = ctypes.c_uint64(), ctypes.c_size_t(mebibytes * MEBIBYTE)
        problem = self._cuda.status("cuMemAlloc_v2", ctypes.byref(place), size)
        if problem == OUT_OF_MEMORY:
            return None
        if problem:
            raise CudaError(f"cuMemAlloc: {self._cuda.name_of(problem)}")
        return place

    def write(self, place: ctypes.c_uint64, mebibytes: int, seconds: float) -> str:
        """Into the same memory, over and over: how fast, and when, by the clock that all programs of a machine share."""
        size, rounds, begin = ctypes.c_size_t(mebibytes * MEBIBYTE), 0, monotonic()
        while (now := monotonic()) < begin + seconds:
            for _ in range(ROUNDS):
                self._cuda.call("cuMemsetD8_v2", place, ctypes.c_ubyte(rounds % 256), size)
                rounds += 1
            self._cuda.call("cuCtxSynchronize")
        rate = rounds * mebibytes / 1024 / (now - begin)
        return f"{rate:.0f} GiB/s written from {begin:.1f} s to {now:.1f} s"


def describe(gpu: Gpu, sizes: list[int], seconds: float) -> str:
    """The GPU, how much memory it gives at once, and how fast the first of it is written. Raises CudaError."""
    places = [gpu.allocate(size) for size in sizes]
    found = [
        f"{size} MiB {'refused' if place is None else 'allocated'}"
        for size, place in zip(sizes, places, strict=True)
    ]
    if seconds and places[0] is not None:
        found.append(gpu.write(places[0], sizes[0], seconds))
    return f"{gpu.name}: {', '.join(found)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Say what this process gets of its first GPU.")
    parser.add_argument(
        "sizes", metavar="MIB", nargs="+", type=int, help="pieces of memory to ask for"
    )
    parser.add_argument("--seconds", type=float, default=0, help="write into the first piece")
    options = parser.parse_args()
    signal.alarm(LONGEST_S)  # a GPU that hangs must not keep whoever asks
    try:
        print(describe(Gpu(Cuda()), options.sizes, options.seconds))
    except (OSError, CudaError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
