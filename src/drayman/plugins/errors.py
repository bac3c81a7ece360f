"""Every exception of the `plugins` package.

PluginError
├── SocketError         a socket cannot be served; names the path
├── RegistrationError   a plugin introduces itself in a way that no node accepts
├── CallError           a plugin did not answer a call
│   └── NoAnswerError   not within the time that there was
└── CdiError            a CDI file or an id is not usable; names the file or the id
"""

from __future__ import annotations


class PluginError(Exception):
    """Base of this package's exceptions."""


class SocketError(PluginError):
    """A socket cannot be served."""


class RegistrationError(PluginError):
    """A plugin is not accepted."""


class CallError(PluginError):
    """A plugin did not answer, or not with what was asked for."""


class NoAnswerError(CallError):
    """A plugin has not answered in time. It may still be working."""

    def __init__(self, message: str, waited_s: float) -> None:
        super().__init__(message)
        self.waited_s = waited_s


class CdiError(PluginError):
    """A CDI specification breaks a rule, or an id names nothing."""
