"""What can be wrong with what the other end sends."""

from __future__ import annotations


class SpdyError(Exception):
    """The other end does not keep to the protocol, or to a limit. The connection cannot go on."""
