"""From the rows of a journal to the objects and the history in memory."""

from __future__ import annotations

from sys import intern

from drayman.cluster.embedded.history import History
from drayman.cluster.embedded.journal import Journal, Row, damaged
from drayman.cluster.embedded.model import DecodedValues, Event, EventType, Key, Stored
from drayman.cluster.embedded.objects import ObjectTable


def recover(journal: Journal, history: History, decoded: DecodedValues) -> ObjectTable:
    """Read a journal: its objects, and into `history` the changes since. Raises StoreError if it does not make sense."""
    objects: dict[Key, Stored] = {}
    oldest = history.oldest
    for row in journal.rows():
        # Few resources and namespaces, many objects: share the strings.
        resource, namespace, name = row.key
        key = Key(intern(resource), intern(namespace), name)
        stored = Stored(key, row.revision, row.data, decoded)
        previous = objects.get(key)
        if not row.deleted:
            objects[key] = stored
        elif previous is not None:
            del objects[key]
        else:
            raise damaged(
                journal.path, f"revision {row.revision} deletes {key}, which is not there"
            )
        if row.revision > oldest:
            history.append(Event(_type_of(row, previous), stored, previous), row.time)
    return ObjectTable(objects.values())


def _type_of(row: Row, previous: Stored | None) -> EventType:
    if row.deleted:
        return EventType.DELETED
    return EventType.ADDED if previous is None else EventType.MODIFIED
