"""Labels and annotations of `kueue.x-k8s.io` and `drayman.dev` that nobody reads, and that look like one that somebody does.

A Job with the label `kueue.x-k8s.io/queue-nmae` starts at once, past all queues, and a pod whose group is misspelt waits alone. So whoever
writes such a name is told. Names that look like none are let be: Kueue has more of them than are known here, and newer ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.apiserver.kinds.known_names import KNOWN, KUEUE, OWN, meant_by, unread
from drayman.apiserver.kinds.reading import map_at
from drayman.apiserver.served.strategy import Object

_NOTHING: Final[Object] = {}


def misspelt(
    metadata: Object,
    before: Object = _NOTHING,
    path: str = "metadata",
    *,
    annotations_of: tuple[str, ...] = (KUEUE, OWN),
) -> Iterator[str]:
    """What is to be said about new names in the metadata of an object or template; `before` is the metadata that it had.

    `annotations_of`: the groups whose annotations are looked at.
    """
    for kind, domains in (("labels", (KUEUE, OWN)), ("annotations", annotations_of)):
        known = map_at(before, kind)
        for name in map_at(metadata, kind):
            if name.startswith(domains) and name not in KNOWN and name not in known:
                meant = meant_by(name)
                if meant:
                    yield unread(f"{path}.{kind}", name, meant)
