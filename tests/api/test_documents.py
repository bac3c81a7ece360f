"""Reading YAML and JSON: values, lines, and everything that is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api import documents
from drayman.api.documents import Document, path_segments, read_documents
from drayman.api.errors import DocumentError
from drayman.api.syntax.yaml_scalars import plain_value


def read(data: str | bytes) -> list[Document]:
    return list(read_documents("file", data.encode() if isinstance(data, str) else data))


def test_a_stream_of_documents() -> None:
    """Documents are handed out one by one, empty ones left out, each with its first line."""
    found = read("# first\na: 1\n---\n---\n# nothing\n---\nb: 2\n")
    assert [(doc.index, doc.line, doc.value) for doc in found] == [
        (0, 2, {"a": 1}),
        (1, 7, {"b": 2}),
    ]


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "\ufeff"])
def test_empty_files(text: str) -> None:
    """A file without objects is no error."""
    assert read(text) == []


def test_lists_are_taken_apart() -> None:
    """The items of a list are objects of their own, at their own lines."""
    found = read("apiVersion: v1\nkind: List\nitems:\n- kind: A\n- kind: B\n  x:\n    z: 1\n")
    assert [(doc.index, doc.line, doc.value["kind"]) for doc in found] == [(0, 4, "A"), (1, 5, "B")]
    assert found[1].line_of("x.z") == 7


def test_lists_in_lists_are_taken_apart() -> None:
    """However deep lists hold lists, the objects come in order and know their lines."""
    inner = "- kind: List\n  items:\n  - kind: A\n    x: 1\n  - kind: NodeList\n    items:\n    - z: 2\n"
    found = read(f"kind: List\nitems:\n{inner}- kind: B\n")
    assert [(doc.line, doc.value["kind"]) for doc in found] == [(5, "A"), (9, "Node"), (10, "B")]
    assert found[0].line_of("x") == 6


def test_a_list_of_nothing_is_empty() -> None:
    """The API server writes null for none."""
    assert read("kind: List\nitems:\n") == []


def test_many_json_objects_in_a_row_keep_their_lines() -> None:
    """Lines are counted on from object to object, not from the start each time."""
    assert [doc.line for doc in read('\n{"a":\n1}\n\n{} {}\n{}')] == [2, 5, 5, 6]


def test_items_of_a_list_of_one_kind_are_of_that_kind() -> None:
    """The API server leaves apiVersion and kind out of such items."""
    (found,) = read('{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {}}]}')
    assert found.value == {"apiVersion": "v1", "kind": "Node", "metadata": {}}


def test_json() -> None:
    """JSON has lines too, and a file may hold several objects in a row."""
    (found,) = read('{\n "a": {\n  "b": [1,\n   2]}}')
    assert found.value == {"a": {"b": [1, 2]}}
    assert (found.line_of("a.b"), found.line_of("a.b[1]"), found.line_of("a.c.d")) == (3, 4, 2)
    assert [doc.line for doc in read('{"a": 1}\n{"b": 2}')] == [1, 2]


def test_yaml_may_start_with_a_brace() -> None:
    """What is no JSON may still be YAML."""
    assert read("{a: b}")[0].value == {"a": "b"}


SCALARS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "yes": True,
    "On": True,
    "n": False,
    "off": False,
    "12": 12,
    "-3": -3,
    "+3": 3,
    "1_000": 1000,
    "0x1F": 31,
    "0b11": 3,
    "0o17": 15,
    "017": 15,
    "08": 8,
    "1.5": 1.5,
    "1e3": 1000,
    "1.0": 1,
    ".5": 0.5,
    "2024-01-01": "2024-01-01",
    "2024-01-01T00:00:00Z": "2024-01-01T00:00:00Z",
    "12:30:45": "12:30:45",
    "1e400": "1e400",
    "18446744073709551616": 18446744073709551616,
    "0x10000000000000000": "0x10000000000000000",
    "1.2.3": "1.2.3",
    "80Gi": "80Gi",
    "-": "-",
    "+.": "+.",
    "NaN": "NaN",
    "'12'": "12",
    '"yes"': "yes",
    "!!str 12": "12",
    "! 12": "12",
}


@pytest.mark.parametrize(("text", "value"), SCALARS.items(), ids=lambda value: str(value)[:20])
def test_scalars(text: str, value: Any) -> None:
    """Texts without quotes mean what Kubernetes takes them for: no dates, no minutes, but yes and octal numbers."""
    found = read(f"a: {text}\n")[0].value["a"] if text != "-" else plain_value("-")
    assert found == value
    assert type(found) is type(value)


def test_anchors_and_merges() -> None:
    """Aliases repeat values, and << fills in what a mapping does not have itself."""
    (found,) = read(
        "base: &b {x: 1, w: 2}\ncopy: *b\nmore:\n  <<: *b\n  w: 3\nlist:\n  <<: [*b, {z: 4}]\n"
    )
    assert found.value == {
        "base": {"x": 1, "w": 2},
        "copy": {"x": 1, "w": 2},
        "more": {"x": 1, "w": 3},
        "list": {"x": 1, "w": 2, "z": 4},
    }


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{key}: &{key} [{','.join([f'*{before}'] * 10)}]\n"
    for before, key in zip("abcdef", "bcdefg", strict=True)
)
REFUSED: dict[str, tuple[str | bytes, int, str]] = {
    "duplicate key": ("a: 1\nb: 2\na: 3\n", 3, "'a' is there twice"),
    "duplicate key in JSON": ('{"a": 1, "a": 2}', 1, "'a' is there twice"),
    "number as a key": ("a: 1\n5: x\n", 2, "put it in quotes"),
    "boolean as a key": ("on: x\n", 1, "put it in quotes"),
    "null as a key": ("~: x\n", 1, "put it in quotes"),
    "list as a key": ("? [a]\n: x\n", 1, "a key must be a text"),
    "alias as a key": ("a: &x b\n? *x\n: c\n", 2, "not an alias"),
    "tag": ("a: !!python/object:os.system x\n", 1, "is not supported"),
    "tag on a list": ("a: !mine [1]\n", 1, "is not supported"),
    "date tag": ("a: !!timestamp 2024-01-01\n", 1, "is not supported"),
    "not a number": ("a: .nan\n", 1, "not a number in JSON"),
    "infinite": ("a: -.inf\n", 1, "not a number in JSON"),
    "NaN in JSON": ('{"a": NaN}', 1, "not a number in JSON"),
    "half a character": ('{"a": "\\ud800"}', 1, "surrogate"),
    "alias bomb": (BOMB, 5, "aliases stand for more than"),
    "alias of itself": ("a: &a [*a]\n", 1, "contains itself"),
    "unknown alias": ("a: *b\n", 1, "unknown"),
    "merge of a number": ("a: {<<: 5}\n", 1, "only mappings can be merged"),
    "deep YAML": ("a:\n" + "- " * 500 + "x", 2, "nested more than 256"),
    "deep JSON": ('{"a":' * 100_000, 1, "nested more than 256"),
    "just too deep": ('{"a":' * 257 + "1" + "}" * 257, 1, "nested more than 256"),
    "deep with half a character": (
        '{"a": "\\ud83d\\ude00", "b":' + "[" * 960 + "]" * 960 + "}",
        1,
        "nested more than 256",
    ),
    "deep lists": ("[" * 100_000, 1, "nested more than 256"),
    "not UTF-8": (b"a: 1\nb: \xff\n", 2, "not valid UTF-8"),
    "NUL": (b"a: 1\nb: \x00", 2, "not valid YAML"),
    "bad YAML": ("a: [1\nb: 2\n", 2, "not valid YAML"),
    "bad JSON": ('{"a": 1,\n "b" 2}', 2, "not valid JSON"),
    "text": ("hello", 1, "expected an object"),
    "list": ("- a\n", 1, "expected an object"),
    "item that is no object": ("kind: List\nitems: [5]\n", 1, "items[0] is not an object"),
    "item of a list in a list": (
        "kind: List\nitems: [{}, {kind: List, items: [{}, 5]}]\n",
        1,
        "items[1].items[1] is not an object",
    ),
    "no items": ("kind: List\n", 1, "items is not a list"),
    "items that are no list": ("kind: List\nitems: {}\nx: 1\n", 1, "items is not a list"),
    "UTF-16": ("a: 1\n".encode("utf-16"), 1, "not valid UTF-8; it looks like UTF-16"),
    "UTF-16 without a mark": ("a: 1\n".encode("utf-16-le"), 1, "not valid YAML"),
    "a character encoded as two halves": (b"a: 1\nb: \xed\xa0\x80\n", 2, "not valid UTF-8"),
    "half a character in YAML": ('a: "\\ud800"\n', 1, "not valid YAML"),
    "tabs": ("a:\n\tb: 1\n", 2, "not valid YAML"),
    "bad indentation": ("a:\n   b: 1\n  c: 2\n", 3, "not valid YAML"),
    "cut off": ("a: 'b\n", 1, "not valid YAML"),
    "cut off JSON": ('{"a":\n', 2, "not valid JSON"),
    "aliases over many documents": (
        "---\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n" * 400,
        1436,
        "aliases stand for more than",
    ),
}


@pytest.mark.parametrize(("data", "line", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(data: str | bytes, line: int, message: str) -> None:
    """Bad input is an error with the file, the line where one is known, and what is wrong."""
    with pytest.raises(DocumentError) as caught:
        read(data)
    assert message in caught.value.message
    assert (caught.value.file, caught.value.line) == ("file", line)


def test_large_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beyond the limit is refused before anything is parsed."""
    monkeypatch.setattr(documents, "MAX_BYTES", 10)
    with pytest.raises(DocumentError, match="larger than"):
        read("a: 1\nb: 2\nc: 3\n")


def test_documents_before_an_error_are_handed_out() -> None:
    """Whoever wants to can use what came before the first error."""
    stream = read_documents("file", b"a: 1\n---\na: [\n")
    assert next(stream).value == {"a": 1}
    with pytest.raises(DocumentError):
        next(stream)


def test_lines_before_an_error_are_known() -> None:
    """A broken document does not take away the lines of those before it."""
    stream = read_documents("file", b"a: 1\nb: 2\n---\na: [\n")
    assert next(stream).line_of("b") == 2


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        ("", ()),
        ("spec.devices[0].name", ("spec", "devices", "0", "name")),
        ("metadata.labels[a.b/c]", ("metadata", "labels", "a.b/c")),
    ],
)
def test_paths_have_parts(path: str, segments: tuple[str, ...]) -> None:
    """Keys in brackets are whole, whatever is in them."""
    assert path_segments(path) == segments


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(alphabet="abc", min_size=1), values, max_size=3))
def test_json_reads_as_itself(value: dict[str, Any]) -> None:
    """Any JSON object is read as what it is."""
    (found,) = read(json.dumps(value))
    assert found.value == value


@given(
    st.binary(max_size=60) | st.text(alphabet="ab:-[]{}&*!#'\" \n1.", max_size=40).map(str.encode)
)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """No bytes make reading fail in another way, and every line is one of the file."""
    try:
        found = read(data)
    except DocumentError:
        return
    for document in found:
        assert 1 <= document.line <= data.count(b"\n") + data.count(b"\r") + 1
