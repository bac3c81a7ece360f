"""Whether a value fits a shape. An applied value must, or it would be unclear which fields it sets."""

from __future__ import annotations

from dataclasses import dataclass

from drayman.api.struct import Json
from drayman.apiserver.patching.field_set import element_text
from drayman.apiserver.patching.go_text import literal, plain, type_name
from drayman.apiserver.patching.list_items import ItemError, item_element
from drayman.apiserver.patching.shapes import ListShape, MapShape, ScalarShape, Shape


@dataclass(frozen=True, slots=True)
class Misfit:
    """Something that does not fit its shape, at a path such as `.spec.ports[port=1]`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def misfits_text(misfits: list[Misfit]) -> str:
    """All of them in one text."""
    if len(misfits) == 1:
        return str(misfits[0])
    return "\n".join(["errors:", *(f"  {misfit}" for misfit in misfits)])


def misfits(shape: Shape, value: Json, path: str = "") -> list[Misfit]:
    """What does not fit. In a list with keys, each key may appear once."""
    part = shape.part(value)
    if isinstance(part, ScalarShape):
        message = _scalar_misfit(part, value)
        return [Misfit(path, message)] if message else []
    if value is None:
        return []
    if isinstance(part, MapShape):
        if not isinstance(value, dict):
            return [Misfit(path, f"expected map, got {_boxed(value)}")]
        return _map_misfits(part, value, path)
    if not isinstance(value, list):
        return [Misfit(path, f"expected list, got {_boxed(value)}")]
    return _list_misfits(part, value, path)


def _scalar_misfit(shape: ScalarShape, value: Json) -> str:
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if shape is ScalarShape.NUMBER and not is_number:
        return f"expected numeric (int or float), got {type_name(value)}"
    if shape is ScalarShape.STRING and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{literal(value)}}}"
    if shape is ScalarShape.BOOLEAN and not isinstance(value, bool):
        return f"expected boolean, got {_boxed(value)}"
    if shape is ScalarShape.ANY and isinstance(value, dict | list):
        return f"expected any scalar, got {_boxed(value)}"
    return ""


def _boxed(value: Json) -> str:
    return f"&{{{plain(value)}}}"


def _map_misfits(shape: MapShape, value: dict[str, Json], path: str) -> list[Misfit]:
    found: list[Misfit] = []
    for name, member in value.items():
        place = f"{path}.{name}"
        declared = shape.member(name)
        if declared is None:
            # The rest of the object is not looked at: one undeclared name is enough to refuse it.
            found.append(Misfit(place, "field not declared in schema"))
            break
        found += misfits(declared, member, place)
    return found


def _list_misfits(shape: ListShape, value: list[Json], path: str) -> list[Misfit]:
    found: list[Misfit] = []
    item_shape = shape.item()
    seen: set[str] = set()
    for index, item in enumerate(value):
        if shape.atomic:
            found += misfits(item_shape, item, f"{path}[{index}]")
            continue
        try:
            element = item_element(shape, item)
        except ItemError as error:
            return [*found, Misfit(path, f"element {index}: {error}")]
        if element in seen:
            found.append(Misfit(path, f"duplicate entries for key {element_text(element)}"))
        seen.add(element)
        found += misfits(item_shape, item, path + element_text(element))
    return found
