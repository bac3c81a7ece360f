"""A driver in a process of its own, which stops in the middle of preparing for as long as a file is there."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import click

from drayman.drivers.kit import Claim, Device, Driver, Prepared, PreparedDevice, main


class Stuck(Driver):
    name = "stuck.example.com"
    options = (click.Option(["--log"]), click.Option(["--hold"]))

    def __init__(self, node: str, log: str, hold: str) -> None:
        super().__init__(node)
        self._log = Path(log)
        self._hold = Path(hold)
        self._say("serving")

    def _say(self, line: str) -> None:
        with self._log.open("a") as file:
            file.write(f"{line}\n")

    def discover(self) -> Iterable[Device]:
        return [Device(name="stuck-0")]

    def prepare(self, claim: Claim) -> Prepared:
        self._say(f"prepared {claim.name}")
        while self._hold.exists():
            time.sleep(0.02)
        return Prepared(
            devices=[
                PreparedDevice(device=each, env={"STUCK": each.name}) for each in claim.devices
            ]
        )

    def unprepare(self, claim: Claim) -> None:
        self._say(f"unprepared {claim.name}")


if __name__ == "__main__":
    main(Stuck)
