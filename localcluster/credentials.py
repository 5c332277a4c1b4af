"""Who may enter the cluster: tokens for the users that it always has, certificates for any other."""

import csv
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from localcluster import pki
from localcluster.components import SERVICE_ADDRESS, Design
from localcluster.host.ports import HOST

ADMIN = "admin"
USERS = {
    ADMIN: "system:masters",
    "kwok": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
}


def create(design: Design) -> None:
    """Authority, server certificate, service account keys, tokens and a kubeconfig for each user."""
    authority = pki.Authority(design.path("pki")).create()
    hosts = [HOST, "localhost", "kubernetes.default.svc", SERVICE_ADDRESS]
    authority.issue("kube-apiserver", hosts=hosts, file="apiserver")
    pki.service_account_key(authority.folder)
    tokens = {user: secrets.token_urlsafe(24) for user in USERS}
    _write_tokens(authority.folder / "tokens.csv", tokens)
    for user, token in tokens.items():
        write_kubeconfig(design, user, {"token": token})


def _write_tokens(path: Path, tokens: dict[str, str]) -> None:
    path.touch(mode=0o600)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([token, user, f"uid-{user}", USERS[user]] for user, token in tokens.items())


def certify(design: Design, user: str, groups: Sequence[str] = ()) -> Path:
    """Kubeconfig of a user who enters with a client certificate."""
    pair = pki.Authority(design.path("pki")).issue(user, organizations=groups)
    return write_kubeconfig(
        design, user, {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    )


def write_kubeconfig(
    design: Design,
    user: str,
    credentials: dict[str, str],
    *,
    server: str | None = None,
    name: str | None = None,
) -> Path:
    """A kubeconfig with these credentials, for this cluster's API server or what stands before it."""
    path = design.kubeconfig(name or user)
    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o600)
    authority = str(design.path("pki", "ca.crt"))
    cluster = {"server": server or design.url, "certificate-authority": authority}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "local",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": user}}],
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def read_token(design: Design, user: str = ADMIN) -> str:
    content: dict[str, Any] = yaml.safe_load(design.kubeconfig(user).read_text())
    return str(content["users"][0]["user"]["token"])
