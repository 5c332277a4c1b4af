import base64
import json
from typing import Any

import msgspec
import pytest

from federation.membership.kubeconfig import write_kubeconfig
from federation.objects.resources import Login
from reberth.values.errors import ConfigurationError
from tests.support.federation.objects import bare_cluster

ADDRESS = "https://member:6443/"


def login(**data: str) -> Login:
    coded = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
    return msgspec.convert({"metadata": {"name": "a", "namespace": "b"}, "data": coded}, Login)


def written(one: Login, **spec: Any) -> Any:
    content = json.loads(write_kubeconfig(bare_cluster(spec={"apiEndpoint": ADDRESS, **spec}), one))
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
    one = msgspec.convert({"metadata": {"name": "a", "namespace": "b"}, "data": data}, Login)
    with pytest.raises(ConfigurationError) as error:
        write_kubeconfig(bare_cluster(spec={"apiEndpoint": endpoint}), one)
    assert str(error.value) == message
