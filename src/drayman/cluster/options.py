"""What can be asked for besides the object itself.

The names are those of Kubernetes' ListOptions, PatchOptions and so on. Each kind of options knows its query parameters, so that
the HTTP client and a server that reads parameters agree by construction.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from drayman.api.struct import Json

Query = tuple[tuple[str, str], ...]
"""Parameters of a request, in order, without the ones that are not set."""

FieldValidation = Literal["", "Ignore", "Warn", "Strict"]
Propagation = Literal["", "Background", "Foreground", "Orphan"]
VersionMatch = Literal["", "Exact", "NotOlderThan"]


class GetOptions(msgspec.Struct, frozen=True, kw_only=True):
    resource_version: str = ""
    """Not older than this version; `0` for whatever is at hand; empty for the latest."""

    def query(self) -> Query:
        return _present(("resourceVersion", self.resource_version))


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    """Most items of one page; 0 for all in one."""
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: VersionMatch = ""
    omit_managed_fields: bool = False
    """A hint: Drayman's own server then leaves out who owns which field; others do not know it."""

    def query(self) -> Query:
        return _present(
            ("labelSelector", self.label_selector),
            ("fieldSelector", self.field_selector),
            ("limit", str(self.limit) if self.limit else ""),
            ("continue", self.continue_),
            ("resourceVersion", self.resource_version),
            ("resourceVersionMatch", self.resource_version_match),
            ("omitManagedFields", "true" if self.omit_managed_fields else ""),
        )


class WatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    """Changes after this version; empty or `0` for what exists, as ADDED events, and then the changes."""
    bookmarks: bool = True
    timeout_seconds: int = 0
    """When the server ends the watch; 0 for its own choice, half an hour or more."""

    def query(self) -> Query:
        return _present(
            ("watch", "true"),
            ("labelSelector", self.label_selector),
            ("fieldSelector", self.field_selector),
            ("resourceVersion", self.resource_version),
            ("allowWatchBookmarks", "true" if self.bookmarks else ""),
            ("timeoutSeconds", str(self.timeout_seconds) if self.timeout_seconds else ""),
        )


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    dry_run: bool = False
    """Everything happens but the write itself."""
    field_manager: str = ""
    """Who owns the fields that are written; empty for the client's own name."""
    field_validation: FieldValidation = ""
    """What becomes of unknown and duplicate fields; empty for the server's default, a warning."""
    force: bool = False
    """Take over fields that another manager owns. For apply patches only."""

    def query(self) -> Query:
        return _present(
            ("dryRun", "All" if self.dry_run else ""),
            ("fieldManager", self.field_manager),
            ("fieldValidation", self.field_validation),
            ("force", "true" if self.force else ""),
        )


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    grace_period_seconds: int | None = None
    propagation: Propagation = ""
    uid: str = ""
    """Delete only the object with this uid."""
    resource_version: str = ""
    """Delete only this version of the object."""
    dry_run: bool = False

    def body(self) -> dict[str, Json]:
        """The DeleteOptions object that is sent along."""
        body: dict[str, Json] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if self.grace_period_seconds is not None:
            body["gracePeriodSeconds"] = self.grace_period_seconds
        if self.propagation:
            body["propagationPolicy"] = self.propagation
        if preconditions := dict(
            _present(("uid", self.uid), ("resourceVersion", self.resource_version))
        ):
            body["preconditions"] = preconditions
        if self.dry_run:
            body["dryRun"] = ["All"]
        return body


LATEST: Final = GetOptions()
EVERYTHING: Final = ListOptions()
PLAINLY: Final = WriteOptions()
AT_ONCE: Final = DeleteOptions()


def _present(*pairs: tuple[str, str]) -> Query:
    return tuple(pair for pair in pairs if pair[1])
