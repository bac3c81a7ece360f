"""Everything that can go wrong with an expression.

    CelError
    ├── CompileError       the text is not an expression of the environment; carries every issue found
    └── EvaluationError    the expression has no value for this input
        └── AbortError     the evaluation ended on the spot
            ├── CostLimitError it became too expensive
            └── InternalError  the reference implementation breaks down here

Evaluation errors are values of the language: `||`, `&&` and the comprehensions may absorb them. An `AbortError` is
never absorbed.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

_LONGEST_SNIPPET = 16_384  # bytes
_WIDE_DOT, _WIDE_CARET = "\uff0e", "\uff3e"
"""Full-width forms, which upstream puts under everything beyond ASCII."""


class CelError(Exception):
    """Base of all errors of this package."""


class Issue(Struct, frozen=True):
    """One problem in a source text. Lines and columns count from one; line 0 means the text as a whole."""

    message: str
    offset: int = -1  # in code points; -1 for the text as a whole
    line: int = 0
    column: int = 0

    @classmethod
    def at(cls, source: str, offset: int, message: str) -> Issue:
        line = source.count("\n", 0, offset) + 1
        return cls(message, offset, line, offset - (source.rfind("\n", 0, offset) + 1) + 1)

    def render(self, source: str) -> str:
        """The message with the offending line and a caret under the column."""
        if self.offset < 0:
            return f"ERROR: <input>:-1:0: {self.message}"
        if not source:  # There is no line to show, and only here upstream counts columns from zero.
            return f"ERROR: <input>:1:0: {self.message}"
        text = f"ERROR: <input>:{self.line}:{self.column}: {self.message}"
        snippet = source.split("\n")[self.line - 1].replace("\t", " ")
        if len(snippet.encode("utf-8", "surrogatepass")) > _LONGEST_SNIPPET:
            return text
        before, at = snippet[: self.column - 1], snippet[self.column - 1 : self.column]
        dots = "".join("." if char.isascii() else _WIDE_DOT for char in before)
        return f"{text}\n | {snippet}\n | {dots}{'^' if at.isascii() else _WIDE_CARET}"


class CompileError(CelError):
    """The expression does not compile.

    `issues` says what is wrong and where, and is empty for a problem of the expression as a whole. `is_internal` marks one that appears
    only when the program is built, such as a constant conversion that fails.
    """

    def __init__(
        self,
        message: str,
        source: str = "",
        issues: Iterable[Issue] = (),
        *,
        is_internal: bool = False,
    ) -> None:
        super().__init__(message)
        self.source = source
        self.issues = tuple(issues)
        self.is_internal = is_internal

    @classmethod
    def from_issues(cls, source: str, issues: Iterable[Issue]) -> CompileError:
        found = sorted(issues, key=lambda issue: (issue.line, issue.column))
        return cls("\n".join(issue.render(source) for issue in found), source, found)


class EvaluationError(CelError):
    """The expression has no value for the given input."""

    @property
    def message(self) -> str:
        return str(self)


class AbortError(EvaluationError):
    """The evaluation as a whole ended early."""


class CostLimitError(AbortError):
    """The evaluation costs more than its limit."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class InternalError(AbortError):
    """A function got a value that the reference implementation does not expect: it panics there, so nothing can absorb the error."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"internal error: {reason}")
