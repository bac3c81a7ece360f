"""The values that literal tokens stand for. Everything here raises ValueError with a message for the user."""

from __future__ import annotations

import math

from drayman.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_HEX_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}
_MAX_DIGITS = 400  # longer numbers are out of range anyway, and int() is quadratic
_MAX_CODE_POINT = 0x10FFFF


def integer(text: str, negative: bool) -> int:
    value = _digits(text, "invalid int literal")
    value = -value if negative else value
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError("invalid int literal")
    return value


def unsigned(text: str) -> UInt:
    value = _digits(text[:-1], "invalid uint literal")
    if value > UINT_MAX:
        raise ValueError("invalid uint literal")
    return UInt(value)


def double(text: str, negative: bool) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("invalid double literal")
    return -value if negative else value


def _digits(text: str, message: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(message)
    return int(text[2:], 16) if text.startswith("0x") else int(text)


def string(token: str) -> str:
    body, raw = _body(token)
    if raw or "\\" not in body:
        return body
    return "".join(chr(unit) for unit in _units(body, of_bytes=False))


def byte_string(token: str) -> bytes:
    """The value of a bytes token. Characters stand for their UTF-8 encoding, octal and hexadecimal escapes for one byte."""
    body, raw = _body(token[1:])
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    parts = bytearray()
    for unit in _units(body, of_bytes=True):
        # A negative unit is an escape that names a byte; see `_units`.
        parts += bytes((-unit - 1,)) if unit < 0 else chr(unit).encode("utf-8", "surrogatepass")
    return bytes(parts)


def _body(token: str) -> tuple[str, bool]:
    """What is between the quotes, with line ends normalised, and whether escapes are to be left alone."""
    text = token.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if len(text) >= 6 and text.startswith(("'''", '"""')) else 1
    return text[quotes:-quotes], raw


def _units(body: str, *, of_bytes: bool) -> list[int]:
    """Code points; in bytes, escapes that name a byte `b` are given as `-b - 1`."""
    units: list[int] = []
    position = 0
    while position < len(body):
        if body[position] != "\\":
            units.append(ord(body[position]))
            position += 1
            continue
        code = body[position + 1]
        if code in _SIMPLE:
            units.append(ord(_SIMPLE[code]))
            position += 2
            continue
        if code in _HEX_DIGITS:
            start, length, base = position + 2, _HEX_DIGITS[code], 16
        else:
            start, length, base = position + 1, 3, 8
        units.append(_escaped(body[start : start + length], base, code, of_bytes))
        position = start + length
    return units


def _escaped(digits: str, base: int, code: str, of_bytes: bool) -> int:
    value = int(digits, base)
    if not of_bytes:
        if value > _MAX_CODE_POINT or 0xD800 <= value <= 0xDFFF:
            raise ValueError("invalid unicode code point")
        return value
    if code in "uU":
        raise ValueError("unable to unescape string")
    return -value - 1
