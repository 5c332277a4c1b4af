"""Joins a member cluster to a hub through a service account with the rights of the manifests."""

import base64
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localcluster import manifests
from localcluster.client import Client, Object
from localcluster.cluster import Cluster

FEDERATION_ACCOUNT = "system:serviceaccount:reberth-system:reberth-federation"
MANIFESTS = Path(__file__).parent.parent / "manifests" / "federation"
_ACCOUNT = "/api/v1/namespaces/reberth-system/serviceaccounts/reberth-federation-member"
_NAMESPACE = "karmada-cluster"
_SECONDS = 7 * 24 * 3600


async def admit(hub: Client, name: str, member: Cluster) -> None:
    """Join a member with an account of its own."""
    async with member.client() as way:
        token = await open_member(way)
    await join(hub, name, member, token=token, labels={})


async def open_member(member: Client) -> str:
    """Create the federation's account in a member from the manifests; returns a token of it."""
    await manifests.apply(member, MANIFESTS / "member")
    made: Any = await member.create(f"{_ACCOUNT}/token", {"spec": {"expirationSeconds": _SECONDS}})
    return str(made["status"]["token"])


def say_use(cluster: str, endpoint: str) -> dict[str, str]:
    """Write the annotations of a Secret that allow its use for one member."""
    return {"reberth.dev/cluster": cluster, "reberth.dev/host": urlsplit(endpoint).netloc}


async def join(hub: Client, name: str, cluster: Cluster, *, token: str, labels: Object) -> None:
    """Create the Secret with the member's credentials, and its Cluster, on the hub."""
    authority = cluster.design.path("pki", "ca.crt").read_bytes()
    content = {"token": token.encode(), "caBundle": authority}
    data = {key: base64.b64encode(text).decode() for key, text in content.items()}
    metadata = {"name": name, "annotations": say_use(name, cluster.design.url)}
    await hub.create(f"/api/v1/namespaces/{_NAMESPACE}/secrets", {"metadata": metadata, "data": data})
    reference = {"namespace": _NAMESPACE, "name": name}
    wanted = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": labels},
        "spec": {"syncMode": "Push", "apiEndpoint": cluster.design.url, "secretRef": reference},
    }
    await hub.create("/apis/cluster.karmada.io/v1alpha1/clusters", wanted)
