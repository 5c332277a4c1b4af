"""The products and their versions: one pinned Go module each, because their dependencies conflict."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parents[1] / "modules"
KUBERNETES = "1.37.1"
OTHER_KUBERNETES = ("1.36.3", "1.35.4")
"""The newest first: `make test` has a sample of that one too, and none of the others."""
KUBERNETES_VERSIONS = (KUBERNETES, *OTHER_KUBERNETES)

KUBELET_VERSIONS = KUBERNETES_VERSIONS
"""A node's kubelet has the version of its control plane: it must not be newer than its API server."""

_KUBERNETES_PROGRAMS = {
    name: f"k8s.io/kubernetes/cmd/{name}"
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
}


@dataclass(frozen=True)
class Product:
    name: str
    version: str
    module: str
    programs: Mapping[str, str]
    link: tuple[str, ...] = ()
    minutes: int = 1
    replaced: Mapping[str, str] | None = None
    folder: Path | None = None
    """The folder of its sources if they are our own, instead of a go.mod that names a published module."""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def sources(self) -> Path:
        """The folder of its go.mod and go.sum."""
        return self.folder or MODULES / f"{self.name}-{self.version}"


def _say_version(version: str) -> tuple[str, ...]:
    """Without these the programs call themselves v0.0.0-master, which misleads clients."""
    major, minor, _ = version.split(".")
    package = "k8s.io/component-base/version"
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return tuple(f"-X {package}.{name}={value}" for name, value in values.items())


def kubernetes(version: str | None = None) -> Product:
    """Kubernetes at the version asked for, at $KUBERNETES, or at the default."""
    version = version or os.environ.get("KUBERNETES") or KUBERNETES
    _refuse_unpinned("Kubernetes", version, KUBERNETES_VERSIONS)
    return Product(
        name="kubernetes",
        version=version,
        module="k8s.io/kubernetes",
        programs=_KUBERNETES_PROGRAMS,
        link=_say_version(version),
        minutes=5,
    )


def kubelet(version: str) -> Product:
    """The kubelet, apart from the other programs: what it needs more would have them built again."""
    _refuse_unpinned("kubelet", version, KUBELET_VERSIONS)
    return Product(
        name="kubelet",
        version=version,
        module="k8s.io/kubernetes",
        programs={"kubelet": "k8s.io/kubernetes/cmd/kubelet"},
        link=_say_version(version),
        minutes=5,
    )


def _refuse_unpinned(title: str, version: str, known: tuple[str, ...]) -> None:
    if version not in known:
        raise ValueError(f"{title} {version} is not pinned here; known: {', '.join(known)}")


_CONTAINERD_MODULE = "github.com/containerd/containerd/v2"
CONTAINERD = Product(
    "containerd",
    "2.4.2",
    _CONTAINERD_MODULE,
    {name: f"{_CONTAINERD_MODULE}/cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
    link=(f"-X {_CONTAINERD_MODULE}/version.Version=2.4.2",),
)
PAUSE = Product("pause", "1", "localcluster/pause", {"pause": "localcluster/pause"}, folder=MODULES / "pause")
LUA_ORACLE = Product(
    "lua-oracle",
    "1",
    "localcluster/lua-oracle",
    {"lua-oracle": "localcluster/lua-oracle"},
    folder=MODULES / "lua-oracle",
)
"""Runs scripts as Karmada does; tests compare what they answer with ours."""
ETCD = Product("etcd", "3.6.13", "go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"})
KWOK = Product("kwok", "0.8.0", "sigs.k8s.io/kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, minutes=2)
DESCHEDULER = Product(
    "descheduler",
    "0.36.0",
    "sigs.k8s.io/descheduler",
    {"descheduler": "sigs.k8s.io/descheduler/cmd/descheduler"},
    minutes=2,
    # Its own go.mod requires a commit of kube-openapi that no longer fits its client libraries.
    replaced={"k8s.io/kube-openapi": "k8s.io/kube-openapi v0.0.0-20260512234627-ef417d054102"},
)
_AUTOSCALER_MODULE = "k8s.io/autoscaler/vertical-pod-autoscaler"
VERTICAL_AUTOSCALER = Product(
    "vertical-pod-autoscaler",
    "1.8.1",
    _AUTOSCALER_MODULE,
    {"admission-controller": f"{_AUTOSCALER_MODULE}/pkg/admission-controller"},
)
