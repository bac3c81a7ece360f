"""The file with which kubectl and every other client finds the server and authenticates."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from drayman.api.struct import Json

NAME = "drayman"


def kubeconfig(url: str, authority_pem: bytes, token: str, before: Mapping[str, Json]) -> bytes:
    """A kubeconfig whose current context is this cluster. Entries of other names, and the rest of what was there before, are kept.

    JSON, which every YAML parser accepts.
    """
    authority = base64.b64encode(authority_pem).decode()
    own: dict[str, dict[str, Json]] = {
        "clusters": {"cluster": {"server": url, "certificate-authority-data": authority}},
        "users": {"user": {"token": token}},
        "contexts": {"context": {"cluster": NAME, "user": NAME}},
    }
    config: dict[str, Json] = {"apiVersion": "v1", "kind": "Config", **before}
    for section, entry in own.items():
        config[section] = [{"name": NAME, **entry}, *_others(before.get(section))]
    config["current-context"] = NAME
    # A date, which YAML knows and JSON does not, is kept as text.
    return json.dumps(config, indent=2, default=str).encode() + b"\n"


def _others(entries: Json) -> list[Json]:
    """The entries of a section that are not about this cluster."""
    found = entries if isinstance(entries, list) else []
    return [entry for entry in found if isinstance(entry, dict) and entry.get("name") != NAME]
