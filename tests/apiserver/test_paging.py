"""Continue tokens."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.protocol.paging import Position, decode_token, encode_token

NAMES = st.text(alphabet="abc-.0", min_size=1, max_size=10)


@given(st.integers(1, 2**62), NAMES, NAMES)
def test_a_token_leads_back_to_where_the_page_ended(
    revision: int, namespace: str, name: str
) -> None:
    """Whether the list is of one namespace or of all."""
    position = Position(revision, namespace, name)
    within = encode_token(position, all_namespaces=False)
    across = encode_token(position, all_namespaces=True)
    assert decode_token(within, namespace=namespace) == position
    assert decode_token(across, namespace=None) == position


def test_a_token_looks_like_those_of_kubernetes() -> None:
    """Unpadded base64url of a small JSON object."""
    token = encode_token(Position(7, "ns", "s1"), all_namespaces=False)
    text = base64.urlsafe_b64decode(token + "==")
    assert text == b'{"v":"meta.k8s.io/v1","rv":7,"start":"/s1\\u0000"}'


@pytest.mark.parametrize("text", ["nonsense", "e30", "W10", "=", "\u00e9", "A"])
def test_a_token_nobody_gave_out_is_a_400(text: str) -> None:
    """Whatever it contains."""
    with pytest.raises(StatusError) as caught:
        decode_token(text, namespace="n")
    assert caught.value.code == 400
    assert caught.value.message.startswith("invalid continue token: continue key is not valid")
