"""New values as text: YAML in block or flow style, or JSON."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Final

from drayman.api.struct import Json
from drayman.api.syntax.yaml_scalars import plain_value

if TYPE_CHECKING:
    import yaml

_WIDEST: Final = 1 << 20
"""Columns after which a text would be folded: never, as a selector on two lines is hard to read."""


def block_lines(value: Json, *, lists_indented: bool = False) -> list[str]:
    """A value in block style, from column 0. `lists_indented`: dashes are indented two columns below their key."""
    import yaml

    written: str = yaml.dump(
        value,
        Dumper=_dumper(lists_indented, in_block=True),
        sort_keys=False,
        allow_unicode=True,
        width=_WIDEST,
        default_flow_style=False,
    )
    return written.removesuffix("\n...\n").removesuffix("\n").split("\n")


def flow_text(value: Json) -> str:
    """A value on one line, with braces and brackets."""
    import yaml

    written: str = yaml.dump(
        value,
        Dumper=_dumper(False, in_block=False),
        sort_keys=False,
        allow_unicode=True,
        width=_WIDEST,
        default_flow_style=True,
    )
    return written.removesuffix("\n...\n").removesuffix("\n")


def scalar_text(value: Json, style: str) -> str:
    """A string or number; a string gets the quotes of the one it replaces."""
    if not isinstance(value, str) or not value.isprintable() or style not in ("'", '"'):
        return flow_text(value)
    return (
        json.dumps(value, ensure_ascii=False)
        if style == '"'
        else "'" + value.replace("'", "''") + "'"
    )


def json_text(value: Json, like: str) -> str:
    """A value as JSON, indented like another text."""
    return json.dumps(value, indent=_indentation(like), ensure_ascii=False)


def _indentation(text: str) -> int | str | None:
    """What one level of a JSON text is indented by; None where it is all on one line."""
    for line in text.split("\n")[1:]:
        content = line.lstrip()
        if content:
            indent = line[: len(line) - len(content)]
            return "\t" if indent.startswith("\t") else len(indent) or None
    return None


@cache
def _dumper(lists_indented: bool, in_block: bool) -> type[yaml.SafeDumper]:
    """The YAML writer, made when first used: importing it takes a while."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, indentless and not lists_indented)

        def ignore_aliases(self, data: object) -> bool:
            return True

    def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = "|" if in_block and "\n" in text.strip("\n") else None
        return _text_node(dumper, text, style)

    Dumper.add_representer(str, represent_text)
    return Dumper


def _text_node(dumper: yaml.SafeDumper, text: str, style: str | None) -> yaml.ScalarNode:
    """Quotes for what Kubernetes would not read as a string, which is more than the library knows of."""
    if not _is_text(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_text(text: str) -> bool:
    try:
        return isinstance(plain_value(text), str)
    except ValueError:
        return False
