"""How OpenAPI documents are asked for and answered."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from drayman.api.schema.openapi import Asked, Publication, ServedResource
from drayman.api.schema.openapi.gnostic import MEDIA_TYPE
from drayman.api.schema.openapi.publishing import PublishedPage

NOW = datetime(2026, 11, 15, 4, 0, 31, tzinfo=UTC)
VERBS = frozenset({"get", "list", "create", "patch"})
JOBS = ServedResource("jobs", "Job", True, VERBS)
PODS = ServedResource("pods", "Pod", True, VERBS)
JOBS_PATH = "/openapi/v3/apis/batch/v1"


def publication() -> Publication:
    published = Publication("v1.36.4")
    published.update({("", "v1"): [PODS], ("batch", "v1"): [JOBS]})
    return published


def ask(published: Publication, path: str, **rest: str) -> PublishedPage:
    page = published.answer(Asked(path, **rest), NOW)
    assert page is not None
    return page


def indexed(published: Publication) -> dict[str, str]:
    """Path of each document to its hash, from the index."""
    page = ask(published, "/openapi/v3")
    paths = msgspec.json.decode(page.body)["paths"]
    return {path: each["serverRelativeURL"].partition("?hash=")[2] for path, each in paths.items()}


def test_the_index_leads_to_documents_that_may_be_kept() -> None:
    """A document asked for by its hash never changes, and says so."""
    published = publication()
    hashes = indexed(published)
    assert hashes.keys() == {"api/v1", "apis/batch/v1"}
    page = ask(published, JOBS_PATH, hash=hashes["apis/batch/v1"], accept="application/json")
    assert page.status == 200
    assert page.headers["Cache-Control"] == "public, immutable"
    assert page.headers["Expires"] == "Mon, 15 Nov 2027 04:00:31 UTC"
    assert page.headers["Etag"] == f'"{hashes["apis/batch/v1"]}"'
    assert "/apis/batch/v1/jobs" in msgspec.json.decode(page.body)["paths"]


def test_a_wrong_hash_is_redirected() -> None:
    """A client with an old index is sent to the present document."""
    published = publication()
    page = ask(published, JOBS_PATH, hash="OLD")
    assert (page.status, page.body) == (301, b"")
    assert page.headers["Location"] == f"{JOBS_PATH}?hash={indexed(published)['apis/batch/v1']}"


def test_without_a_hash_documents_are_not_kept() -> None:
    """They are served all the same."""
    page = ask(publication(), JOBS_PATH)
    assert (page.status, page.headers["Cache-Control"]) == (200, "no-cache, private")


def test_clients_that_have_it_get_nothing() -> None:
    """A request that names the present tag is answered with 304."""
    published = publication()
    for path in ("/openapi/v2", "/openapi/v3", JOBS_PATH):
        tag = ask(published, path).headers["Etag"]
        page = ask(published, path, if_none_match=tag)
        assert (page.status, page.body) == (304, b""), path
        assert ask(published, path, if_none_match='"other"').status == 200


def test_only_what_changed_gets_a_new_hash() -> None:
    """A custom resource that appears changes the index and its own document, and no other."""
    published = publication()
    before, old_tag = indexed(published), ask(published, "/openapi/v2").headers["Etag"]
    widgets = ServedResource("widgets", "Widget", True, VERBS, schema={"type": "object"})
    served = {("", "v1"): [PODS], ("batch", "v1"): [JOBS], ("example.com", "v1"): [widgets]}
    published.update(served)
    after = indexed(published)
    assert {path: after[path] for path in before} == before
    assert after.keys() - before.keys() == {"apis/example.com/v1"}
    page = ask(published, "/openapi/v2")
    assert page.headers["Etag"] != old_tag
    assert "com.example.v1.Widget" in msgspec.json.decode(page.body)["definitions"]


def test_version_2_comes_in_two_forms() -> None:
    """kubectl asks for protobuf, others for JSON; what is neither is refused with an empty answer."""
    published = publication()
    binary = ask(published, "/openapi/v2", accept=MEDIA_TYPE)
    assert binary.headers["Content-Type"] == MEDIA_TYPE.replace("@", ".")
    assert binary.body.startswith(b"\n\x032.0")
    for accept in ("", "application/json", "application/json, */*"):
        page = ask(published, "/openapi/v2", accept=accept)
        assert page.headers["Content-Type"] == "application/json"
        assert msgspec.json.decode(page.body)["swagger"] == "2.0"
    refused = ask(published, "/openapi/v2", accept="text/html")
    assert (refused.status, refused.body) == (406, b"")


def test_other_paths() -> None:
    """Unknown group versions are not found; other paths are somebody else's."""
    published = publication()
    assert ask(published, "/openapi/v3/apis/nope/v1").status == 404
    assert published.answer(Asked("/openapi"), NOW) is None
    assert published.answer(Asked("/api"), NOW) is None


def test_whether_an_answer_is_quick() -> None:
    """A document takes a while the first time, and again when something else is served."""
    published = publication()
    for asked in (
        Asked("/openapi/v2"),
        Asked("/openapi/v2", accept=MEDIA_TYPE),
        Asked(JOBS_PATH, accept="application/json"),
    ):
        assert not published.is_made(asked)
        published.answer(asked, NOW)
        assert published.is_made(asked)
    assert published.is_made(Asked("/openapi/v3"))
    assert published.is_made(Asked("/openapi/v3/apis/none/v1"))
    published.update({("batch", "v1"): [JOBS]})
    assert not published.is_made(Asked("/openapi/v2"))
    assert published.is_made(Asked(JOBS_PATH))
