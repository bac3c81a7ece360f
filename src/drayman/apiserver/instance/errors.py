"""Why an instance cannot be started."""

from __future__ import annotations


class InstanceError(Exception):
    """The instance cannot be started; the message is one sentence for the person who runs it."""


class AddressTakenError(InstanceError):
    """Another process listens on the address."""
