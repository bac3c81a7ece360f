"""Every exception of the kit.

KitError
├── PrepareError        a claim cannot be prepared; the message is shown with the pod
├── CheckpointError     what an earlier run has prepared cannot be read; names the file and what to do
└── PublishError        what was discovered cannot be published; names the devices

A configuration that is wrong is a ConfigError of `drayman.driver_configs`, which others than drivers raise too.
"""

from __future__ import annotations


class KitError(Exception):
    """Base of the kit's exceptions."""


class PrepareError(KitError):
    """Raised by a driver, or by the kit on its behalf: why the devices of a claim are not ready."""


class CheckpointError(KitError):
    """A record of a prepared claim is damaged or from a newer version."""


class PublishError(KitError):
    """Devices or counters that no API server would accept."""
