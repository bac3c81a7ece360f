"""Get and list: stored bytes passed on, for any revision that is still available."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from drayman.apiserver.protocol.errors import (
    StatusCause,
    StatusError,
    Subject,
    bad_request,
    expired,
    not_found,
)
from drayman.apiserver.protocol.options import parse_version, version_syntax
from drayman.apiserver.protocol.paging import CURRENT, Position, decode_token, encode_token
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.requests.selectors import EVERYTHING, Selector, parse_fields, parse_labels
from drayman.cluster.breaks import Breaks
from drayman.cluster.embedded.errors import TooOldError
from drayman.cluster.embedded.model import Stored

FUTURE_WAIT_S: Final = 3.0
"""How long a read waits for a future revision."""
_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A list, or a part of one. `remaining` is None if unknown or if nothing remains."""

    items: Sequence[Stored]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


async def get(call: Call) -> Result:
    """One object."""
    version = call.selection.resource_version
    if version:
        wanted = parse_version(version)
        if wanted is None:
            raise version_syntax(version)
        await wait_for(call, wanted)
    stored = call.core.store.get(call.key)
    if stored is None:
        raise not_found(call.subject)
    return Result(stored)


def selector_of(call: Call) -> Selector:
    """Both selectors of a call, parsed. Raises StatusError 400."""
    options = call.selection
    if not options.label_selector and not options.field_selector:
        return EVERYTHING
    labels = parse_labels(options.label_selector)
    return Selector(labels, parse_fields(options.field_selector, call.resource, call.version))


async def select(call: Call, items: Sequence[Stored]) -> Sequence[Stored]:
    """The items that a call selects. Where there are many, others are served in between."""
    selector = selector_of(call)
    if selector.is_empty:
        return items
    await call.core.selecting.enter()
    breaks, found = Breaks(turnstile=call.core.selecting), []
    for stored in with_name(selector, items):
        await breaks.between()
        if selector.matches(stored.value):
            found.append(stored)
    return found


def with_name(selector: Selector, items: Sequence[Stored]) -> Sequence[Stored]:
    """Without the items that a selector by name excludes. That needs no look into them."""
    name = selector.only_name
    return items if name is None else [stored for stored in items if stored.key.name == name]


async def list_objects(call: Call) -> StoredPage:
    """The objects of a collection that a call selects, or the next page of them."""
    position = _position(call)
    wanted, exact = _version(call)
    if wanted:
        await wait_for(call, wanted)
    at = position.revision if position is not None else wanted if exact else None
    items, revision = _items(call, at, position)
    items = await select(call, items)
    if position is not None:
        items = _behind(items, position)
    # From the cache, the real server ignores the limit: it has everything at hand anyway.
    limit = 0 if call.selection.resource_version == "0" else call.selection.limit
    page = _page(call, items, revision, limit)
    if page.continue_token and position is None and revision == call.core.store.revision:
        call.core.store.remember_list(call.resource.storage_name, call.namespace or None)
    return page


def _position(call: Call) -> Position | None:
    options = call.selection
    if not options.continue_:
        return None
    if options.resource_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    return decode_token(options.continue_, namespace=call.namespace or None)


def _version(call: Call) -> tuple[int, bool]:
    """The revision asked for, 0 for any, and whether exactly that one is meant. Raises StatusError 400."""
    text = call.selection.resource_version
    if not text:
        return 0, False
    version = parse_version(text)
    if version is None:
        raise bad_request(version_syntax(text).message)
    return version, call.selection.resource_version_match == "Exact"


def _items(call: Call, at: int | None, position: Position | None) -> tuple[Sequence[Stored], int]:
    store, resource = call.core.store, call.resource.storage_name
    namespace = call.namespace or None
    if at is None or at in (CURRENT, store.revision):
        return store.list(resource, namespace), store.revision
    if at > store.revision:
        raise bad_request(f"invalid continue token: revision {at} is still to come")
    try:
        return store.list_at(resource, namespace, at), at
    except TooOldError as error:
        raise _too_old(call, position) from error


def _too_old(call: Call, position: Position | None) -> StatusError:
    if position is None:
        return expired("The resourceVersion for the provided list is too old.")
    token = encode_token(
        Position(CURRENT, position.namespace, position.name), all_namespaces=not call.namespace
    )
    return expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        token,
    )


def _behind(items: Sequence[Stored], position: Position) -> Sequence[Stored]:
    place = (position.namespace, position.name)
    after = bisect_right(items, place, key=lambda stored: (stored.key.namespace, stored.key.name))
    return items[after:]


def _page(call: Call, items: Sequence[Stored], revision: int, limit: int) -> StoredPage:
    if limit <= 0 or len(items) <= limit:
        return StoredPage(items, revision)
    last = items[limit - 1].key
    token = encode_token(
        Position(revision, last.namespace, last.name), all_namespaces=not call.namespace
    )
    options = call.selection
    selected = bool(options.label_selector or options.field_selector)
    return StoredPage(items[:limit], revision, token, None if selected else len(items) - limit)


async def wait_for(call: Call, revision: int) -> None:
    """Wait a little for a future revision. Raises StatusError 504."""
    store = call.core.store
    waited = 0.0
    while store.revision < revision:
        if waited >= FUTURE_WAIT_S:
            raise too_large_version(revision, store.revision)
        await asyncio.sleep(_POLL_S)
        waited += _POLL_S


def too_large_version(asked: int, current: int) -> StatusError:
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        Subject(),
        [StatusCause("ResourceVersionTooLarge", "Too large resource version")],
        retry_after_seconds=1,
        headers={"Retry-After": "1"},
    )
