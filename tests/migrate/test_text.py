"""Changing values in a text leaves the rest of it alone."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.struct import Json
from drayman.api.syntax.yaml_text import parse_yaml
from drayman.migrate.text.files import DocumentEdit, read_documents, write_documents
from drayman.migrate.text.patching import patched
from drayman.migrate.text.rendering import block_lines, flow_text
from drayman.migrate.text.tree import parse_tree

words = st.sampled_from(["a", "b", "c", "name", "spec"])
scalars = st.one_of(
    st.integers(0, 3),
    st.booleans(),
    st.none(),
    st.sampled_from(["x", "y z", "1", "no", "y", "0o7", "a\nb\n", "#", ""]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(words, inner, min_size=1, max_size=4),
    ),
    max_leaves=12,
)
mappings = st.dictionaries(words, values, min_size=1, max_size=4)


def value_of(text: str) -> Json:
    """What a text says."""
    (document,) = parse_yaml("test", text)
    return document.value


def commented(value: Json, *, lists_indented: bool) -> tuple[str, list[str]]:
    """A text with a comment above and at the end of each line."""
    lines, comments = [], []
    for number, line in enumerate(block_lines(value, lists_indented=lists_indented)):
        inside = line.lstrip() in ("a", "b")  # of a text of two lines, which can have no comments
        above, beside = f"# above {number}.", f"# beside {number}."
        indent = " " * (len(line) - len(line.lstrip()))
        lines += [line] if inside else [f"{indent}{above}", f"{line}  {beside}"]
        comments += [] if inside else [above, beside]
    return "\n".join(lines) + "\n", comments


@given(old=mappings, new=mappings, lists_indented=st.booleans())
def test_any_change_is_carried_into_the_text(old: Json, new: Json, lists_indented: bool) -> None:
    """The changed text says what it should, and not one comment is lost."""
    text, comments = commented(old, lists_indented=lists_indented)
    tree = parse_tree(text)
    assert tree is not None
    changed = patched(tree, old, new)
    assert value_of(changed) == new
    assert [each for each in comments if each not in changed] == []


FLOW = {
    "a key leaves": (
        """a: {b: 'x', c: "y", d: 1}""",
        {"a": {"b": "x", "c": "y"}},
        """a: {b: 'x', c: "y"}""",
    ),
    "a key comes": ("""a: {"b": 'x'}""", {"a": {"b": "x", "c": 1}}, """a: {"b": 'x', c: 1}"""),
    "an item of a list changes": (
        """a: ['x', {b: "y", c: yes}]""",
        {"a": ["x", {"b": "z", "c": True}]},
        """a: ['x', {b: "z", c: yes}]""",
    ),
    "blanks within braces": ("a: { b: 'x', c: 1 }", {"a": {"b": "x"}}, "a: { b: 'x' }"),
    "an item of a block": ("""- {b: "x", c: 1}""", [{"b": "x"}], """- {b: "x"}"""),
    "a word instead of a list": (
        """a: {b: ['x'], c: 'y'}""",
        {"a": {"b": 1, "c": "y"}},
        """a: {b: 1, c: 'y'}""",
    ),
}


@pytest.mark.parametrize("case", FLOW)
def test_what_does_not_change_on_a_line_keeps_its_quotes(case: str) -> None:
    """Within braces and brackets, scalars and keys are copied as they are written."""
    text, new, expected = FLOW[case]
    tree = parse_tree(text)
    assert tree is not None
    assert patched(tree, value_of(text), new) == expected


@given(old=mappings, new=mappings)
def test_any_change_is_carried_into_a_line(old: Json, new: Json) -> None:
    """A text in flow style says what it should after a change."""
    text = flow_text(old)
    tree = parse_tree(text)
    assert tree is not None
    assert value_of(patched(tree, old, new)) == new


@given(value=mappings, lists_indented=st.booleans())
def test_no_change_leaves_every_byte(value: Json, lists_indented: bool) -> None:
    """A text whose value stays is the same text."""
    text, _ = commented(value, lists_indented=lists_indented)
    documents = read_documents("test", text)
    assert write_documents(text, documents, [DocumentEdit(each.value) for each in documents]) == (
        text,
        [],
    )


@dataclass(frozen=True, slots=True)
class Edit:
    """A text, the value it is to have, and the text it is to be."""

    name: str
    before: str
    value: Json
    after: str


EDITS = [
    Edit("a scalar keeps its quotes", 'a: "x" # why\nb: 1\n', {"a": "it's", "b": 1}, 'a: "it\'s" # why\nb: 1\n'),
    Edit("single quotes", "a: 'x'\n", {"a": "it's"}, "a: 'it''s'\n"),
    Edit("a plain scalar gets quotes where it needs them", "a: x\n", {"a": "1"}, "a: '1'\n"),
    Edit("an empty value is filled in", "a:   # why\nb: 1\n", {"a": "x", "b": 1}, "a: x   # why\nb: 1\n"),
    Edit(
        "fields move one level deeper with their comments",
        "- name: me\n  # the class\n  class: c # this one\n  text: |\n    one\n      two\n\n",
        [{"name": "me", "exactly": {"class": "c", "text": "one\n  two\n"}}],
        "- name: me\n  exactly:\n    # the class\n    class: c # this one\n    text: |\n      one\n        two\n\n",
    ),
    Edit(
        "fields move one level higher with their comments",
        "a:\n  - name: me\n    source:  # from\n      # a claim\n      claim: c # this\n",
        {"a": [{"name": "me", "claim": "c"}]},
        "a:\n  - name: me\n    # from\n    # a claim\n    claim: c # this\n",
    ),
    Edit("the first field of an item goes", "- a: 1 # one\n  b: 2\n", [{"b": 2}], "- # one\n  b: 2\n"),
    Edit("a field is renamed in its place", "old: 8 # all\nb: 1\n", {"new": 8, "b": 1}, "new: 8 # all\nb: 1\n"),
    Edit("a new item is indented as others are", "l:\n   -   a\n", {"l": ["a", "b"]}, "l:\n   -   a\n   - b\n"),
    Edit("braces stay braces", "a: {b: 1, c: [x]} # so\n", {"a": {"b": 2, "c": ["x"]}}, "a: {b: 2, c: [x]} # so\n"),
    Edit(
        "odd indentation stays",
        "a:\n     b: 1\n# far left\n     c: 2\n",
        {"a": {"b": 1, "c": 3}},
        "a:\n     b: 1\n# far left\n     c: 3\n",
    ),
    Edit("a dash alone in its line", "-\n  a: 1\n  b: 2\n", [{"a": 1, "b": 3}], "-\n  a: 1\n  b: 3\n"),
    Edit("a hash in a text is no comment", "a: 'x # y'\nb: 1\n", {"b": 1}, "b: 1\n"),
    Edit("an anchor stays on its list", "a: &l\n  - x\nb: 1\n", {"a": ["x", "z"], "b": 1}, "a: &l\n  - x\n  - z\nb: 1\n"),
]  # fmt: skip


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_edits(edit: Edit) -> None:
    """What changes is written as its surroundings are."""
    tree = parse_tree(edit.before)
    assert tree is not None
    assert patched(tree, value_of(edit.before), edit.value) == edit.after


def test_an_alias_that_loses_its_anchor_is_written_anew() -> None:
    """The text that is left over would be no YAML any more."""
    text = "a: {b: &b {k: 1}}\nc:\n  <<: *b\n  d: 1\n"
    documents = read_documents("test", text)
    wanted: Json = {"a": {"b": 2}, "c": {"k": 1, "d": 1}}
    written, anew = write_documents(text, documents, [DocumentEdit(wanted)])
    assert (value_of(written), anew) == (wanted, [0])


def test_what_an_alias_shares_is_written_anew() -> None:
    """A change to one use of an anchor cannot be made in the text; the document says the right thing all the same."""
    text = "a: &x # shared\n  k: 1\nb: *x\n"
    documents = read_documents("test", text)
    written, anew = write_documents(text, documents, [DocumentEdit({"a": {"k": 2}, "b": {"k": 1}})])
    assert (value_of(written), anew) == ({"a": {"k": 2}, "b": {"k": 1}}, [0])


def test_only_the_changed_document_is_touched() -> None:
    """Separators, directives, comments between documents and documents without content stay."""
    text = "%YAML 1.1\n---\n# one\na:   1\n--- # two\na: 2\n...\n---\n---\na:   3"
    documents = read_documents("test", text)
    changes = [
        DocumentEdit({"a": 9} if each.value == {"a": 2} else each.value) for each in documents
    ]
    written, _ = write_documents(text, documents, changes)
    assert written == text.replace("a: 2", "a: 9")
