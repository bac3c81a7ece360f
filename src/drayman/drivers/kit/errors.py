"""Every exception of the kit.

KitError
├── PrepareError        a claim cannot be prepared; the message is shown with the pod
├── DriverEndedError    a driver would have ended the process, or a task of the kit; the message has its words
├── CheckpointError     what an earlier run has prepared cannot be read; names the file and what to do
└── PublishError        what was discovered cannot be published; names the devices

A configuration that is wrong is a ConfigError of `drayman.driver_configs`, which others than drivers raise too.
"""

from __future__ import annotations

from drayman.plugins.model import writable


class KitError(Exception):
    """Base of the kit's exceptions."""


class PrepareError(KitError):
    """Raised by a driver, or by the kit on its behalf: why the devices of a claim are not ready."""


class DriverEndedError(KitError):
    """A method of a driver has called `sys.exit`, or cancelled itself, instead of answering."""


class CheckpointError(KitError):
    """A record of a prepared claim is damaged or from a newer version."""


class PublishError(KitError):
    """Devices or counters that no API server would accept."""


def words_of(error: Exception) -> str:
    """What an error says on one line. Where the kit or a driver has worded it for readers, its type would tell them nothing."""
    return writable(
        str(error) if isinstance(error, KitError) else f"{type(error).__name__}: {error}"
    )
