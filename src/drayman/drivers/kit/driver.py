"""What a driver has to say. Methods may be coroutines; those that are not run in a thread, so that they may block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from drayman.api.resource import Device
from drayman.driver_configs.decoding import Config
from drayman.drivers.kit.model import Claim, Hardware, Health, Prepared, PreparedDevice

if TYPE_CHECKING:
    import click

Discovered = Hardware | Iterable[Device]
Preparation = Prepared | Iterable[PreparedDevice]


class Driver(ABC):
    """A driver of one kind of device on one node."""

    name: ClassVar[str]
    """A DNS name, such as `gpu.example.com`."""
    configs: ClassVar[tuple[type[Config], ...]] = ()
    """The classes of the configurations that claims and classes may have for it."""
    serialize: ClassVar[bool] = False
    """Whether claims are prepared and unprepared one at a time. Otherwise only calls for the same claim are."""
    sees_others: ClassVar[bool] = False
    """Whether what a claim gets depends on what other claims have: it finds them in `claim.others`, and claims are prepared and
    unprepared one at a time, also by two instances of the driver."""
    options: ClassVar[Sequence[click.Option]] = ()
    """Options of the command that starts it; their values are given to the constructor."""
    discover_every_s: ClassVar[float] = 60.0
    health_every_s: ClassVar[float] = 10.0
    """How often `health` is asked, if it answers at once."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.folder: Path | None = None
        """Its own on the node, once the kit runs it."""
        self.runs_hooks = True
        """Whether the container runtime runs the hooks of CDI files, as the kit has been told."""
        self.prepared_claims: Callable[[], Sequence[Claim]] = lambda: ()
        """Reads the claims that are prepared now, or half prepared, by whichever instance; none before the kit runs it."""
        self._on_change: Callable[[], None] | None = None

    def recover(self, claims: Sequence[Claim]) -> Awaitable[None] | None:
        """Take in what an earlier run has prepared, before the first discovery. Claims without a state may be half prepared.

        There are no others: another instance, during an update, waits with new claims until this returns.
        """
        return None

    @abstractmethod
    def discover(self) -> Discovered | Awaitable[Discovered]:
        """The devices that there are now. If it raises, those that are known stay published."""

    @abstractmethod
    def prepare(self, claim: Claim) -> Preparation | Awaitable[Preparation]:
        """Make the devices of a claim usable. Raises PrepareError with what its owner should read."""

    def unprepare(self, claim: Claim) -> Awaitable[None] | None:
        """Undo what `prepare` did. It may have done only a part of it, or this may have been done before."""
        return None

    def health(
        self,
    ) -> Iterable[Health] | Awaitable[Iterable[Health]] | AsyncIterator[Iterable[Health]] | None:
        """How the devices are: all that there is to say, or a stream of it. Without this method the driver does not report health."""
        return None

    def follow(self) -> Awaitable[None] | None:
        """A coroutine that hears of changes and calls `changed`, if there is anything to hear. It is run until the driver is stopped."""
        return None

    @classmethod
    def config_type(cls, device: Device) -> type[Config] | None:
        """The class of the configuration that a device takes: by default the only one."""
        return cls.configs[0] if cls.configs else None

    @property
    def reports_health(self) -> bool:
        return type(self).health is not Driver.health

    def changed(self) -> None:
        """Say that `discover` would answer something else now. May be called from any thread."""
        if self._on_change is not None:
            self._on_change()

    def on_change(self, call: Callable[[], None]) -> None:
        """Where `changed` is reported. For the kit."""
        self._on_change = call
