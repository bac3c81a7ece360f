"""From a definition to the resource it defines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from drayman.apiserver.extensions.columns import custom_columns
from drayman.apiserver.extensions.custom_form import CustomCodec, CustomConversion
from drayman.apiserver.extensions.custom_strategy import (
    CustomStatusStrategy,
    CustomStrategy,
    VersionRules,
    WholeStrategy,
)
from drayman.apiserver.extensions.definition import COLUMNS, SELECTABLE, SUBRESOURCES, Definition
from drayman.apiserver.extensions.known import (
    KnownConversion,
    KnownKind,
    KnownStatusStrategy,
    KnownStrategy,
    KnownWholeStrategy,
)
from drayman.apiserver.extensions.kueue import KUEUE_KINDS
from drayman.apiserver.extensions.paths import parse_json_path
from drayman.apiserver.extensions.schemas import Schema
from drayman.apiserver.kinds.reading import text_reader
from drayman.apiserver.served.actors import acting_on_custom
from drayman.apiserver.served.resources import (
    ALL_VERBS,
    ApiResource,
    GroupVersionKind,
    Subresource,
    version_priority,
)
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.subresources.scale import ScalePaths, scale_subresource


def custom_resource(definition: Definition) -> ApiResource | None:
    """The resource of a definition; None if it serves no version."""
    served = sorted(
        (str(v["name"]) for v in definition.versions if v.get("served")), key=version_priority
    )
    if not served:
        return None
    schemas = {str(v["name"]): definition.schema(str(v["name"])) for v in definition.versions}
    strategy = _strategy(definition, schemas)
    names = (definition.obj.get("status") or {}).get("acceptedNames") or definition.names
    shown = definition.version(served[0])
    return ApiResource(
        group=definition.group,
        versions=tuple(served),
        kind=definition.kind,
        plural=definition.plural,
        namespaced=definition.is_namespaced,
        singular=names.get("singular") or "",
        list_kind=names.get("listKind") or "",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        hub=GroupVersionKind(definition.group, strategy.storage, definition.kind),
        strategy=strategy,
        conversion=strategy.conversion,
        codec=CustomCodec(schemas),
        verbs=_verbs(definition),
        subresources=tuple(_subresources(definition, strategy)),
        columns=custom_columns(shown.get(COLUMNS) or ()),
        has_generation=True,
        requires_version_on_update=True,
        selectable=_selectable(definition),
        deprecations=dict(_deprecations(definition)),
        acting=acting_on_custom(definition.group, definition.plural),
        custom=True,
    )


def _verbs(definition: Definition) -> tuple[str, ...]:
    """While a definition is being deleted, so are its objects, and no new ones can be created."""
    if definition.is_terminating:
        return tuple(verb for verb in ALL_VERBS if verb != "create")
    return ALL_VERBS


def _known(definition: Definition) -> KnownKind | None:
    """What is known about a kind, if it is stored in the version that this is about."""
    known = KUEUE_KINDS.get(definition.name)
    return known if known is not None and known.hub == definition.storage_version else None


def _strategy(definition: Definition, schemas: Mapping[str, Schema]) -> CustomStrategy:
    versions: dict[str, VersionRules] = {}
    for version in definition.versions:
        parts = version.get(SUBRESOURCES) or {}
        versions[str(version["name"])] = VersionRules(
            definition.schema(str(version["name"])), "status" in parts, parts.get("scale")
        )
    has_status = any(rules.has_status for rules in versions.values())
    storage, namespaced = definition.storage_version, definition.is_namespaced
    known = _known(definition)
    if known is not None:
        of_known = KnownStrategy if has_status else KnownWholeStrategy
        conversion = KnownConversion(schemas, known)
        return of_known(versions, storage, conversion, namespaced, known)
    kind = CustomStrategy if has_status else WholeStrategy
    return kind(versions, storage, CustomConversion(schemas), namespaced)


def _subresources(definition: Definition, strategy: CustomStrategy) -> Iterator[Subresource]:
    """Status and scale, if any served version has them."""
    parts = [v.get(SUBRESOURCES) or {} for v in definition.versions if v.get("served")]
    if any("status" in part for part in parts):
        if isinstance(strategy, KnownStrategy):
            yield Subresource(name="status", strategy=KnownStatusStrategy(strategy))
        else:
            yield Subresource(name="status", strategy=CustomStatusStrategy(strategy))
    scale = next((part["scale"] for part in parts if part.get("scale")), None)
    if scale is not None:
        yield scale_subresource(
            ScalePaths(
                _simple_path(scale["specReplicasPath"]),
                _simple_path(scale["statusReplicasPath"]),
                text_reader(*_simple_path(scale.get("labelSelectorPath") or "")),
            )
        )


def _simple_path(text: str) -> tuple[str, ...]:
    return tuple(text.removeprefix(".").split("."))


def _selectable(definition: Definition) -> Mapping[str, Callable[[Object], str]]:
    paths = {
        field["jsonPath"]
        for version in definition.versions
        for field in version.get(SELECTABLE) or ()
    }
    return {path.removeprefix("."): _field_reader(path) for path in sorted(paths)}


def _field_reader(text: str) -> Callable[[Object], str]:
    path = parse_json_path(text)

    def read(obj: Object) -> str:
        found = path.find(obj)
        if not found or found[0] is None:
            return ""
        return str(found[0]).lower() if isinstance(found[0], bool) else str(found[0])

    return read


def _deprecations(definition: Definition) -> Iterator[tuple[str, str]]:
    group, kind = definition.group, definition.kind
    current = [
        str(v["name"]) for v in definition.versions if v.get("served") and not v.get("deprecated")
    ]
    for version in definition.versions:
        if not version.get("deprecated"):
            continue
        name = str(version["name"])
        better = [n for n in current if version_priority(n) < version_priority(name)]
        text = f"{group}/{name} {kind} is deprecated"
        if better:
            text += f"; use {group}/{min(better, key=version_priority)} {kind}"
        yield name, version.get("deprecationWarning") or text
