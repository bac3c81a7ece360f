"""Reading tokens one after the other, with the errors that can occur."""

from __future__ import annotations

from drayman.cel.errors import Issue
from drayman.cel.lexer import Token, TokenKind


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
