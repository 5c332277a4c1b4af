"""The kubeconfig of a member, from its Cluster and its Secret.

The Secret names its Cluster and the host that gets its token. Otherwise whoever may write Clusters could have
the token of any member sent to a server of his own.
"""

import base64
import binascii
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from federation.api import Cluster
from federation.objects.resources import Login
from reberth.values.errors import ConfigurationError

_TOKEN, _AUTHORITY = "token", "caBundle"
_NAME = "member"
OF_CLUSTER, OF_HOST = "reberth.dev/cluster", "reberth.dev/host"
BY_PROXY, UNVERIFIED = "reberth.dev/proxy", "reberth.dev/insecure-skip-tls-verification"
_PORT = 443


class MemberLogin(NamedTuple):
    """A kubeconfig, and what of it is not the token: as long as that is the same, a session goes on."""

    content: bytes
    connection: bytes


def write_kubeconfig(cluster: Cluster, login: Login) -> MemberLogin:
    """Write the kubeconfig of a member. Raises ConfigurationError."""
    spec, place = cluster.spec, f"Secret {login.metadata.namespace}/{login.metadata.name}"
    if not spec.api_endpoint.startswith("https://"):
        raise ConfigurationError(
            f"Cluster {cluster.metadata.name}: spec.apiEndpoint: must be an https:// URL"
        )
    _check_use(cluster, login, place)
    token = read_text(login, _TOKEN)
    connection: dict[str, object] = {"server": spec.api_endpoint.rstrip("/")}
    if spec.insecure_skip_tls_verification:
        connection["insecure-skip-tls-verify"] = True
    elif authority := (login.data or {}).get(_AUTHORITY):
        connection["certificate-authority-data"] = authority
    if spec.proxy_url:
        connection["proxy-url"] = spec.proxy_url
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": _NAME,
        "clusters": [{"name": _NAME, "cluster": connection}],
        "users": [{"name": _NAME, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
    }
    return MemberLogin(msgspec.json.encode(content), msgspec.json.encode(connection))


def name_host(endpoint: str) -> str:
    """Return the host and the port of a member's API endpoint, as its Secret has to name them."""
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname or "", parts.port or _PORT
    except ValueError:
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _check_use(cluster: Cluster, login: Login, place: str) -> None:
    """Check that the Secret may be used for this Cluster. Raises ConfigurationError."""
    wanted = {OF_CLUSTER: cluster.metadata.name, OF_HOST: name_host(cluster.spec.api_endpoint)}
    if cluster.spec.insecure_skip_tls_verification:
        wanted[UNVERIFIED] = "true"
    if cluster.spec.proxy_url:
        wanted[BY_PROXY] = cluster.spec.proxy_url
    allowed = login.metadata.annotations or {}
    for name, value in wanted.items():
        if not value or allowed.get(name) != value:
            raise ConfigurationError(
                f"{place}: annotation {name}: must be {value!r} for the Cluster {cluster.metadata.name}"
            )


def read_text(login: Login, name: str) -> str:
    """Read a text of a Secret. Raises ConfigurationError."""
    place = f"Secret {login.metadata.namespace}/{login.metadata.name}"
    text = (login.data or {}).get(name)
    if not text:
        raise ConfigurationError(f"{place}: data.{name}: is missing")
    try:
        return base64.b64decode(text, validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{place}: data.{name}: is not base64-encoded text") from error
