"""Values at run time, and what equality, order and size mean for them.

| CEL | Python |
|---|---|
| null, bool, int, double, string, bytes | None, bool, int (within 64 bits), float, str, bytes |
| uint | `UInt` |
| list | `list`, `tuple` or `Concatenation`: anything in `LISTS` |
| map | `MapValue` |
| timestamp, duration | `times.Timestamp`, `times.Duration` |
| type, optional | `TypeValue`, `OptionalValue` |
| types of a library | subclasses of `Opaque` |

Python's own `==` must not leak into the language, because there `True == 1`: use `equal`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import ClassVar, Final, TypeAlias, overload

from msgspec import Struct

from drayman.cel.errors import AbortError, CostLimitError, EvaluationError, InternalError
from drayman.cel.times import Duration, Timestamp

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1

# No string, bytes or list larger than this is ever built or walked over. No realistic expression comes near it.
MAX_SIZE = 5_000_000
MAX_STEPS = 1_000_000  # of one comparison of lists or maps


class UInt(int):
    """An unsigned 64-bit integer. Arithmetic on it gives a plain int: convert back with `to_uint`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class Missing:
    """What a lookup gives for a key that is not there."""


MISSING: Final = Missing()


class MapValue(dict[Hashable, object]):
    """A map. String keys are stored as they are; other keys under a tag that keeps `true`, `1` and `1u` apart.

    Use `of`, `find`, `has` and `pairs`; only code that knows a key to be a string may use the dict underneath.
    """

    __slots__ = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[object, object]]) -> MapValue:
        return cls((slot(key), value) for key, value in pairs)

    def find(self, key: object) -> object:
        """The value under a key, where numbers match whatever their type; `MISSING` if there is none."""
        if isinstance(key, str):
            return self.get(key, MISSING)
        for candidate in _number_slots(key):
            if (value := self.get(candidate, MISSING)) is not MISSING:
                return value
        return MISSING

    def has(self, key: object) -> bool:
        return MapValue.find(self, key) is not MISSING

    def pairs(self) -> Iterator[tuple[object, object]]:
        for stored, value in self.items():
            yield (stored if isinstance(stored, str) else stored[1]), value  # type: ignore[index]

    @property
    def is_zero(self) -> bool:
        return not self

    def plain(self) -> MapValue:
        """The map as unwrapped from an optional: without what a subclass adds to lookups."""
        return self


class _IdentityKey(tuple[None, object]):
    """A key that equals only itself. Upstream takes lists and maps as keys, but compares them by address."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def slot(key: object) -> Hashable:
    """How a map stores a key. Raises InternalError for values that upstream cannot hash."""
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, int | float | Timestamp | Duration | TypeValue):
        return (type(key), key)
    if isinstance(key, bytes) or (isinstance(key, Opaque) and not key.hashable):
        raise InternalError(f"runtime error: hash of unhashable type {type_name(key)}")
    return _IdentityKey((None, key))


def _number_slots(key: object) -> Iterator[Hashable]:
    if isinstance(key, bool):
        yield (bool, key)
    elif isinstance(key, int):
        yield (type(key), key)
        yield (int if isinstance(key, UInt) else UInt, int(key))
    elif isinstance(key, float):
        yield (float, key)
        if key.is_integer():
            yield (int, int(key))
            yield (UInt, int(key))
    elif key is None or isinstance(key, Timestamp | Duration | TypeValue):
        yield (type(key), key)


class Concatenation(Sequence[object]):
    """Two lists seen as one, without a copy: `+` on lists is cheap in the cost model, so it has to be cheap here."""

    __slots__ = ("_left", "_length", "_right")

    def __init__(self, left: ListValue, right: ListValue) -> None:
        self._left, self._right = left, right
        self._length = len(left) + len(right)
        if self._length > INT_MAX:
            raise CostLimitError

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> object: ...

    @overload
    def __getitem__(self, index: slice) -> list[object]: ...

    def __getitem__(self, index: int | slice) -> object:
        if isinstance(index, slice):
            return materialize(self)[index]
        part: ListValue = self
        while isinstance(part, Concatenation):
            boundary = len(part._left)
            if index < boundary:
                part = part._left
            else:
                part, index = part._right, index - boundary
        return part[index]

    def __iter__(self) -> Iterator[object]:
        """Refuses absurd lengths: a few `a + a` make a list that is too long to walk over."""
        check_size(self._length)
        return self.walk()

    def walk(self) -> Iterator[object]:
        """The elements one by one, for callers that may stop early."""
        pending: list[ListValue] = [self]
        while pending:
            part = pending.pop()
            while isinstance(part, Concatenation):
                pending.append(part._right)
                part = part._left
            yield from part


ListValue: TypeAlias = list[object] | tuple[object, ...] | Concatenation
LISTS = (list, tuple, Concatenation)

_COPY_BELOW = 64  # concatenations up to this length are copied: indexing stays direct


def concatenate(left: ListValue, right: ListValue) -> ListValue:
    if len(left) + len(right) <= _COPY_BELOW:
        return [*left, *right]
    if not left or not right:
        return left or right
    return Concatenation(left, right)


def materialize(value: ListValue) -> list[object]:
    """A list as a Python list. Raises CostLimitError for absurd sizes."""
    if isinstance(value, list):
        return value
    check_size(len(value))
    return list(value)


def check_size(size: int) -> None:
    """To be called before building a string, bytes or list of this size."""
    if size > MAX_SIZE:
        raise CostLimitError


class TypeValue(Struct, frozen=True):
    """A type as a value, as `type(x)` gives it: only its name counts."""

    name: str


class OptionalValue(Struct, frozen=True):
    """`optional.of(value)`; `NONE` is `optional.none()`."""

    value: object

    @property
    def has_value(self) -> bool:
        return self is not NONE


NONE: Final = OptionalValue(MISSING)


class Opaque(ABC):
    """Base of the values of library types: immutable, with a type name, an equality and a size for cost purposes."""

    __slots__ = ()
    type_name: ClassVar[str]
    # Whether upstream can look the value up in a set; where it cannot, `value in [constants]` fails.
    hashable: ClassVar[bool] = True

    @abstractmethod
    def equals(self, other: object) -> bool:
        """Equality with this value on the left. Raises EvaluationError if `other` has a type that it cannot be compared with."""

    @property
    def cost_size(self) -> int:
        return 1

    @property
    def is_zero(self) -> bool:
        """For `optional.ofNonZeroValue`."""
        return False


def no_such_overload() -> EvaluationError:
    return EvaluationError("no such overload")


_TYPE_NAMES: dict[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    tuple: "list",
    Concatenation: "list",
    MapValue: "map",
    TypeValue: "type",
    OptionalValue: "optional_type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
}


def type_name(value: object) -> str:
    """The name of the type of a value, as `type(x)` and error messages spell it."""
    name = _TYPE_NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, Opaque):
        return value.type_name
    if isinstance(value, MapValue):
        return "map"
    if isinstance(value, EvaluationError):
        return "error"
    raise TypeError(f"not a CEL value: {value!r}")


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def to_uint(value: int) -> UInt:
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def size_of(value: object) -> int:
    """The size of a value for cost purposes."""
    if isinstance(value, str | bytes | MapValue | list | tuple | Concatenation):
        return len(value)
    if isinstance(value, Opaque):
        return value.cost_size
    if isinstance(value, OptionalValue) and value is not NONE:
        return size_of(value.value)
    return 1


def equal(left: object, right: object) -> bool:
    """The language's `==`. Values of different types are unequal, numbers compare by value.

    Raises EvaluationError where a library value on the left cannot be compared with the type on the right, and CostLimitError for lists and
    maps that share parts so often that they are too large to walk over.
    """
    if left is None or right is None:
        return left is right
    if isinstance(left, LISTS):
        return _DeepEquality().lists(left, right)
    if isinstance(left, MapValue):
        return _DeepEquality().maps(left, right)
    return _equal_scalars(left, right)


def same(left: object, right: object) -> bool:
    """Whether two values are equal; values that cannot be compared are not."""
    try:
        return equal(left, right)
    except AbortError:
        raise
    except EvaluationError:
        return False


def _equal_scalars(left: object, right: object) -> bool:
    if is_number(left):
        return _equal_numbers(left, right)
    if isinstance(left, Opaque):
        return left.equals(right)
    if isinstance(left, OptionalValue):
        return _equal_optionals(left, right)
    return type(left) is type(right) and left == right


def _equal_numbers(left: object, right: object) -> bool:
    if not is_number(right):
        return False
    if isinstance(left, float) or isinstance(right, float):
        return float(left) == float(right)  # type: ignore[arg-type]
    return int(left) == int(right)  # type: ignore[call-overload, no-any-return]


def _equal_optionals(left: OptionalValue, right: object) -> bool:
    if not isinstance(right, OptionalValue) or left.has_value != right.has_value:
        return False
    for value in (left.value, right.value):
        if isinstance(value, EvaluationError):
            raise value
    return not left.has_value or equal(left.value, right.value)


class _DeepEquality:
    """One comparison of containers. Its steps are counted, because `[a, a]` of `[b, b]` of ... is small and takes forever."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps = 0

    def lists(self, left: ListValue, right: object) -> bool:
        if not isinstance(right, LISTS) or len(left) != len(right):
            return False
        for a, b in zip(left, right, strict=True):
            if not self._same(a, b):
                return False
        return True

    def maps(self, left: MapValue, right: object) -> bool:
        if not isinstance(right, MapValue) or len(left) != len(right):
            return False
        for key, value in left.pairs():
            other = right.find(key)
            if other is MISSING or not self._same(value, other):
                return False
        return True

    def _same(self, left: object, right: object) -> bool:
        """Inside containers, an impossible comparison does not count as a difference, as upstream."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise CostLimitError
        if left is None or right is None:
            return left is right
        if isinstance(left, LISTS):
            return self.lists(left, right)
        if isinstance(left, MapValue):
            return self.maps(left, right)
        try:
            return _equal_scalars(left, right)
        except AbortError:
            raise
        except EvaluationError:
            return True
