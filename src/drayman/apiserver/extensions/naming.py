"""Which names a definition gets: its own, unless another definition of the group already has one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.extensions.definition import (
    ESTABLISHED,
    NAMES_ACCEPTED,
    STORAGE,
    Definition,
    condition,
)
from drayman.apiserver.served.strategy import Object, ObjectReader

_ONE_NAME: Final = (
    ("plural", "PluralConflict"),
    ("singular", "SingularConflict"),
    ("shortNames", "ShortNamesConflict"),
    ("kind", "KindConflict"),
    ("listKind", "ListKindConflict"),
)
_KINDS: Final = ("kind", "listKind")


def set_names(obj: Object, objects: ObjectReader, now: str) -> None:
    """Accept the names of a definition as far as they are free, and set its conditions accordingly."""
    definition = Definition(obj)
    others = map(Definition, objects.list(STORAGE))
    group = [o for o in others if o.group == definition.group and o.name != definition.name]
    status = obj.setdefault("status", {})
    accepted, problem = _accepted(definition, group, status.get("acceptedNames") or {})
    status["acceptedNames"] = accepted
    status["conditions"] = _conditions(definition, problem, now)


def _accepted(
    definition: Definition, group: Iterable[Definition], before: Mapping[str, Json]
) -> tuple[Object, tuple[str, str] | None]:
    """The names accepted, and reason and message of the last conflict."""
    resources, kinds = _taken(group)
    accepted = dict(before)
    problem: tuple[str, str] | None = None
    for part, reason in _ONE_NAME:
        wanted = definition.names.get(part)
        held = before.get(part)
        used = kinds if part in _KINDS else resources
        names = wanted if isinstance(wanted, list) else [wanted] if wanted else []
        clashes = [name for name in names if name in used and name not in _listed(held)]
        if clashes:
            texts = [f'"{name}" is already in use' for name in clashes]
            problem = reason, texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        elif wanted:
            accepted[part] = wanted
        else:
            accepted.pop(part, None)
    accepted.pop("categories", None)
    if categories := definition.names.get("categories"):
        accepted["categories"] = categories
    return accepted, problem


def _listed(held: Json) -> Iterable[str]:
    return held if isinstance(held, list) else (held,)


def _taken(group: Iterable[Definition]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in group:
        names = (other.obj.get("status") or {}).get("acceptedNames") or {}
        resources.update(n for n in (names.get("plural"), names.get("singular")) if n)
        resources.update(names.get("shortNames") or ())
        kinds.update(n for n in (names.get("kind"), names.get("listKind")) if n)
    return resources, kinds


def _conditions(definition: Definition, problem: tuple[str, str] | None, now: str) -> list[Object]:
    """Names come first; once they are accepted, a definition is established immediately and permanently."""
    old_names = definition.condition(NAMES_ACCEPTED)
    old_established = definition.condition(ESTABLISHED)
    kept = [
        dict(one)
        for one in (definition.obj.get("status") or {}).get("conditions") or ()
        if one.get("type") not in (NAMES_ACCEPTED, ESTABLISHED)
    ]
    if problem is None:
        names = condition(
            NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found", now, old_names
        )
    else:
        names = condition(NAMES_ACCEPTED, "False", *problem, now, old_names)
    if definition.is_true(ESTABLISHED) and old_established is not None:
        established = dict(old_established)
    elif problem is None:
        text = "the initial names have been accepted"
        established = condition(
            ESTABLISHED, "True", "InitialNamesAccepted", text, now, old_established
        )
    else:
        text = "not all names are accepted"
        established = condition(ESTABLISHED, "False", "NotAccepted", text, now, old_established)
    return [names, established, *kept]
