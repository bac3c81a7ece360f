"""docs/kinds.md says of every kind that is served what acts on it, as the code has it."""

from __future__ import annotations

from pathlib import Path

from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.served.acting import UNKNOWN
from drayman.apiserver.served.actors import CUSTOM_ACTORS, CUSTOM_GROUPS
from drayman.apiserver.served.resources import ApiResource

PAGE = Path(__file__).parents[3] / "docs" / "kinds.md"
HEADER = "| kind | served as | what acts on it |"


async def served(folder: Path) -> list[ApiResource]:
    """Everything that a new instance serves."""
    options = Options(Folder(folder / "data"), durable=False, control_plane=None)
    instance = await start(options)
    try:
        return sorted(instance.server.core.resources, key=lambda r: (r.group, r.kind))
    finally:
        await instance.stop()


def row(resource: ApiResource) -> str:
    acting = resource.acting
    group = f"{resource.group}/" if resource.group else ""
    versions = f"`{group}{resource.versions[0]}`"
    versions += "".join(f", `{version}`" for version in resource.versions[1:])
    idle = "nothing" if acting.gap is not None else "nothing has to"
    parts = ", ".join(part.value for part in acting.parts) or idle
    missing = "" if acting.gap is None else acting.gap.consequence
    if acting.gap is not None and acting.gap.case:
        missing = f"{acting.gap.case}: {missing}"
    cells = (f"{resource.kind}", versions, parts, acting.effect, missing)
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def rows_of_page() -> list[str]:
    lines = PAGE.read_text().splitlines()
    begin = next(index for index, line in enumerate(lines) if line.startswith(HEADER))
    table = lines[begin + 2 :]
    return table[: next((i for i, line in enumerate(table) if not line.startswith("|")), None)]


async def test_the_page_lists_every_kind_that_is_served(tmp_path: Path) -> None:
    """With the same words, in the order of groups and kinds; none is missing and none too many."""
    expected = [row(resource) for resource in await served(tmp_path)]
    assert rows_of_page() == expected


async def test_every_kind_has_an_answer(tmp_path: Path) -> None:
    """Each kind that is served says what acts on it, whether it is built in or a definition brings it."""
    resources = await served(tmp_path)
    custom = [resource for resource in resources if resource.custom]
    assert {resource.group for resource in custom} <= {
        *CUSTOM_GROUPS,
        *(name.partition(".")[2] for name in CUSTOM_ACTORS),
    }
    assert all(resource.acting is not UNKNOWN for resource in resources)


async def test_every_answer_says_something(tmp_path: Path) -> None:
    """What acts does something, and what nothing acts on lacks something or is for something."""
    for resource in await served(tmp_path):
        acting = resource.acting
        assert acting.effect or (acting.gap and not acting.parts), resource.qualified
