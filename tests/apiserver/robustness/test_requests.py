"""Paths, methods, queries, continue tokens and headers that no client sends."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st
from robustness.hostile import (
    CONFIG_MAP,
    CONFIG_MAPS,
    IS_LONG,
    JSON,
    MERGE_PATCH,
    POD,
    PODS,
    attack,
)

SEGMENTS = (
    "..", ".", "%2e%2e", "\0", "a\0b", "x" * 10_240, "é", "A", "a b", "a%", "-a", "*", "\n", "namespaces", "watch",
    "status", "",
)  # fmt: skip
PLACES = (
    "/%s", "/api/%s", "/api/v1/%s", "/apis/%s/v1", "/apis/apps/%s", "/api/v1/namespaces/%s",
    "/api/v1/namespaces/%s/pods", "/api/v1/namespaces/default/%s", f"{PODS}/%s", f"{PODS}/%s/status", f"{POD}/%s",
    "/api/v1/watch/%s", "/openapi/v3/%s", "/healthz/%s", f"{POD}/exec/%s",
)  # fmt: skip
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "get", "", "X" * 1000)
OPTIONS = (
    "labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch",
    "timeoutSeconds", "watch", "sendInitialEvents", "dryRun", "fieldManager", "fieldValidation", "force",
    "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "pretty", "timeout", "",
)  # fmt: skip
VALUES = (
    "", "0", "-1", "a", "=", "!", "a in (", "a notin (,)", "a,,b", "a>b", "a<" + "9" * 5000, "a=b=c", "\0", "é",
    "x" * 10_000, "a/b/c", "metadata.name=\\x", "metadata.zz=1", "9" * 5000, "18446744073709551616", "1.5", "\u0663",
    "true", "All", "Exact", "NotOlderThan", "Orphan", "-1s", "9" * 14_000 + "x", "1.5.5s", "e30", "%%%", "\n",
    ",".join(f"a{n}=b" for n in range(3000)),
)  # fmt: skip
ACCEPTED = (
    "", "*", "/", ";", ",,,", "application/json;q=x", "application/json;q=1e400", "application/json;as=Table",
    "application/json;as=Table;v=v9;g=x", "application/json;as=;v=;g=", "application/yaml", "text/html", "é/é",
    "application/cbor", "x" * 10_000, ",".join(["a/b;q=0.1"] * 2000), 'application/json;"',
)  # fmt: skip
TOKENS: tuple[Any, ...] = (
    {}, [], None, 1, "a", {"v": 1}, {"v": "meta.k8s.io/v1"},
    *({"v": "meta.k8s.io/v1", "rv": rv, "start": "a"} for rv in (-1, 2**70, 1.5, True, "1", None, 0, 999_999)),
    *({"v": "meta.k8s.io/v1", "rv": 1, "start": start} for start in (None, 1, "", "../..", "x\0y", {})),
)  # fmt: skip


def test_odd_paths_and_methods_are_refused() -> None:
    """Dots, NULs, empty and huge segments in every place, with every method."""
    bodies = {
        "POST": b'{"metadata":{"name":"n"}}',
        "PUT": b'{"metadata":{"name":"n"}}',
        "PATCH": b"{}",
    }
    attack(
        (m, place % s, bodies.get(m, b""), MERGE_PATCH if m == "PATCH" else JSON, "dryRun=All")
        for s in SEGMENTS
        for place in PLACES
        for m in METHODS
    )


def test_odd_options_are_refused() -> None:
    """Each option of a query with each value, for reading, watching and writing."""
    requests: list[tuple[Any, ...]] = []
    for name in OPTIONS:
        for value in VALUES:
            query = f"{quote(name)}={quote(value)}"
            requests += [
                ("GET", path, b"", JSON, query) for path in (CONFIG_MAPS, CONFIG_MAP, PODS)
            ]
            requests.append(("GET", CONFIG_MAPS, b"", JSON, f"watch=1&{query}"))
            requests.append(("DELETE", f"{CONFIG_MAPS}/absent", b"", JSON, query))
            requests.append(("PATCH", CONFIG_MAP, b"{}", MERGE_PATCH, query))
            requests.append(
                ("POST", CONFIG_MAPS, {"metadata": {"name": "n"}}, JSON, f"dryRun=All&{query}")
            )
    attack(requests)


def test_forged_continue_tokens_are_refused() -> None:
    """Tokens that are no token, of other types, other resources or the future."""
    texts = [base64.urlsafe_b64encode(json.dumps(t).encode()).decode().rstrip("=") for t in TOKENS]
    paths = (CONFIG_MAPS, "/api/v1/nodes", "/api/v1/pods")
    attack(
        ("GET", path, b"", JSON, f"continue={text}{more}")
        for text in texts
        for path in paths
        for more in ("", "&limit=1", "&limit=-1", "&resourceVersion=1")
    )


def test_odd_headers_are_refused() -> None:
    """Whatever a client says it accepts, sends or is."""
    paths = (
        "/api",
        "/apis",
        "/apis/apps/v1",
        "/openapi/v2",
        "/openapi/v3/api/v1",
        "/metrics",
        CONFIG_MAP,
        PODS,
    )
    names = (
        "accept",
        "accept-encoding",
        "if-none-match",
        "user-agent",
        "authorization",
        "impersonate-user",
    )
    attack(
        ("GET", path, b"", JSON, "", {name: value})
        for path in paths
        for name in names
        for value in ACCEPTED
    )


@settings(max_examples=2_000 if IS_LONG else 60)
@given(st.lists(st.tuples(st.sampled_from(OPTIONS), st.text(max_size=30)), min_size=1, max_size=20))
def test_any_text_is_an_option(pairs: list[tuple[str, str]]) -> None:
    """Texts of any characters in any option get an answer."""
    attack(
        ("GET", CONFIG_MAPS, b"", JSON, f"{quote(name)}={quote(value, errors='replace')}")
        for name, value in pairs
    )


@settings(max_examples=2_000 if IS_LONG else 60)
@given(st.lists(st.text(alphabet="ab01,=!<>()/. -_innotin", max_size=30), min_size=1, max_size=20))
def test_any_selector_is_answered(selectors: list[str]) -> None:
    """Selectors made of the right characters in any order."""
    attack(
        ("GET", CONFIG_MAPS, b"", JSON, f"{kind}={quote(selector)}")
        for selector in selectors
        for kind in ("labelSelector", "fieldSelector")
    )
