"""What is wrong with text that is not JSON, in the words of the API server.

The fast decoders word it differently, and clients show these texts to people. So when one of them refuses a body, it is
read again, byte by byte, with a scanner whose states are the ones those texts refer to.
"""

from __future__ import annotations

import re
from typing import Final

UNEXPECTED_END: Final = "unexpected end of JSON input"

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_PLAIN_TEXT: Final = re.compile(rb'[^"\\\x00-\x1f]*')
_SIMPLE_ESCAPES: Final = frozenset(b'bfnrt\\/"')
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_DIGITS: Final = frozenset(b"0123456789")
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_SHORT_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\",
}  # fmt: skip


def quoted(text: str, mark: str = '"') -> str:
    """A text between quotation marks, with everything that does not print escaped."""
    return mark + "".join(_escaped(character, mark) for character in text) + mark


def _escaped(character: str, mark: str) -> str:
    if character == mark:
        return f"\\{mark}"
    if (short := _SHORT_ESCAPES.get(character)) is not None:
        return short
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def syntax_error(body: bytes) -> str | None:
    """What is wrong with a body, or None if it is JSON."""
    scanner = _Scanner(body)
    try:
        scanner.document()
    except _Invalid as error:
        return str(error)
    return None


class _Invalid(Exception):
    """Ends the scan. Its text is the answer."""


class _Scanner:
    """Walks over a text once, without building anything and without recursion."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def document(self) -> None:
        open_containers: list[int] = []
        self._value_or_opening(open_containers)
        while open_containers:
            self._continue(open_containers)
        if (character := self._after_space()) is not None:
            raise self._unexpected(character, "after top-level value")

    def _continue(self, containers: list[int]) -> None:
        """What may follow a finished value: a comma and the next one, or the end of the container."""
        is_object = containers[-1] == ord("{")
        character = self._required_after_space()
        if character == ord(","):
            self._at += 1
            if is_object:
                self._key()
            self._value_or_opening(containers)
        elif character == (ord("}") if is_object else ord("]")):
            self._at += 1
            containers.pop()
        else:
            place = "after object key:value pair" if is_object else "after array element"
            raise self._unexpected(character, place)

    def _value_or_opening(self, containers: list[int]) -> None:
        """Reads a scalar, or opens containers until one is empty or has a scalar as its first item."""
        while True:
            character = self._required_after_space()
            if character not in (ord("{"), ord("[")):
                self._scalar(character)
                return
            self._at += 1
            following = self._required_after_space()
            if following == (ord("}") if character == ord("{") else ord("]")):
                self._at += 1
                return
            containers.append(character)
            if character == ord("{"):
                self._key()

    def _key(self) -> None:
        character = self._required_after_space()
        if character != ord('"'):
            raise self._unexpected(character, "looking for beginning of object key string")
        self._string()
        character = self._required_after_space()
        if character != ord(":"):
            raise self._unexpected(character, "after object key")
        self._at += 1

    def _scalar(self, character: int) -> None:
        if character == ord('"'):
            self._string()
        elif (literal := _LITERALS.get(character)) is not None:
            self._literal(literal)
        elif character == ord("-") or character in _DIGITS:
            self._number()
        else:
            raise self._unexpected(character, "looking for beginning of value")

    def _literal(self, literal: bytes) -> None:
        for expected in literal:
            character = self._required()
            if character != expected:
                place = f"in literal {literal.decode()} (expecting '{chr(expected)}')"
                raise self._unexpected(character, place)
            self._at += 1

    def _string(self) -> None:
        self._at += 1
        while True:
            plain = _PLAIN_TEXT.match(self._body, self._at)
            self._at = plain.end() if plain else self._at
            character = self._required()
            self._at += 1
            if character == ord('"'):
                return
            if character != ord("\\"):
                raise self._unexpected(character, "in string literal")
            self._escape()

    def _escape(self) -> None:
        character = self._required()
        self._at += 1
        if character == ord("u"):
            for _ in range(4):
                digit = self._required()
                if digit not in _HEX:
                    raise self._unexpected(digit, "in \\u hexadecimal character escape")
                self._at += 1
        elif character not in _SIMPLE_ESCAPES:
            raise self._unexpected(character, "in string escape code")

    def _number(self) -> None:
        if self._body[self._at] == ord("-"):
            self._at += 1
            self._digit("in numeric literal")
        if self._body[self._at] == ord("0"):
            self._at += 1
        else:
            self._digits()
        if self._peek() == ord("."):
            self._at += 1
            self._digit("after decimal point in numeric literal")
            self._digits()
        if self._peek() in (ord("e"), ord("E")):
            self._at += 1
            if self._peek() in (ord("+"), ord("-")):
                self._at += 1
            self._digit("in exponent of numeric literal")
            self._digits()

    def _digit(self, place: str) -> None:
        character = self._required()
        if character not in _DIGITS:
            raise self._unexpected(character, place)

    def _digits(self) -> None:
        while self._peek() in _DIGITS:
            self._at += 1

    def _peek(self) -> int | None:
        return self._body[self._at] if self._at < len(self._body) else None

    def _required(self) -> int:
        if self._at >= len(self._body):
            raise _Invalid(UNEXPECTED_END)
        return self._body[self._at]

    def _after_space(self) -> int | None:
        space = _SPACE.match(self._body, self._at)
        self._at = space.end() if space else self._at
        return self._peek()

    def _required_after_space(self) -> int:
        self._after_space()
        return self._required()

    def _unexpected(self, character: int, place: str) -> _Invalid:
        shown = "'\"'" if character == ord('"') else quoted(chr(character), "'")
        return _Invalid(f"invalid character {shown} {place}")
