"""Text to tokens.

One regular expression tries every kind of token at a position; the longest match wins, and among equals the first, which is how
the reference lexer decides between `in` and `index` or `1u` and `1`.
"""

from __future__ import annotations

import re
from enum import Enum, auto

from msgspec import Struct

from drayman.cel.errors import Issue


class TokenKind(Enum):
    FLOAT = auto()
    INT = auto()
    UINT = auto()
    STRING = auto()
    BYTES = auto()
    IDENTIFIER = auto()
    ESCAPED_IDENTIFIER = auto()
    SYMBOL = auto()  # punctuation, operators and the words `in`, `true`, `false`, `null`
    END = auto()


class Token(Struct, frozen=True):
    kind: TokenKind
    text: str
    offset: int

    def __str__(self) -> str:
        return "'<EOF>'" if self.kind is TokenKind.END else f"'{self.text}'"


_ESCAPE = (
    r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7])"
)
_STRING = "|".join(
    (
        r'[rR]"""(?:.|\n)*?"""',
        r"[rR]'''(?:.|\n)*?'''",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_HIDDEN = re.compile(r"(?:[\t \r\n\f]+|//[^\n]*)+")
_EXPONENT = r"[eE][+-]?[0-9]+"
_KINDS = (
    (TokenKind.BYTES, re.compile(rf"[bB](?:{_STRING})")),
    (TokenKind.STRING, re.compile(_STRING)),
    (
        TokenKind.FLOAT,
        re.compile(rf"[0-9]+\.[0-9]+(?:{_EXPONENT})?|[0-9]+{_EXPONENT}|\.[0-9]+(?:{_EXPONENT})?"),
    ),
    (TokenKind.UINT, re.compile(r"0x[0-9a-fA-F]+[uU]|[0-9]+[uU]")),
    (TokenKind.INT, re.compile(r"0x[0-9a-fA-F]+|[0-9]+")),
    (TokenKind.IDENTIFIER, re.compile(r"[A-Za-z_][A-Za-z0-9_]*")),
    (TokenKind.ESCAPED_IDENTIFIER, re.compile(r"`[A-Za-z0-9_.\-/ ]+`")),
    (TokenKind.SYMBOL, re.compile(r"==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%]")),
)
_MAX_ISSUES = 100
_WORDS = frozenset(("in", "true", "false", "null"))


def tokenize(source: str) -> tuple[list[Token], list[Issue]]:
    """The tokens, terminated by one of kind END, and what could not be read as a token."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    position = 0
    while True:
        if hidden := _HIDDEN.match(source, position):
            position = hidden.end()
        if position >= len(source):
            tokens.append(Token(TokenKind.END, "<EOF>", len(source)))
            return tokens, issues
        token = _token_at(source, position)
        if token is None:
            message = f"Syntax error: token recognition error at: '{source[position]}'"
            issues.append(Issue.at(source, position, message))
            if len(issues) >= _MAX_ISSUES:
                position = len(source)
            position += 1
            continue
        tokens.append(token)
        position += len(token.text)


def _token_at(source: str, position: int) -> Token | None:
    best_kind, best_end = TokenKind.END, position
    for kind, pattern in _KINDS:
        match = pattern.match(source, position)
        if match is not None and match.end() > best_end:
            best_kind, best_end = kind, match.end()
    if best_end == position:
        return None
    text = source[position:best_end]
    if best_kind is TokenKind.IDENTIFIER and text in _WORDS:
        best_kind = TokenKind.SYMBOL
    return Token(best_kind, text, position)


class Stop(Exception):
    """Ends parsing after an error from which it cannot recover."""


class TokenReader:
    """A position in a list of tokens, which ends with one of kind END."""

    def __init__(self, source: str, tokens: list[Token]) -> None:
        self.issues: list[Issue] = []
        self._source = source
        self._tokens = tokens
        self._position = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _is(self, text: str) -> bool:
        token = self._next
        return token.kind is TokenKind.SYMBOL and token.text == text

    def _advance(self) -> Token:
        token = self._next
        self._position += 1
        return token

    def _accept(self, text: str) -> Token | None:
        return self._advance() if self._is(text) else None

    def _expect(self, text: str, expecting: str = "") -> Token:
        if self._is(text):
            return self._advance()
        token = self._next
        if expecting:
            raise self._syntax_error(token, f"mismatched input {token} expecting {expecting}")
        raise self._syntax_error(token, f"missing '{text}' at {token}")

    def _report(self, offset: int, message: str) -> None:
        self.issues.append(Issue.at(self._source, offset, message))

    def _syntax_error(self, token: Token, message: str) -> Stop:
        self._report(token.offset, f"Syntax error: {message}")
        return Stop()
