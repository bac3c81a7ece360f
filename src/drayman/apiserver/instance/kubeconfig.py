"""The file with which kubectl and every other client finds the server and authenticates."""

from __future__ import annotations

import base64
import json

NAME = "drayman"


def kubeconfig(url: str, authority_pem: bytes, token: str) -> bytes:
    """A kubeconfig with one cluster, one user and one context. JSON, which every YAML parser accepts."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": NAME,
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(authority_pem).decode(),
                },
            }
        ],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }
    return json.dumps(config, indent=2).encode() + b"\n"
