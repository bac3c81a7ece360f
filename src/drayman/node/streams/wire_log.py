"""What servers log of connections: nothing about clients that go away or send what is not HTTP, which nobody here can help."""

from __future__ import annotations

import logging

from aiohttp.http_exceptions import HttpProcessingError


def wire_log(log: logging.Logger) -> logging.Logger:
    """The logger that a server of aiohttp is given by the module that has this one."""
    wire = log.getChild("wire")
    wire.addFilter(_is_about_the_server)
    return wire


def _is_about_the_server(record: logging.LogRecord) -> bool:
    """Bytes that are not HTTP are answered with 400, and clients go away. A traceback would not help anyone."""
    error = record.exc_info[1] if record.exc_info else None
    log = logging.getLogger(record.name.rpartition(".")[0])
    if isinstance(error, ConnectionError):
        log.debug("a client went away: %s", error)
        return False
    if isinstance(error, HttpProcessingError):
        log.debug("a client sent bytes that are not HTTP: %s", error.message)
        return False
    return True
