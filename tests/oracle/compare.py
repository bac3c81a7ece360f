"""Two results say the same: entries as a multiset without share ids, configuration as a list, selectors up to order."""

from __future__ import annotations

import json
from typing import Any

from oracle.nodes import JsonObject
from oracle.quantities import amount


def normal(results: list[JsonObject] | None) -> list[Any]:
    """A form in which equal results are equal."""
    return [
        (
            sorted(_entry(entry) for entry in result["devices"].get("results") or []),
            result["devices"].get("config") or [],
            _selector(result.get("nodeSelector")),
        )
        for result in results or []
    ]


def _entry(entry: JsonObject) -> str:
    fields = {name: value for name, value in entry.items() if value and name != "shareID"}
    consumed = {key: str(amount(v)) for key, v in (entry.get("consumedCapacity") or {}).items()}
    fields["consumedCapacity"] = consumed
    return json.dumps({**fields, "shared": bool(entry.get("shareID"))}, sort_keys=True)


def _selector(selector: JsonObject | None) -> list[str] | None:
    if not selector:
        return None
    return [
        json.dumps(
            sorted(
                [kind, r["key"], r["operator"], sorted(r.get("values") or [])]
                for kind, requirements in term.items()
                for r in requirements or []
            )
        )
        for term in selector["nodeSelectorTerms"]
    ]
