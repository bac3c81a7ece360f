"""What commands write, through pipes that outlive neither them nor those who read them.

A process with pipes of the event loop has not ended for it as long as anybody has the other end, also somebody whom the command has left in
the background. So the pipes are made here, and who waits for the process waits for nothing else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import FileIO


@dataclass(frozen=True, slots=True)
class Pipe:
    source: asyncio.StreamReader
    far: FileIO
    """Is written to, by the process that gets it."""


@asynccontextmanager
async def reading_pipe() -> AsyncIterator[Pipe]:
    """A pipe that is read until the context is left. Its far end is closed by `started`, if it comes to that."""
    near, far = os.pipe()
    source = asyncio.StreamReader()
    with FileIO(far, "w") as writing:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(source), FileIO(near)
        )
        try:
            yield Pipe(source, writing)
        finally:
            transport.close()


async def started(
    argv: Sequence[str], env: Mapping[str, str], out: Pipe, err: Pipe, *, stdin: int
) -> asyncio.subprocess.Process:
    """A process that leads a session and has the far ends of pipes, maybe of the same one. Raises OSError."""
    try:
        return await asyncio.create_subprocess_exec(
            *argv, env=env, stdin=stdin, stdout=out.far, stderr=err.far, start_new_session=True
        )
    finally:
        out.far.close()
        err.far.close()
