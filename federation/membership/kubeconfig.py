"""The kubeconfig of a member, from its Cluster and its Secret."""

import base64
import binascii

import msgspec

from federation.api import Cluster
from federation.objects.resources import Login
from reberth.values.errors import ConfigurationError

_TOKEN, _AUTHORITY = "token", "caBundle"
_NAME = "member"


def write_kubeconfig(cluster: Cluster, login: Login) -> bytes:
    """Write the kubeconfig of a member. Raises ConfigurationError."""
    spec, place = cluster.spec, f"Secret {login.metadata.namespace}/{login.metadata.name}"
    if not spec.api_endpoint.startswith("https://"):
        raise ConfigurationError(
            f"Cluster {cluster.metadata.name}: spec.apiEndpoint: must be an https:// URL"
        )
    token = _read(login, _TOKEN, place)
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
    return msgspec.json.encode(content)


def _read(login: Login, name: str, place: str) -> str:
    text = (login.data or {}).get(name)
    if not text:
        raise ConfigurationError(f"{place}: data.{name}: is missing")
    try:
        return base64.b64decode(text, validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{place}: data.{name}: is not base64-encoded text") from error
