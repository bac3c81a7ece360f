"""One request to a resource over HTTP: route, authorize, negotiate, decode, perform, encode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec

from drayman.api.errors import BodyError
from drayman.api.schema.body import identify_tree
from drayman.api.struct import Json
from drayman.api.syntax.json_text import parse_tree
from drayman.api.syntax.values import Pairs, plain
from drayman.api.syntax.yaml_text import parse_yaml_tree
from drayman.apiserver.answers.forms import EventEncoder, answer, answer_page
from drayman.apiserver.protocol.errors import bad_request
from drayman.apiserver.protocol.exchange import Answer, Request, StreamingResponse
from drayman.apiserver.protocol.negotiation import PROTOBUF_TYPE, YAML_TYPE, View, negotiate
from drayman.apiserver.protocol.options import (
    ListOptions,
    delete_options,
    list_options,
    write_options,
)
from drayman.apiserver.requests import bodies
from drayman.apiserver.requests.beside import beside
from drayman.apiserver.requests.calls import Call, Result
from drayman.apiserver.requests.large_bodies import read_beside
from drayman.apiserver.requests.routing import Route
from drayman.apiserver.served.conversion import is_kept_in
from drayman.apiserver.served.resources import Handler
from drayman.apiserver.verbs.core import Core
from drayman.apiserver.verbs.creating import create
from drayman.apiserver.verbs.deleting import delete, delete_collection
from drayman.apiserver.verbs.patches import APPLY, patch, patch_type, read_patch
from drayman.apiserver.verbs.reading import StoredPage, get, list_objects
from drayman.apiserver.verbs.updating import update
from drayman.apiserver.verbs.watching import Watch, start_watch

Verb = Callable[[Call, Request, View], Awaitable[Answer]]
LARGE_ANSWER: Final = 64 * 1024
"""The fewest bytes of objects whose form is worth another thread."""
OPTIONS_SCHEME: Final = (
    'scheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
)


def call_of(core: Core, request: Request, route: Route) -> Call:
    """The call a routed request makes, without its body and options."""
    deprecation = route.resource.deprecations.get(route.version)
    return Call(
        core,
        route.resource,
        route.version,
        route.verb,
        route.namespace,
        route.name,
        route.subresource,
        user=request.user,
        request=request,
        warnings=[deprecation] if deprecation else [],
    )


def view_of(request: Request, route: Route) -> View:
    """The form of the answer. Raises StatusError 406."""
    return negotiate(request, watch=route.verb == "watch")


async def perform(call: Call, request: Request, view: View) -> Answer:
    """Perform a call. Raises StatusError."""
    if call.verb in ("create", "update"):
        await _read_body(call, request)
    elif call.verb == "patch":
        await _read_patch(call, request)
    part = call.subresource
    if part is not None and call.verb in part.handlers:
        result = await part.handlers[call.verb](call)
    elif part is None and call.verb in call.resource.read_handlers:
        result = await call.resource.read_handlers[call.verb](call)
    elif call.verb in _WRITES:
        result = await _WRITES[call.verb](call)
    else:
        return await _VERBS[call.verb](call, request, view)
    return await _answer(call, result, view) if isinstance(result, Result) else result


async def _read_body(call: Call, request: Request) -> None:
    kind = "CreateOptions" if call.verb == "create" else "UpdateOptions"
    call.write = write_options(request, kind)
    if call.subresource is None or request.body or not call.kind.kind.endswith("Options"):
        call.size = len(request.body)
        call.body = await bodies.read_object(call, request, strict=call.write.field_validation)
        if not call.name:
            request.new_name = (call.body.get("metadata") or {}).get("name") or ""


async def _read_patch(call: Call, request: Request) -> None:
    media = patch_type(request.header("content-type"), custom=call.resource.custom)
    call.write = write_options(request, "PatchOptions", is_patch=True, is_apply=media == APPLY)
    call.size = len(request.body)
    call.patch = await read_patch(media, request.body)


async def _get(call: Call, request: Request, view: View) -> Answer:
    if version := request.query.text("resourceVersion"):
        call.selection = ListOptions(resource_version=version)
    return await _answer(call, await get(call), view)


async def _list(call: Call, request: Request, view: View) -> Answer:
    call.selection = list_options(request.query, watch=False)
    return await _answer_page(call, await list_objects(call), view)


async def _answer(call: Call, result: Result, view: View) -> Answer:
    size = 0 if result.stored is None else len(result.stored.data)
    return await _formed(call, view, size, lambda: answer(call, result, view))


async def _answer_page(call: Call, page: StoredPage, view: View) -> Answer:
    is_copied = view.is_plain and is_kept_in(call.resource, call.version)
    size = 0 if is_copied else sum(len(stored.data) for stored in page.items)
    return await _formed(call, view, size, lambda: answer_page(call, page, view))


async def _formed(call: Call, view: View, size: int, form: Callable[[], Answer]) -> Answer:
    """An answer, put into its form in another thread if that takes long.

    That is a large list as a table, and anything large in YAML or in another version than the stored one.
    """
    is_quick = size < LARGE_ANSWER or (
        view.encoding == "json"
        and view.shape == "object"
        and is_kept_in(call.resource, call.version)
    )
    return form() if is_quick else await beside(form)


async def _watch(call: Call, request: Request, view: View) -> Answer:
    call.selection = list_options(request.query, watch=True)
    if call.name:
        field = f"metadata.name={call.name}"
        call.selection = msgspec.structs.replace(call.selection, field_selector=field)
    watch = start_watch(call)
    encoder = EventEncoder(call, view)
    return StreamingResponse(_chunks(watch, encoder), headers={"Content-Type": "application/json"})


async def _chunks(watch: Watch, encoder: EventEncoder) -> AsyncIterator[bytes]:
    try:
        async for batch in watch.batches():
            yield b"".join(map(encoder, batch))
    finally:
        watch.close()


async def _delete(call: Call, request: Request, view: View) -> Answer:
    call.delete = delete_options(request.query, await _options_body(request))
    return await _answer(call, await delete(call), view)


async def _delete_collection(call: Call, request: Request, view: View) -> Answer:
    call.delete = delete_options(request.query, await _options_body(request))
    call.selection = list_options(request.query, watch=False)
    items = await delete_collection(call)
    return await _answer_page(call, StoredPage(items, call.core.store.revision), view)


async def _options_body(request: Request) -> Json:
    """The DeleteOptions in a body, None without one. Raises StatusError 400."""
    if not request.body:
        return None
    return await read_beside(request.body, lambda: _read_options(request))


def _read_options(request: Request) -> Json:
    media = bodies.body_type(request)
    if media == PROTOBUF_TYPE:
        return bodies.read_delete_options(request.body)
    try:
        if media == YAML_TYPE:
            tree = parse_yaml_tree(request.body).tree
        else:
            tree = parse_tree(request.body, "couldn't get version/kind; json parse error: ")
        identity = identify_tree(tree)
        options = plain(tree) if isinstance(tree, Pairs | dict) else {}
    except BodyError as error:
        raise bad_request(str(error)) from error
    if identity.kind not in ("", "DeleteOptions"):
        version = identity.api_version or "v1"
        raise bad_request(
            f'no kind "{identity.kind}" is registered for version "{version}" in {OPTIONS_SCHEME}'
        )
    return options


_WRITES: Final[dict[str, Handler]] = {"create": create, "update": update, "patch": patch}
_VERBS: Final[dict[str, Verb]] = {
    "get": _get,
    "list": _list,
    "watch": _watch,
    "delete": _delete,
    "deletecollection": _delete_collection,
}


def with_warnings(call: Call, response: Answer) -> Answer:
    """The answer with the warnings of the call, each once."""
    if call.warnings:
        response.warnings = tuple(dict.fromkeys((*response.warnings, *call.warnings)))
    return response
