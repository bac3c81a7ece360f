"""Tokens to a tree, with macros expanded during parsing.

Recursive descent along CEL's grammar. The limits on nesting are the reference implementation's, rule by rule, so that an
expression is accepted here exactly if it is there. Parsing stops at the first syntax error; errors that leave the structure
clear (a bad literal, a misused macro) are collected.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct, field

from drayman.cel import ast, literals
from drayman.cel.errors import CompileError, Issue
from drayman.cel.lexer import Stop, Token, TokenKind, TokenReader, tokenize
from drayman.cel.macros import Macro, MacroError
from drayman.cel.trees import TreeBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_NESTING = 250
MAX_CODE_POINTS = 100_000

_RESERVED = frozenset(
    (
        "as break const continue else false for function if import in let "
        "loop package namespace null return true var void while"
    ).split()
)
_RELATIONS = frozenset(("<", "<=", ">=", ">", "==", "!=", "in"))
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_WORD_VALUES: Mapping[str, object] = {"true": True, "false": False, "null": None}
_EXPRESSION_START = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"


class Syntax(Struct, frozen=True):
    """What the parser of an environment accepts: its macros by (name, arity, member), and optional parts of the grammar."""

    macros: Mapping[tuple[str, int, bool], Macro] = field(default_factory=dict)
    escaped_identifiers: bool = False


def parse(source: str, syntax: Syntax) -> ast.Parsed:
    """Raises CompileError. Needs `room_for_recursion`."""
    if len(source) > MAX_CODE_POINTS:
        text = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_CODE_POINTS}"
        raise CompileError.from_issues(source, [Issue(text)])
    tokens, issues = tokenize(source)
    parser = _Parser(source, tokens, syntax)
    expr: ast.Expr | None = None
    try:
        expr = parser.start()
    except Stop:
        pass
    issues += parser.issues
    if issues or expr is None:
        raise CompileError.from_issues(source, issues)
    return ast.Parsed(source, expr, parser.tree.offsets)


class _Parser(TokenReader):
    def __init__(self, source: str, tokens: list[Token], syntax: Syntax) -> None:
        super().__init__(source, tokens)
        self.tree = TreeBuilder()
        self._syntax = syntax
        self._depths = {"expr": 0, "relation": 0, "calc": 0}

    @contextmanager
    def _nested(self, rule: str) -> Iterator[None]:
        self._depths[rule] += 1
        if self._depths[rule] > MAX_NESTING:
            self.issues.append(Issue(f"expression recursion limit exceeded: {MAX_NESTING}"))
            raise Stop
        yield
        self._depths[rule] -= 1

    def _check_height(self, expr: ast.Expr) -> ast.Expr:
        if self.tree.height(expr) > MAX_NESTING:
            self.issues.append(Issue("max recursion depth exceeded"))
            raise Stop
        return expr

    # --- grammar, from the outside in ---

    def start(self) -> ast.Expr:
        expr = self._expr()
        token = self._next
        if token.kind is not TokenKind.END:
            word = (
                "extraneous"
                if self._tokens[self._position + 1].kind is TokenKind.END
                else "mismatched"
            )
            raise self._syntax_error(token, f"{word} input {token} expecting <EOF>")
        return expr

    def _expr(self) -> ast.Expr:
        with self._nested("expr"):
            condition = self._logical("||", "_||_")
            question = self._accept("?")
            if question is None:
                return condition
            call_id = self.tree.new_id(question.offset)
            if_true = self._logical("||", "_||_")
            self._expect(":", "':'")
            if_false = self._expr()
            return self._call(call_id, "_?_:_", (condition, if_true, if_false), counted=True)

    def _logical(self, operator: str, function: str) -> ast.Expr:
        """A chain of `||` or of `&&`, as a balanced tree: chains may be long."""
        terms = [self._term(operator)]
        ids: list[int] = []
        while (token := self._accept(operator)) is not None:
            terms.append(self._term(operator))
            ids.append(self.tree.new_id(token.offset))
        return self._balanced(function, terms, ids, 0, len(ids) - 1) if ids else terms[0]

    def _term(self, operator: str) -> ast.Expr:
        return self._logical("&&", "_&&_") if operator == "||" else self._relation()

    def _balanced(
        self, function: str, terms: list[ast.Expr], ids: list[int], low: int, high: int
    ) -> ast.Expr:
        middle = (low + high + 1) // 2
        left = (
            terms[middle]
            if middle == low
            else self._balanced(function, terms, ids, low, middle - 1)
        )
        right = (
            terms[middle + 1]
            if middle == high
            else self._balanced(function, terms, ids, middle + 1, high)
        )
        return self._call(ids[middle], function, (left, right))

    def _relation(self) -> ast.Expr:
        with self._nested("relation"):
            left = self._calc(0)
            while (token := self._next).kind is TokenKind.SYMBOL and token.text in _RELATIONS:
                self._advance()
                call_id = self.tree.new_id(token.offset)
                with self._nested("relation"):
                    right = self._calc(0)
                function = "@in" if token.text == "in" else f"_{token.text}_"
                left = self._call(call_id, function, (left, right), counted=True)
            return left

    def _calc(self, above: int) -> ast.Expr:
        """A sum or product of operators that bind tighter than `above`."""
        with self._nested("calc"):
            left = self._unary()
            while (token := self._next).kind is TokenKind.SYMBOL:
                precedence = _PRECEDENCE.get(token.text, 0)
                if precedence <= above:
                    break
                self._advance()
                call_id = self.tree.new_id(token.offset)
                right = self._calc(precedence)
                left = self._call(call_id, f"_{token.text}_", (left, right), counted=True)
            return left

    def _unary(self) -> ast.Expr:
        token = self._next
        for symbol, function in (("!", "!_"), ("-", "-_")):
            if not self._is(symbol) or self._starts_negative_literal():
                continue
            count = 0
            while self._accept(symbol) is not None:
                count += 1
            operand = self._member()
            if count % 2 == 0:
                return operand
            return self._call(self.tree.new_id(token.offset), function, (operand,))
        return self._member()

    def _starts_negative_literal(self) -> bool:
        following = self._tokens[self._position + 1]
        return self._is("-") and following.kind in (TokenKind.INT, TokenKind.FLOAT)

    def _member(self) -> ast.Expr:
        expr = self._primary()
        while True:
            if self._is("."):
                expr = self._select_or_call(expr, self._advance())
            elif self._is("["):
                bracket = self._advance()
                optional = self._accept("?") is not None
                call_id = self.tree.new_id(bracket.offset)
                index = self._expr()
                self._expect("]")
                function = "_[?_]" if optional else "_[_]"
                expr = self._call(call_id, function, (expr, index), counted=True)
            else:
                return expr

    def _select_or_call(self, operand: ast.Expr, dot: Token) -> ast.Expr:
        if self._accept("?") is not None:
            name_token = self._next
            name = ast.Literal(self.tree.new_id(name_token.offset), self._field_name())
            return self._call(self.tree.new_id(dot.offset), "_?._", (operand, name), counted=True)
        escaped = self._next.kind is TokenKind.ESCAPED_IDENTIFIER
        name_text = self._field_name()
        if not escaped and self._is("("):
            opening = self._advance()
            args = self._arguments()
            return self._call(
                self.tree.new_id(opening.offset), name_text, args, operand, counted=True
            )
        select = ast.Select(self.tree.new_id(dot.offset), operand, name_text)
        self.tree.set_height(select, (operand,), counted=True)
        return self._check_height(select)

    def _field_name(self) -> str:
        token = self._next
        if token.kind is TokenKind.IDENTIFIER:
            return self._advance().text
        if token.kind is TokenKind.ESCAPED_IDENTIFIER:
            if not self._syntax.escaped_identifiers:
                self._report(token.offset, "unsupported syntax: '`'")
            return self._advance().text[1:-1]
        text = f"mismatched input {token} expecting {{IDENTIFIER, ESC_IDENTIFIER}}"
        raise self._syntax_error(token, text)

    def _arguments(self) -> tuple[ast.Expr, ...]:
        """After the opening parenthesis, through the closing one."""
        if self._accept(")") is not None:
            return ()
        args = [self._expr()]
        while self._accept(",") is not None:
            args.append(self._expr())
        self._expect(")", "{')', ','}")
        return tuple(args)

    def _primary(self) -> ast.Expr:
        token = self._next
        if token.kind is TokenKind.IDENTIFIER or self._is("."):
            return self._name()
        if token.kind is not TokenKind.SYMBOL:
            return self._literal()
        if self._accept("(") is not None:
            expr = self._expr()
            self._expect(")")
            return expr
        if self._accept("[") is not None:
            return self._list(token)
        if self._accept("{") is not None:
            return self._map(token)
        if token.text in _WORD_VALUES:
            return ast.Literal(self.tree.new_id(self._advance().offset), _WORD_VALUES[token.text])
        if self._starts_negative_literal():
            return self._literal()
        raise self._unexpected(token)

    def _unexpected(self, token: Token) -> Stop:
        return self._syntax_error(token, f"mismatched input {token} expecting {_EXPRESSION_START}")

    def _name(self) -> ast.Expr:
        """An identifier, a call of a global function, or a message literal such as `a.b.C{f: 1}`."""
        start = self._next
        prefix = "." if self._accept(".") is not None else ""
        token = self._next
        if token.kind is not TokenKind.IDENTIFIER:
            raise self._syntax_error(token, f"mismatched input {token} expecting IDENTIFIER")
        self._advance()
        name = prefix + token.text
        if (length := self._message_name_length()) is not None:
            rest = "".join(self._advance().text for _ in range(length))
            return self._message(name + rest, self._advance())
        if token.text in _RESERVED:
            self._report(start.offset, f"reserved identifier: {token.text}")
        if self._is("("):
            opening = self._advance()
            call_id = self.tree.new_id(opening.offset)
            return self._call(call_id, name, self._arguments())
        return ast.Ident(self.tree.new_id(token.offset), name)

    def _message_name_length(self) -> int | None:
        """How many tokens `.a.b` has before a `{`; None if what follows is not a message literal."""
        position = self._position
        while self._tokens[position].text == ".":
            if self._tokens[position + 1].kind is not TokenKind.IDENTIFIER:
                return None
            position += 2
        token = self._tokens[position]
        is_brace = token.kind is TokenKind.SYMBOL and token.text == "{"
        return position - self._position if is_brace else None

    def _message(self, type_name: str, brace: Token) -> ast.Expr:
        node_id = self.tree.new_id(brace.offset)
        fields: list[ast.FieldEntry] = []
        while not self._is("}"):
            optional = self._accept("?") is not None
            name = self._field_name()
            colon = self._expect(":", "':'")
            value = self._expr()
            fields.append(ast.FieldEntry(self.tree.new_id(colon.offset), name, value, optional))
            if self._accept(",") is None:
                break
        self._expect("}", "{'}', ','}")
        expr = ast.StructExpr(node_id, type_name, tuple(fields))
        self.tree.set_height(expr, tuple(entry.value for entry in fields))
        return expr

    def _list(self, bracket: Token) -> ast.Expr:
        node_id = self.tree.new_id(bracket.offset)
        elements: list[ast.Expr] = []
        optional: set[int] = set()
        while not self._is("]") and not (self._is(",") and not elements):
            if self._accept("?") is not None:
                optional.add(len(elements))
            elements.append(self._expr())
            if self._accept(",") is None:
                break
        else:
            self._accept(",")
        self._expect("]", "{']', ','}")
        expr = ast.ListExpr(node_id, tuple(elements), frozenset(optional))
        self.tree.set_height(expr, expr.elements)
        return expr

    def _map(self, brace: Token) -> ast.Expr:
        node_id = self.tree.new_id(brace.offset)
        entries: list[ast.MapEntry] = []
        while not self._is("}") and not (self._is(",") and not entries):
            optional = self._accept("?") is not None
            key = self._expr()
            colon = self._expect(":", "':'")
            value = self._expr()
            entries.append(ast.MapEntry(self.tree.new_id(colon.offset), key, value, optional))
            if self._accept(",") is None:
                break
        else:
            self._accept(",")
        self._expect("}", "{'}', ','}")
        expr = ast.MapExpr(node_id, tuple(entries))
        self.tree.set_height(expr, tuple(ast.children(expr)))
        return expr

    def _literal(self) -> ast.Expr:
        start = self._next
        negative = self._accept("-") is not None
        token = self._advance()
        node_id = self.tree.new_id(start.offset)
        try:
            match token.kind:
                case TokenKind.INT:
                    return ast.Literal(node_id, literals.integer(token.text, negative))
                case TokenKind.FLOAT:
                    return ast.Literal(node_id, literals.double(token.text, negative))
                case TokenKind.UINT:
                    return ast.Literal(node_id, literals.unsigned(token.text))
                case TokenKind.STRING:
                    return ast.Literal(node_id, literals.string(token.text))
                case TokenKind.BYTES:
                    return ast.Literal(node_id, literals.byte_string(token.text))
        except ValueError as error:
            self._report(start.offset, str(error))
            return ast.Literal(node_id, None)
        raise self._unexpected(token)

    # --- calls and macros ---

    def _call(
        self,
        call_id: int,
        function: str,
        args: tuple[ast.Expr, ...],
        target: ast.Expr | None = None,
        *,
        counted: bool = False,
    ) -> ast.Expr:
        parts = args if target is None else (target, *args)
        macro = self._syntax.macros.get((function, len(args), target is not None))
        expanded: ast.Expr | None = None
        if macro is not None:
            try:
                expanded = macro.expand(self.tree.context(call_id), target, args)
            except MacroError as error:
                self._report(self.tree.offsets[error.at.id], str(error))
        expr = expanded if expanded is not None else ast.Call(call_id, function, target, args)
        self.tree.set_height(expr, parts, counted=counted)
        return self._check_height(expr)
