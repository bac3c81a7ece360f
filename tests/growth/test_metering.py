"""The instrument itself: it finds quadratic work of every sort, and calls nothing quadratic that is not."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from growth.comparing import Growth, steep_of
from growth.metering import Meter, compiled

QUADRATIC = {
    "a loop in a loop": """
        def run(items):
            return sum(1 for a in items for b in items if a is b)
        """,
    "a loop in a called function": """
        def run(items):
            for item in items:
                count(items)
        def count(items):
            number = 0
            for _ in items:
                number += 1
        """,
    "a while loop": """
        def run(items):
            for number in range(len(items)):
                while number > 0:
                    number -= 1
        """,
    "a search in a list": """
        def run(items):
            seen = []
            for item in items:
                if item not in seen:
                    seen.append(item)
        """,
    "an index in a list": """
        def run(items):
            return [items.index(item) for item in items]
        """,
    "a removal from the front": """
        def run(items):
            while items:
                items.pop(0)
        """,
    "a slice for each item": """
        def run(items):
            return [len(items[number:]) for number in range(len(items))]
        """,
    "a copy for each item": """
        def run(items):
            return [list(items) for _ in items]
        """,
    "a copy that grows": """
        def run(items):
            found = ()
            for item in items:
                found = (*found, item)
        """,
    "a sum of tuples": """
        def run(items):
            found = ()
            for item in items:
                found += (item,)
        """,
    "a sum of lists": """
        def run(items):
            found = []
            for item in items:
                found = found + [item]
        """,
    "a map copied for each item": """
        def run(items):
            found = {}
            for item in items:
                found = {**found, item: 1}
        """,
    "a union for each item": """
        def run(items):
            found = frozenset()
            for item in items:
                found = found | {item}
        """,
    "a set that takes in another one each time": """
        def run(items):
            found, every = set(), set(items)
            for item in items:
                found |= every
        """,
    "a sorting for each item": """
        def run(items):
            return [sorted(items)[0] for _ in items]
        """,
    "a message with all items, for each item": """
        def run(items):
            return [f"{item} is none of {', '.join(items)}" for item in items]
        """,
    "an error that quotes the list, for each item": """
        import msgspec
        def run(items):
            return [msgspec.json.encode({"of": items}) for item in items]
        """,
    "a copy of all that is inside, for each item": """
        import copy
        def run(items):
            return [copy.deepcopy({"of": items}) for item in items]
        """,
    "a comparison of equal lists, for each item": """
        def run(items):
            return [items == list(items) for item in items]
        """,
    "a search in a text, for each item": """
        def run(items):
            text = "".join(items)
            return [text.replace(item, "") for item in items]
        """,
    "a text that is searched from its start": """
        def run(items):
            text = "".join(items)
            return [text.find(item) for item in items]
        """,
    "a generator that is run to its end each time": """
        def run(items):
            return [any(one == "?" for one in items) for item in items]
        """,
    "a lambda": """
        def run(items):
            ask = lambda item: item in items
            return [ask(item) for item in items]
        """,
    "a method": """
        class Runner:
            def __init__(self, items):
                self.items = items
            def ask(self, item):
                return item in self.items
        def run(items):
            runner = Runner(items)
            return [runner.ask(item) for item in items]
        """,
}
LINEAR = {
    "nothing": """
        def run(items):
            return None
        """,
    "one pass": """
        def run(items):
            return [item for item in items]
        """,
    "sets and maps": """
        def run(items):
            seen = set()
            for item in items:
                if item not in seen:
                    seen.add(item)
            return {item: seen for item in items}.get("x")
        """,
    "sorting": """
        def run(items):
            return sorted(items, key=lambda item: item[::-1])
        """,
    "one text": """
        def run(items):
            return ", ".join(f"{item}!" for item in items)
        """,
    "the first that fits": """
        def run(items):
            return [next(one for one in items if one) for _ in items]
        """,
    "a text read from where the last word ended": """
        import re
        def run(items):
            text, at = " ".join(items), 0
            word = re.compile(r"\\S+ ?")
            while at < len(text):
                at = word.match(text, at).end()
        """,
    "a stack": """
        def run(items):
            while items:
                items.pop()
        """,
    "work that begins at some size": """
        def run(items):
            if len(items) > 20:
                for item in items:
                    for _ in range(50):
                        pass
        """,
    "the same values, not copies of them": """
        def run(items):
            return [items is items and items for _ in items]
        """,
}


def growth(source: str) -> list[Growth]:
    meter = Meter()
    names: dict[str, Any] = {**meter.helpers(), "__name__": "planted"}
    exec(compiled(meter, textwrap.dedent(source), "planted", "planted.py"), names)

    async def work(count: int) -> None:
        names["run"]([f"item-{number}" for number in range(count)])

    return steep_of(meter, work, 12)


@pytest.mark.parametrize("source", QUADRATIC.values(), ids=QUADRATIC)
def test_quadratic_work_is_found(source: str) -> None:
    """Whatever does it, and the message says where and how much."""
    found = growth(source)
    assert found
    assert all(one.counts[1] > 6 * one.counts[0] for one in found)
    assert str(found[0]).startswith("planted:")


@pytest.mark.parametrize("source", LINEAR.values(), ids=LINEAR)
def test_linear_work_is_not_accused(source: str) -> None:
    """Work that grows with its input is what is wanted."""
    assert growth(source) == []


def test_a_counted_module_does_what_it_did() -> None:
    """The counters change nothing but what is counted."""
    source = '''
        """A module."""
        from __future__ import annotations
        from dataclasses import dataclass

        @dataclass(slots=True)
        class Base:
            """A class."""
            number: int = 0
            def add(self, other: int = 1, *more: int, **named: int) -> int:
                self.number += other + sum(more) + sum(named.values())
                return self.number

        class Other(Base):
            def add(self, other: int = 1, *more: int, **named: int) -> int:
                return super(Other, self).add(other, *more, **named) * 2

        def both(value):
            match value:
                case {"a": int() as number, **rest} if number not in (1, 2):
                    return [number, *rest]
                case [first, *others]:
                    return (first, others[::-1], others[0:1] != [1])
                case _:
                    return f"{value!r:>5}|{len(str(value)):{3}d}"

        async def later(value):
            return [one async for one in each(value)]

        async def each(value):
            for one in value:
                yield one

        def total(values):
            found = 0
            text = ""
            for value in values:
                found += value
                text += str(value)
            return found, text, 1 < found < 100
        '''
    plain: dict[str, Any] = {"__name__": __name__}
    exec(compile(textwrap.dedent(source), "plain.py", "exec", dont_inherit=True), plain)
    meter = Meter()
    counted: dict[str, Any] = {**meter.helpers(), "__name__": __name__}
    exec(compiled(meter, textwrap.dedent(source), "counted", "counted.py"), counted)
    for names in (plain, counted):
        assert names["Other"](3).add(1, 2, 3, four=4) == 26
        assert names["both"]({"a": 3, "b": 4}) == [3, "b"]
        assert names["both"]([1, 2, 3]) == (1, [3, 2], True)
        assert names["both"](7) == "    7|  1"
        assert names["total"]([1, 2, 3]) == (6, "123", True)
        with pytest.raises(StopIteration, match="'a', 'b'"):
            names["later"]("ab").send(None)
    assert sum(meter.work) > 0
