"""The components of a cluster: their flags, and the URL of their readiness."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localcluster.host.ports import HOST
from localcluster.kwok import LEASE_SECONDS

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLERS = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KWOK = "kwok"
ALL = (ETCD, API_SERVER, CONTROLLERS, SCHEDULER, KWOK)
"""In the order of their start."""

SCHEDULER_FILE = "scheduler.yaml"
KWOK_FILE = "kwok.yaml"
EGRESS_FILE = "egress.yaml"
NODES_SOCKET = "nodes.sock"
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
REAL_NODE_LABEL = "localcluster.reberth.dev/real"
LOST_NODE_LABEL = "localcluster.reberth.dev/lost"
_SERVICE_RANGE = "10.97.0.0/16"
SERVICE_ADDRESS = "10.97.0.1"
_GIBIBYTES_OF_ETCD = 8

_RUN_CONTROLLERS = (
    "deployment replicaset replicationcontroller statefulset daemonset job cronjob disruption "
    "garbage-collector pod-garbage-collector namespace serviceaccount root-ca-certificate-publisher "
    "clusterrole-aggregation node-lifecycle taint-eviction resourcequota endpointslice service-cidr "
    "persistentvolume-binder"
)

# Without the controllers nothing removes the taint of a new node or creates service accounts.
_USELESS_WITHOUT_CONTROLLERS = "ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds"


@dataclass(frozen=True)
class Design:
    """What a cluster consists of; written into its folder for later commands."""

    folder: str
    first_port: int
    kubernetes: str
    components: tuple[str, ...] = ALL
    etcd: str | None = None
    prefix: str = "/registry"
    real_nodes: int = 0
    virtual_nodes: int = 0
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def has_kubelets(self) -> bool:
        return self.real_nodes + self.virtual_nodes > 0

    def port(self, component: str) -> int:
        return self.first_port + _PORTS[component]

    def path(self, *parts: str) -> Path:
        return Path(self.folder).joinpath(*parts)

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port(API_SERVER)}"

    @property
    def etcd_url(self) -> str:
        """Of its own etcd, or of the cluster whose etcd it shares by prefix."""
        return self.etcd or f"http://{HOST}:{self.port(ETCD)}"

    def kubeconfig(self, user: str) -> Path:
        return self.path("kubeconfigs", f"{user.replace(':', '-')}.yaml")


_PORTS = {API_SERVER: 0, ETCD: 1, "etcd-peer": 2, CONTROLLERS: 3, SCHEDULER: 4, KWOK: 5}
FIRST_SPARE_PORT = len(_PORTS)
"""The ports of the block from here on are for processes beside the cluster."""


def ready_url(design: Design, component: str) -> str:
    scheme = "http" if component in (ETCD, KWOK) else "https"
    path = {ETCD: "health", API_SERVER: "readyz"}.get(component, "healthz")
    return f"{scheme}://{HOST}:{design.port(component)}/{path}"


def arguments(design: Design, component: str) -> list[str]:
    """Our flags, then those of the design: the last one wins."""
    return [*_ARGUMENTS[component](design), *design.flags.get(component, ())]


def _etcd(design: Design) -> list[str]:
    client, peer = f"http://{HOST}:{design.port(ETCD)}", f"http://{HOST}:{design.port('etcd-peer')}"
    return [
        "--name=local",
        f"--data-dir={design.path('etcd')}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=local={peer}",
        f"--quota-backend-bytes={_GIBIBYTES_OF_ETCD << 30}",
        "--log-level=warn",
        "--unsafe-no-fsync",  # the data need not survive a power cut
    ]


def _api_server(design: Design) -> list[str]:
    pki = design.path("pki")
    flags = [
        f"--etcd-servers={design.etcd_url}",
        f"--etcd-prefix={design.prefix}",
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={design.port(API_SERVER)}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--token-auth-file={pki / 'tokens.csv'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        f"--service-cluster-ip-range={_SERVICE_RANGE}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--endpoint-reconciler-type=none",
        "--profiling=false",
    ]
    if CONTROLLERS not in design.components:
        flags.append(f"--disable-admission-plugins={_USELESS_WITHOUT_CONTROLLERS}")
    return [*flags, *(_reach_kubelets(design) if design.has_kubelets else ())]


def _reach_kubelets(design: Design) -> list[str]:
    """By their addresses, through the network of the real nodes: no name server is asked."""
    pki = design.path("pki")
    return [
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={pki / KUBELET_CLIENT}.crt",
        f"--kubelet-client-key={pki / KUBELET_CLIENT}.key",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        f"--egress-selector-config-file={design.path(EGRESS_FILE)}",
    ]


def _delegated(design: Design, component: str) -> list[str]:
    """Flags of a component that delegates authentication and authorization to the API server."""
    kubeconfig = design.kubeconfig(f"system:{component}")
    return [
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={HOST}",
        f"--secure-port={design.port(component)}",
        f"--cert-dir={design.path('pki', component)}",
    ]


def _controllers(design: Design) -> list[str]:
    return [
        *_delegated(design, CONTROLLERS),
        f"--kubeconfig={design.kubeconfig(f'system:{CONTROLLERS}')}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={design.path('pki', 'service-accounts.key')}",
        f"--root-ca-file={design.path('pki', 'ca.crt')}",
        f"--controllers={','.join(f'{name}-controller' for name in _RUN_CONTROLLERS.split())}",
        f"--node-monitor-grace-period={LEASE_SECONDS + 10}s",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--concurrent-deployment-syncs=20",
        "--concurrent-replicaset-syncs=20",
        "--concurrent-gc-syncs=20",
    ]


def _scheduler(design: Design) -> list[str]:
    return [*_delegated(design, SCHEDULER), f"--config={design.path(SCHEDULER_FILE)}", "-v=2"]


def _kwok(design: Design) -> list[str]:
    return [
        f"--kubeconfig={design.kubeconfig('kwok')}",
        f"--config={design.path(KWOK_FILE)}",
        f"--manage-nodes-with-label-selector=!{REAL_NODE_LABEL},!{LOST_NODE_LABEL}",
        f"--node-lease-duration-seconds={LEASE_SECONDS}",
        f"--server-address={HOST}:{design.port(KWOK)}",
        "--cidr=10.128.0.0/9",
    ]


_ARGUMENTS = {
    ETCD: _etcd,
    API_SERVER: _api_server,
    CONTROLLERS: _controllers,
    SCHEDULER: _scheduler,
    KWOK: _kwok,
}
