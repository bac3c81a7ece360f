"""Proxies from the environment, as kubectl finds them."""

from __future__ import annotations

import pytest

from drayman.cluster.errors import ConfigurationError
from drayman.cluster.kube.proxies import proxy_of

SERVER = "https://api.example.com:6443"
PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environment", "want"),
    [
        (SERVER, {}, ""),
        (SERVER, {"HTTPS_PROXY": PROXY}, PROXY),
        (SERVER, {"https_proxy": PROXY}, PROXY),
        (SERVER, {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        (SERVER, {"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, PROXY),
        (SERVER, {"HTTP_PROXY": PROXY}, ""),
        ("http://api.example.com", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://api.example.com", {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}, ""),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
        (SERVER, {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, ""),
        (SERVER, {"HTTPS_PROXY": PROXY, "NO_PROXY": "a.b, example.com"}, ""),
        (SERVER, {"HTTPS_PROXY": PROXY, "no_proxy": ".example.com"}, ""),
        (SERVER, {"HTTPS_PROXY": PROXY, "NO_PROXY": "*.example.com:6443"}, ""),
        (SERVER, {"HTTPS_PROXY": PROXY, "NO_PROXY": "example.com:443"}, PROXY),
        (SERVER, {"HTTPS_PROXY": PROXY, "NO_PROXY": "ample.com,10.0.0.0/8"}, PROXY),
        ("https://example.com", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".example.com"}, PROXY),
        ("https://10.1.2.3", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://10.1.2.3", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.1.2.3"}, ""),
        ("https://10.1.2.3", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.1.2.3:1"}, PROXY),
    ],
)
def test_the_proxy_of_a_server(server: str, environment: dict[str, str], want: str) -> None:
    """The variable for the scheme of the server applies, except to this machine and to what NO_PROXY names."""
    assert proxy_of(server, environment) == want


@pytest.mark.parametrize("proxy", ["socks5://proxy:1080", "http://", "http://proxy:99999"])
def test_a_proxy_that_cannot_be_used_is_an_error(proxy: str) -> None:
    """It names the variable; going without the proxy would leave the way that was asked for."""
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY="):
        proxy_of(SERVER, {"HTTPS_PROXY": proxy})
