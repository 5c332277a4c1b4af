"""How the connection to the API server is found, and the error where there is none."""

from pathlib import Path

import pytest

from reberth.client.access import Access, find_proxy
from reberth.client.api import Api
from reberth.values.errors import ConfigurationError

EMPTY_CLUSTER = """
current-context: c
contexts: [{name: c, context: {cluster: x}}]
clusters: [{name: x, cluster: {}}]
"""


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)


def test_kubeconfig_is_looked_up_in_the_documented_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Access().file == str(tmp_path / ".kube" / "config")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert Access().file is None
    assert str(Access()) == "the pod's service account"
    monkeypatch.setenv("KUBECONFIG", "/from/env")
    assert Access().file == "/from/env"
    assert Access("/given").file == "/given"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ({"https_proxy": "http://proxy:3128"}, "http://proxy:3128"),
        ({"HTTP_PROXY": "http://proxy:3128"}, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "api.example.com"}, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".example.com,10.0.0.0"}, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "example.org"}, "http://proxy:3128"),
    ],
)
def test_the_proxy_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str | None
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert find_proxy("https://api.example.com:6443") == expected


async def refusal(access: Access) -> str:
    with pytest.raises(ConfigurationError) as caught:
        async with Api(access):
            pass
    return str(caught.value)


async def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    assert await refusal(Access(path)) == (f"{path}: cannot connect to the API server: kubeconfig not found")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not a valid kubeconfig"),
        ("5", "not a valid kubeconfig"),
        ("a: [\n", "while parsing a flow node"),
        ("apiVersion: v1\nkind: Config\n", "Expected key current-context"),
        (
            "apiVersion: v1\nkind: Config\ncurrent-context: gone\ncontexts: []\nclusters: []\nusers: []\n",
            "Expected object with name gone",
        ),
        ("{current-context: c, contexts: [{name: c}]}", "Expected key context"),
        ("{current-context: c, contexts: 7}", "not a valid kubeconfig"),
        (EMPTY_CLUSTER, "not a valid kubeconfig"),
    ],
)
async def test_an_invalid_kubeconfig_is_refused_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    refused = await refusal(Access(str(path)))
    assert refused.startswith(f"{path}: cannot connect to the API server: ")
    assert said in refused
    assert "\n" not in refused


async def test_an_invalid_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    path = tmp_path / "config"
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: c,"
        " contexts: [{name: c, context: {cluster: c, user: u}}],"
        " users: [{name: u, user: {token: t}}],"
        " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority: ca.crt}}]}"
    )
    assert "invalid certificates" in await refusal(Access(str(path)))


async def test_a_pod_without_its_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert await refusal(Access()) == (
        "the pod's service account: cannot connect to the API server: Service token file does not exist."
    )
