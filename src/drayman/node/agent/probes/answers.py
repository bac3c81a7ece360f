"""Who is asked by a probe, and what may come back."""

from __future__ import annotations

import os
from dataclasses import dataclass

from drayman.node.agent.probes.container_health import Outcome
from drayman.node.agent.processes.attempts import Attempt
from drayman.node.agent.spec import Container


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: Outcome
    text: str = ""
    """Why it is no success; of a success, what is odd about it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A container that runs, and where its servers are expected."""

    container: Container
    attempt: Attempt
    pod_ip: str

    def port(self, port: int | str) -> int:
        """A port by its number or name. Raises PortError."""
        if isinstance(port, int):
            return port
        for each in self.container.ports:
            if each.name == port:
                return each.container_port
        raise PortError(f"container {self.container.name} has no port {port}")


class PortError(Exception):
    """There is no port of that name."""


def address(host: str, port: int) -> str:
    """As it stands in URLs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def why(error: OSError) -> str:
    """What the system says about a connection that failed. The texts of asyncio have addresses in them, which are known."""
    return os.strerror(error.errno).lower() if error.errno else str(error)
