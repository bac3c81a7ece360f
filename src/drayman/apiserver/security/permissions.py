"""What PolicyRules allow, taken apart: whether the rules a user has include the rules the user wants to grant."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import product
from typing import Final, NamedTuple

from drayman.api.syntax.json_scanner import quoted
from drayman.apiserver.served.strategy import Object

MOST_PERMISSIONS: Final = 10_000
"""More than the roles of any known operator grant. Comparing more would keep other requests waiting."""
MOST_COMPARISONS: Final = 1_000_000
"""How often granted rules are compared with the rules of their writer, for the same reason. Rules that are the same are not."""


_LISTS: Final = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


class TooManyPermissions(Exception):
    """Rules that together grant more than can be compared one by one."""


class Permission(NamedTuple):
    """The least that a rule can allow: one verb, on one resource of one group (of one name, where there is one) or one path."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str | None = None
    path: str | None = None


class _Rule(NamedTuple):
    """A PolicyRule with sets in place of lists."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    paths: frozenset[str]

    def allows(self, wanted: Permission) -> bool:
        if not _has(self.verbs, wanted.verb):
            return False
        if wanted.path is not None:
            return not self.names and any(path_includes(path, wanted.path) for path in self.paths)
        if self.names and wanted.name not in self.names:
            return False
        return _has(self.groups, wanted.group) and resources_include(
            self.resources, wanted.resource
        )

    def allows_all(self, wanted: _Rule) -> bool:
        """Whether this rule alone covers another one: quick to see, and the usual case."""
        return (
            _has_all(self.verbs, wanted.verbs)
            and _has_all(self.groups, wanted.groups)
            and all(resources_include(self.resources, resource) for resource in wanted.resources)
            and all(any(path_includes(own, path) for own in self.paths) for path in wanted.paths)
            and (not self.names or bool(wanted.names and wanted.names <= self.names))
        )


def missing_permissions(owned: Iterable[Object], granted: Iterable[Object]) -> list[Permission]:
    """What `granted` rules allow and `owned` rules do not. Raises TooManyPermissions."""
    own = dict.fromkeys(map(_read, owned))
    missing: dict[Permission, None] = {}
    left, comparisons = MOST_PERMISSIONS, MOST_COMPARISONS
    for rule in granted:
        wanted = _read(rule)
        if wanted in own:
            continue
        comparisons -= len(own)
        if comparisons < 0:
            raise TooManyPermissions
        if any(one.allows_all(wanted) for one in own):
            continue
        left -= _count(wanted)
        if left < 0:
            raise TooManyPermissions
        relevant = [one for one in own if _overlaps(one, wanted)]
        missing |= dict.fromkeys(
            p for p in _permissions(rule) if not any(one.allows(p) for one in relevant)
        )
    return list(missing)


def describe_permissions(permissions: Iterable[Permission]) -> list[str]:
    """Permissions as Kubernetes writes them in its refusals: those that differ in their verb only are put together."""
    texts: set[str] = set()
    verbs: dict[tuple[str, str], list[str]] = {}
    for one in permissions:
        if one.path is not None:
            texts.add(f"{{NonResourceURLs:{quoted_list([one.path])}, {_verbs([one.verb])}}}")
        elif one.name is not None:
            about = _resource(one.group, one.resource)
            names = f"ResourceNames:{quoted_list([one.name])}"
            texts.add(f"{{{about}, {names}, {_verbs([one.verb])}}}")
        else:
            verbs.setdefault((one.group, one.resource), []).append(one.verb)
    texts |= {f"{{{_resource(*key)}, {_verbs(found)}}}" for key, found in verbs.items()}
    return sorted(texts)


def quoted_list(texts: Iterable[str]) -> str:
    """Texts as Go prints a list of them with `%q`."""
    return f"[{' '.join(map(quoted, texts))}]"


def resources_include(resources: Container[str], wanted: str) -> bool:
    """Whether a rule's resources include one, which may be a subresource like `pods/log`."""
    if wanted in resources or "*" in resources:
        return True
    _, is_part, part = wanted.partition("/")
    return bool(is_part) and f"*/{part}" in resources


def path_includes(pattern: str, path: str) -> bool:
    """Whether a rule's path is, or ends in `*` and starts, another one."""
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _read(rule: Object) -> _Rule:
    return _Rule(*(frozenset(rule.get(name) or ()) for name in _LISTS))


def _has(values: frozenset[str], wanted: str) -> bool:
    return wanted in values or "*" in values


def _has_all(values: frozenset[str], wanted: frozenset[str]) -> bool:
    return "*" in values or wanted <= values


def _overlaps(own: _Rule, rule: _Rule) -> bool:
    return bool(own.verbs & rule.verbs or "*" in own.verbs) and bool(
        own.paths or own.groups & rule.groups or "*" in own.groups
    )


def _count(rule: _Rule) -> int:
    resources = len(rule.groups) * len(rule.resources) * max(1, len(rule.names))
    return len(rule.verbs) * (resources + len(rule.paths))


def _permissions(rule: Object) -> Iterator[Permission]:
    """In the order of the rule's lists, which is how a refusal shows them."""
    verbs, groups, resources, names, paths = (
        dict.fromkeys(rule.get(name) or ()) for name in _LISTS
    )
    for group, resource, name in product(groups, resources, names or (None,)):
        yield from (Permission(verb, group, resource, name) for verb in verbs)
    for path in paths:
        yield from (Permission(verb, path=path) for verb in verbs)


def _resource(group: str, resource: str) -> str:
    return f"APIGroups:{quoted_list([group])}, Resources:{quoted_list([resource])}"


def _verbs(verbs: Iterable[str]) -> str:
    return f"Verbs:{quoted_list(verbs)}"
