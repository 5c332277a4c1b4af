import base64
import json
from typing import Any

import msgspec
import pytest

from federation.membership.kubeconfig import (
    BY_PROXY,
    OF_CLUSTER,
    OF_HOST,
    UNVERIFIED,
    name_host,
    write_kubeconfig,
)
from federation.objects.resources import Login
from reberth.values.errors import ConfigurationError
from tests.support.federation.objects import bare_cluster

ADDRESS = "https://member:6443/"
USE = {OF_CLUSTER: "m1", OF_HOST: "member:6443", UNVERIFIED: "true", BY_PROXY: "http://proxy"}


def login(**data: str) -> Login:
    return secret({name: base64.b64encode(text.encode()).decode() for name, text in data.items()})


def secret(data: Any, **annotations: str | None) -> Login:
    allowed = {name: value for name, value in (USE | annotations).items() if value is not None}
    metadata = {"name": "a", "namespace": "b", "annotations": allowed}
    return msgspec.convert({"metadata": metadata, "data": data}, Login)


def written(one: Login, **spec: Any) -> Any:
    content = json.loads(write_kubeconfig(bare_cluster(spec={"apiEndpoint": ADDRESS, **spec}), one).content)
    return content["clusters"][0]["cluster"], content["users"][0]["user"]


def test_a_kubeconfig_is_written_from_the_cluster_and_its_secret() -> None:
    way, user = written(login(token="t\n", caBundle="c"), proxyURL="http://proxy")
    authority = base64.b64encode(b"c").decode()
    assert way == {
        "server": "https://member:6443",
        "certificate-authority-data": authority,
        "proxy-url": "http://proxy",
    }
    assert user == {"token": "t"}


def test_another_token_is_no_other_connection() -> None:
    cluster = bare_cluster(spec={"apiEndpoint": ADDRESS})
    first, second, other = (
        write_kubeconfig(cluster, login(token=token, caBundle=authority))
        for token, authority in (("t", "c"), ("u", "c"), ("t", "d"))
    )
    assert first.connection == second.connection
    assert first.content != second.content
    assert first.connection != other.connection


def test_certificates_are_verified_unless_switched_off() -> None:
    way, _ = written(login(token="t", caBundle="c"), insecureSkipTLSVerification=True)
    assert way == {"server": "https://member:6443", "insecure-skip-tls-verify": True}


@pytest.mark.parametrize(
    ("data", "endpoint", "message"),
    [
        (None, ADDRESS, "Secret b/a: data.token: is missing"),
        ({"token": "%"}, ADDRESS, "Secret b/a: data.token: is not base64-encoded text"),
        ({"token": "dA=="}, "http://member", "Cluster m1: spec.apiEndpoint: must be an https:// URL"),
        ({"token": "dA=="}, "", "Cluster m1: spec.apiEndpoint: must be an https:// URL"),
    ],
)
def test_a_missing_field_is_named_without_revealing_secrets(data: Any, endpoint: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        write_kubeconfig(bare_cluster(spec={"apiEndpoint": endpoint}), secret(data))
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("name", "value", "spec"),
    [
        (OF_CLUSTER, "m2", {}),
        (OF_CLUSTER, None, {}),
        (OF_HOST, "mine:6443", {}),
        (OF_HOST, "member", {}),
        (OF_HOST, None, {}),
        (OF_HOST, "member:6443", {"apiEndpoint": "https://member:6443@mine"}),
        (OF_HOST, "", {"apiEndpoint": "https://[member"}),
        (BY_PROXY, "http://mine", {"proxyURL": "http://proxy"}),
        (BY_PROXY, None, {"proxyURL": "http://proxy"}),
        (UNVERIFIED, None, {"insecureSkipTLSVerification": True}),
    ],
)
def test_a_secret_is_used_only_for_what_it_names(name: str, value: str | None, spec: Any) -> None:
    one = secret({"token": "dA=="}, **{name: value})
    with pytest.raises(ConfigurationError, match=f"Secret b/a: annotation {name}: must be "):
        write_kubeconfig(bare_cluster(spec={"apiEndpoint": ADDRESS, **spec}), one)


@pytest.mark.parametrize(
    ("endpoint", "host"),
    [
        ("https://Member.example", "member.example:443"),
        ("https://10.0.0.1:6443/k8s", "10.0.0.1:6443"),
        ("https://[fd00::1]:6443", "[fd00::1]:6443"),
        ("https://member:x", ""),
    ],
)
def test_the_host_of_an_endpoint_has_a_port(endpoint: str, host: str) -> None:
    assert name_host(endpoint) == host
