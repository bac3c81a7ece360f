"""Names that no device has, but that resemble names that devices have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from drayman.cel.lexer import Token, TokenKind, tokenize
from drayman.explain.answer import Remedy, Spelling
from drayman.explain.remedies.case import Case
from drayman.explain.remedies.patching import put
from drayman.explain.remedies.rewriting import in_classes, in_requests
from drayman.explain.values import Rewriting

_QUOTED: Final = re.compile(r"""([rR]?)("{3}|'{3}|"|')(.*)\2""", re.DOTALL)
_CONSTRAINTS: Final = ("matchAttribute", "distinctAttribute")


def respelt_names(case: Case, spelling: Sequence[Spelling]) -> Iterator[Remedy]:
    """Names of attributes and capacities corrected where they are written: in a request, a constraint or a class."""
    for text, corrections in _corrections(spelling):
        rewriting = Rewriting(text, respelt(text, corrections), _words(corrections))
        yield from in_requests(case, rewriting)
        yield from _in_constraints(case, text, corrections)
        yield from in_classes(case, rewriting)


def respelt(expression: str, corrections: Mapping[str, str]) -> str:
    """An expression with full names (`domain/name`) replaced by others, where both parts are written."""
    tokens, _ = tokenize(expression)
    pieces, end = [], 0
    for token in tokens:
        if token.kind is TokenKind.END:
            break
        pieces += [expression[end : token.offset], _corrected(token, corrections)]
        end = token.offset + len(token.text)
    return "".join((*pieces, expression[end:]))


def _corrections(spelling: Sequence[Spelling]) -> Iterator[tuple[str, dict[str, str]]]:
    """For each text with names that do not exist, the replacements to try. Several names are corrected together."""
    texts: dict[str, dict[str, Spelling]] = {}
    for each in spelling:
        if each.similar:
            texts.setdefault(each.selector, {})[each.attribute] = each
    for text, names in texts.items():
        if len(names) == 1:
            ((wrong, found),) = names.items()
            for name, _ in found.similar:
                yield text, {wrong: name}
        else:
            yield text, {wrong: found.similar[0][0] for wrong, found in names.items()}


def _in_constraints(case: Case, text: str, corrections: Mapping[str, str]) -> Iterator[Remedy]:
    for written in case.claim_texts:
        for index, constraint in enumerate(written.spec.devices.constraints):
            values = (constraint.match_attribute, constraint.distinct_attribute)
            for field, value in zip(_CONSTRAINTS, values, strict=True):
                if value is None or text != f"{field}: {value}" or value not in corrections:
                    continue
                sentence = f"{_words(corrections)} in a constraint of {written.title}"
                step = put(corrections[value], "devices", "constraints", index, field)
                yield from case.with_spec(written, sentence, step)


def _corrected(token: Token, corrections: Mapping[str, str]) -> str:
    if token.kind is TokenKind.IDENTIFIER:
        return _part(token.text, corrections)
    match = _QUOTED.fullmatch(token.text) if token.kind is TokenKind.STRING else None
    if match is None:
        return token.text
    prefix, quotes, content = match.groups()
    return f"{prefix}{quotes}{_part(content, corrections)}{quotes}"


def _part(text: str, corrections: Mapping[str, str]) -> str:
    """A domain or a name, corrected if it is one that is wrong."""
    for wrong, right in corrections.items():
        for bad, good in zip(wrong.rpartition("/"), right.rpartition("/"), strict=True):
            if bad and text == bad:
                return good
    return text


def _words(corrections: Mapping[str, str]) -> str:
    shown = []
    for wrong, right in corrections.items():
        domain, _, name = wrong.rpartition("/")
        other_domain, _, other = right.rpartition("/")
        same = domain == other_domain
        shown.append(f"{other} instead of {name}" if same else f"{right} instead of {wrong}")
    return f"write {' and '.join(shown)}"
