"""The kinds that the federation works with: their API paths and their records."""

from typing import Any

from federation.api import (
    APPS_API_VERSION,
    CLUSTER_API_VERSION,
    CONFIG_API_VERSION,
    INTERPRETER_KIND,
    POLICY_API_VERSION,
    WORK_API_VERSION,
    WORKS_API_VERSION,
    Cluster,
    PropagationPolicy,
    PropagationSpec,
    ResourceBinding,
    ResourceInterpreterCustomization,
    Work,
    WorkloadRebalancer,
)
from federation.objects.names import Key
from federation.objects.template import ResourceTemplate
from reberth.cluster.kinds import Resource, plain_kind
from reberth.cluster.pods.identity import group_of
from reberth.cluster.tables import meta_of
from reberth.records import ObjectMeta, Record


class HeldMeta(ObjectMeta, frozen=True):
    """Metadata with finalizers."""

    finalizers: tuple[str, ...] | None = None


class HeldWork(Work, frozen=True):
    """A Work, whose finalizer keeps it until its objects are deleted in the member."""

    metadata: HeldMeta


class HeardPolicy(PropagationPolicy, frozen=True):
    """A policy as in a watch, whose bookmarks have no spec."""

    spec: PropagationSpec = PropagationSpec(())


class Login(Record, frozen=True):
    """A Secret with the credentials of a member."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None


def _resource(
    api_version: str, kind: str, record: type[Any], plural: str = "", *, namespaced: bool = True
) -> Any:  # noqa: ANN401 - a Resource of the record
    group, version = group_of(api_version), api_version.rpartition("/")[2]
    return Resource(
        plain_kind(kind, record, group), plural or f"{kind.lower()}s", version, namespaced=namespaced
    )


CLUSTERS: Resource[Cluster] = _resource(CLUSTER_API_VERSION, "Cluster", Cluster, namespaced=False)
POLICIES: Resource[HeardPolicy] = _resource(
    POLICY_API_VERSION, "PropagationPolicy", HeardPolicy, "propagationpolicies"
)
CLUSTER_POLICIES: Resource[HeardPolicy] = _resource(
    POLICY_API_VERSION,
    "ClusterPropagationPolicy",
    HeardPolicy,
    "clusterpropagationpolicies",
    namespaced=False,
)
BINDINGS: Resource[ResourceBinding] = _resource(WORK_API_VERSION, "ResourceBinding", ResourceBinding)
CLUSTER_BINDINGS: Resource[ResourceBinding] = _resource(
    WORK_API_VERSION, "ClusterResourceBinding", ResourceBinding, namespaced=False
)
REBALANCERS: Resource[WorkloadRebalancer] = _resource(
    APPS_API_VERSION, "WorkloadRebalancer", WorkloadRebalancer, namespaced=False
)
WORKS: Resource[HeldWork] = _resource(WORKS_API_VERSION, "Work", HeldWork)
INTERPRETERS: Resource[ResourceInterpreterCustomization] = _resource(
    CONFIG_API_VERSION, INTERPRETER_KIND, ResourceInterpreterCustomization, namespaced=False
)
LOGINS: Resource[Login] = _resource("v1", "Secret", Login)
ACCOUNTS: Resource[ResourceTemplate] = _resource("v1", "ServiceAccount", ResourceTemplate)
NAMESPACES: Resource[ResourceTemplate] = _resource("v1", "Namespace", ResourceTemplate, namespaced=False)

TEMPLATES: tuple[Resource[ResourceTemplate], ...] = (
    _resource("apps/v1", "Deployment", ResourceTemplate),
    _resource("apps/v1", "StatefulSet", ResourceTemplate),
    _resource("apps/v1", "DaemonSet", ResourceTemplate),
    _resource("batch/v1", "Job", ResourceTemplate),
    _resource("batch/v1", "CronJob", ResourceTemplate),
    _resource("v1", "Service", ResourceTemplate),
    _resource("v1", "ConfigMap", ResourceTemplate),
    _resource("v1", "Secret", ResourceTemplate),
    _resource("v1", "ServiceAccount", ResourceTemplate),
)
"""Always watched. Any other kind is watched once a policy or a Work names it."""
RBAC_KINDS: tuple[Resource[ResourceTemplate], ...] = (
    _resource("rbac.authorization.k8s.io/v1", "ClusterRole", ResourceTemplate, namespaced=False),
    _resource("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", ResourceTemplate, namespaced=False),
    _resource("rbac.authorization.k8s.io/v1", "Role", ResourceTemplate),
    _resource("rbac.authorization.k8s.io/v1", "RoleBinding", ResourceTemplate),
)
"""Not among those: who grants what is kept by nobody who does not propagate it."""
ALL_BINDINGS = (BINDINGS, CLUSTER_BINDINGS)
_BINDINGS = {each.kind.name: each for each in ALL_BINDINGS}


# Never propagated: the federation's own objects, and objects that describe a cluster itself.
_OWN_GROUPS = (
    "apps.karmada.io",
    "cluster.karmada.io",
    "config.karmada.io",
    "events.k8s.io",
    "policy.karmada.io",
    "work.karmada.io",
)
_OWN_KINDS = (("v1", "Event"), ("v1", "Node"))


def can_be_propagated(api_version: str, kind: str) -> bool:
    """Tell whether a kind may be propagated: it belongs neither to the federation nor to a cluster itself."""
    group = group_of(api_version)
    return bool(api_version and kind) and group not in _OWN_GROUPS and (api_version, kind) not in _OWN_KINDS


def is_template(resource: Resource[Any]) -> bool:
    """Tell whether objects of the kind are resource templates."""
    return resource.record is ResourceTemplate


def binding_resource(kind: str) -> Resource[ResourceBinding]:
    return _BINDINGS[kind]


def key_of(resource: Resource[Any], record: Record) -> Key:
    meta = meta_of(record)
    return Key(resource.api_version, resource.kind.name, meta.namespace, meta.name)
