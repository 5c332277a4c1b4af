"""Who tries what against a cluster that is a hub and a member and has the rescheduler, by their manifests.

Each attempt is a request in the name of a real account, with words of the API server's refusal, or `ALLOWED`.
docs/security.md has them as a table.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from localcluster import manifests
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import KWOK, SCHEDULER
from localcluster.nodes import node
from localcluster.state_dir import running
from reberth.memory.notes import ANNOTATION
from tests.support import builders
from tests.support.builders import Object
from tests.support.repository import MANIFESTS

ALLOWED = "allowed"
RESCHEDULER, EXTENDER, FEDERATION, MEMBER = (
    f"system:serviceaccount:reberth-system:reberth-{name}"
    for name in ("rescheduler", "extender", "federation", "federation-member")
)
ADDON = "system:serviceaccount:power:agent"

_CORE, _APPS, _RBAC = "/api/v1", "/apis/apps/v1", "/apis/rbac.authorization.k8s.io/v1"
_OURS, _WORK = "/apis/reberth.dev/v1alpha1", "/apis/work.karmada.io"
_HISTORIES = f"{_OURS}/namespaces/shop/evictionhistories"
_SCORES = f"{_OURS}/nodeplacementscores"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/reberth-system/leases"
_LEASE = f"{_LEASES}/reberth-rescheduler"
_BINDINGS = f"{_WORK}/v1alpha2/namespaces/shop/resourcebindings"
_WORKS = f"{_WORK}/v1alpha1/namespaces"
_POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies"
_LOGIN = f"{_CORE}/namespaces/karmada-cluster/secrets/member1"
_OWN_TOKEN = f"{_CORE}/namespaces/reberth-system/serviceaccounts/reberth-federation-member/token"
_EVENTS = "/apis/events.k8s.io/v1/namespaces"
_TIME = "2026-11-19T12:00:00.000000Z"


class Who(NamedTuple):
    """An account as the API server knows it, and what docs/security.md calls it."""

    name: str
    user: str
    groups: tuple[str, ...] = ()


TENANT = Who("tenant (`edit`)", "tenant")
OWNER = Who("namespace owner (`*`)", "owner")
NODE = Who("node", "system:node:n1", ("system:nodes",))
ADD_ON = Who("add-on `power`", ADDON)
HUB_TENANT = Who("hub tenant (`edit`, with Karmada's roles)", "hub-tenant")
HOUSEKEEPER = Who("`edit` in reberth-system", "housekeeper")
LANDLORD = Who("`*` in reberth-system", "landlord")
OPERATOR = Who("operator (group `reberth:operators`)", "jo", ("reberth:operators",))
OUR_RESCHEDULER = Who("token of the rescheduler", RESCHEDULER)
OUR_EXTENDER = Who("token of the extender", EXTENDER)
OUR_FEDERATION = Who("token of the federation on the hub", FEDERATION)
OUR_MEMBER = Who("member admin, with the federation's token", MEMBER)


class Attempt(NamedTuple):
    """A request, and words of the answer; `ALLOWED` if it is carried out."""

    who: Who
    tries: str
    words: str
    method: str
    path: str
    body: Any = None


def _meta(name: str, **fields: Any) -> Object:
    return {"metadata": {"name": name, **fields}}


def _typed(kind: str, version: str, name: str, **fields: Any) -> Object:
    return {"apiVersion": version, "kind": kind, **_meta(name), **fields}


def is_as_expected(attempt: "Attempt", said: str) -> bool:
    return said == ALLOWED if attempt.words == ALLOWED else attempt.words in said


def deployment(name: str) -> Object:
    return builders.deployment(name, replicas=0) | _meta(name)


def history(name: str) -> Object:
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u"}
    return _typed("EvictionHistory", "reberth.dev/v1alpha1", name, spec={"workload": workload})


def score(name: str, source: str) -> Object:
    spec = {"nodeName": "n1", "source": source}
    return _typed("NodePlacementScore", "reberth.dev/v1alpha1", name, spec=spec)


def binding(name: str, resource: Object, **spec: Any) -> Object:
    wanted = {"resource": resource, "clusters": [{"name": "m1"}], **spec}
    return _typed("ResourceBinding", "work.karmada.io/v1alpha2", name, spec=wanted)


def work(name: str) -> Object:
    return _typed("Work", "work.karmada.io/v1alpha1", name, spec={"workload": {"manifests": []}})


def eviction(name: str, **annotations: str) -> Object:
    return _typed("Eviction", "policy/v1", name) | {"metadata": {"name": name, "annotations": annotations}}


def event(name: str, reporter: str) -> Object:
    regarding = {"kind": "Pod", "name": "x", "namespace": "shop"}
    given = {"eventTime": _TIME, "reason": "X", "action": "X", "type": "Normal", "regarding": regarding}
    reporting = {"reportingController": reporter, "reportingInstance": "x"}
    return _typed("Event", "events.k8s.io/v1", name, **given, **reporting)


def grant(name: str, *, namespace: str, account: str, role: str = "cluster-admin") -> Object:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return _typed("ClusterRoleBinding", "rbac.authorization.k8s.io/v1", name) | {
        "roleRef": reference,
        "subjects": [subject],
    }


SERIES = {"series": {"count": 9, "lastObservedTime": _TIME}}
MOVE = {"reberth.dev/move": "m-1"}
SECRET_OF_OTHERS = {"apiVersion": "v1", "kind": "Secret", "namespace": "karmada-cluster", "name": "member1"}
OWN_WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}
MEMORY = "only subjects of the ClusterRole reberth-memory-writer"
LEAD = "only subjects of the ClusterRole reberth-leader"
PLACE = "only subjects of the ClusterRole reberth-placement-writer"
LABELS_ONLY = "the federation changes nothing of a propagated object but its labels and annotations"
TOKEN_ONLY = "the federation changes nothing of a member's Secret but its token"
NOT_THERE = "the federation writes nothing in namespaces of Kubernetes or in its own"
NOT_ITSELF = "the federation grants no rights to itself"

ATTEMPTS: tuple[Attempt, ...] = (
    Attempt(TENANT, "writes an EvictionHistory", 'cannot create resource "evictionhistories"',
            "POST", _HISTORIES, history("forged")),
    Attempt(TENANT, "writes a NodePlacementScore", 'cannot create resource "nodeplacementscores"',
            "POST", _SCORES, score("forged", "power")),
    Attempt(TENANT, "requests a move by the Lease", 'cannot patch resource "leases"',
            "PATCH", _LEASE, {"metadata": {"annotations": {"reberth.dev/move-request": "{}"}}}),
    Attempt(TENANT, "notes a node", 'cannot patch resource "nodes"',
            "PATCH", f"{_CORE}/nodes/n1", {"metadata": {"annotations": {ANNOTATION: "{}"}}}),
    Attempt(OWNER, "writes an EvictionHistory", MEMORY, "POST", _HISTORIES, history("forged")),
    Attempt(OWNER, "adds an open move to a history", MEMORY,
            "PATCH", f"{_HISTORIES}/web/status", {"status": {"givenUpUntil": "2027-11-19T12:00:00Z"}}),
    Attempt(OWNER, "deletes the histories of the namespace", MEMORY, "DELETE", _HISTORIES),
    Attempt(OWNER, "writes the move ledger", 'cannot create resource "moveledgers"',
            "POST", f"{_OURS}/moveledgers", _typed("MoveLedger", "reberth.dev/v1alpha1", "default")),
    Attempt(NODE, "notes another node", 'node "n1" is not allowed to modify node "n2"',
            "PATCH", f"{_CORE}/nodes/n2", {"metadata": {"annotations": {ANNOTATION: "{}"}}}),
    Attempt(NODE, "removes the note from itself", ALLOWED,
            "PATCH", f"{_CORE}/nodes/n1", {"metadata": {"annotations": {ANNOTATION: None}}}),
    Attempt(NODE, "evicts a pod of another node",
            "can only evict pods with spec.nodeName set to itself",
            "POST", f"{_CORE}/namespaces/shop/pods/web/eviction", eviction("web")),
    Attempt(NODE, "writes an EvictionHistory", 'cannot create resource "evictionhistories"',
            "POST", _HISTORIES, history("forged")),
    Attempt(ADD_ON, "scores a node as itself", ALLOWED, "POST", _SCORES, score("n1-power", "power")),
    Attempt(ADD_ON, "scores a node as another source", "scores of load are written only by who has the verb",
            "POST", _SCORES, score("forged", "load")),
    Attempt(ADD_ON, "changes the scores of another source",
            "scores of load are written only by who has the verb",
            "PATCH", f"{_SCORES}/n1-load/status", {"status": {"scores": [{"name": "cpu", "value": 100}]}}),
    Attempt(ADD_ON, "deletes the scores of another source",
            "scores of load are written only by who has the verb", "DELETE", f"{_SCORES}/n1-load"),
    Attempt(HOUSEKEEPER, "takes the leadership", LEAD,
            "PATCH", _LEASE, {"spec": {"holderIdentity": "mine"}}),
    Attempt(HOUSEKEEPER, "requests a move by the Lease", LEAD,
            "PATCH", _LEASE, {"metadata": {"annotations": {"reberth.dev/move-request": "{}"}}}),
    Attempt(LANDLORD, "deletes the Leases of the namespace", "only subjects of the ClusterRole reberth-",
            "DELETE", _LEASES),
    Attempt(LANDLORD, "leads the federation", PLACE, "POST", _LEASES,
            _typed("Lease", "coordination.k8s.io/v1", "reberth-federation")),
    Attempt(OPERATOR, "pauses the rescheduler", ALLOWED,
            "PATCH", _LEASE, {"metadata": {"annotations": {"reberth.dev/paused": "true"}}}),
    Attempt(OPERATOR, "makes a move by hand, as its history", ALLOWED,
            "POST", _HISTORIES, history("by-hand")),
    Attempt(OUR_RESCHEDULER, "evicts without a move",
            "the rescheduler evicts no pod without the annotation reberth.dev/move",
            "POST", f"{_CORE}/namespaces/shop/pods/web/eviction", eviction("web")),
    Attempt(OUR_RESCHEDULER, "evicts in kube-system", "the rescheduler evicts no pod of this namespace",
            "POST", f"{_CORE}/namespaces/kube-system/pods/dns/eviction", eviction("dns", **MOVE)),
    Attempt(OUR_RESCHEDULER, "evicts for a move", ALLOWED,
            "POST", f"{_CORE}/namespaces/shop/pods/web/eviction", eviction("web", **MOVE)),
    Attempt(OUR_RESCHEDULER, "cordons a node", "the rescheduler may change nothing of a node but",
            "PATCH", f"{_CORE}/nodes/n1", {"spec": {"unschedulable": True}}),
    Attempt(OUR_RESCHEDULER, "deletes a pod", 'cannot delete resource "pods"',
            "DELETE", f"{_CORE}/namespaces/shop/pods/web"),
    Attempt(OUR_RESCHEDULER, "scores a node", 'cannot create resource "nodeplacementscores"',
            "POST", _SCORES, score("forged", "power")),
    Attempt(OUR_RESCHEDULER, "changes an Event of others", "Reberth changes only its own Events",
            "PATCH", f"{_EVENTS}/shop/events/theirs", SERIES),
    Attempt(OUR_RESCHEDULER, "reads a Secret", 'cannot get resource "secrets"',
            "GET", _LOGIN),
    Attempt(OUR_EXTENDER, "evicts", 'cannot create resource "pods/eviction"',
            "POST", f"{_CORE}/namespaces/shop/pods/web/eviction", eviction("web", **MOVE)),
    Attempt(OUR_EXTENDER, "writes an EvictionHistory", 'cannot create resource "evictionhistories"',
            "POST", _HISTORIES, history("forged")),
    Attempt(OUR_EXTENDER, "changes an Event of others", "Reberth changes only its own Events",
            "PATCH", f"{_EVENTS}/shop/events/theirs", SERIES),
    Attempt(HUB_TENANT, "writes a PropagationPolicy", ALLOWED, "POST", _POLICIES,
            _typed("PropagationPolicy", "policy.karmada.io/v1alpha1", "web",
                   spec={"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]})),
    Attempt(HUB_TENANT, "binds a Secret of another namespace", PLACE,
            "POST", _BINDINGS, binding("forged", SECRET_OF_OTHERS)),
    Attempt(HUB_TENANT, "binds an object of his own", PLACE, "POST", _BINDINGS, binding("own", OWN_WEB)),
    Attempt(HUB_TENANT, "sends a workload to another member", PLACE,
            "PATCH", f"{_BINDINGS}/web", {"spec": {"clusters": [{"name": "mine"}]}}),
    Attempt(HUB_TENANT, "puts another object into a binding", PLACE,
            "PATCH", f"{_BINDINGS}/web", {"spec": {"resource": SECRET_OF_OTHERS}}),
    Attempt(HUB_TENANT, "pretends that another workload needs it", PLACE,
            "PATCH", f"{_BINDINGS}/web", {"spec": {"requiredBy": [{"name": "x"}]}}),
    Attempt(HUB_TENANT, "deletes a binding", PLACE, "DELETE", f"{_BINDINGS}/web"),
    Attempt(HUB_TENANT, "suspends a binding", ALLOWED,
            "PATCH", f"{_BINDINGS}/web", {"spec": {"suspension": {"scheduling": True}}}),
    Attempt(HUB_TENANT, "writes a Work", PLACE, "POST", f"{_WORKS}/shop/works", work("forged")),
    Attempt(OUR_FEDERATION, "deletes a namespace",
            "the federation creates and deletes nothing but namespaces of members, bindings and Works",
            "DELETE", f"{_CORE}/namespaces/shop"),
    Attempt(OUR_FEDERATION, "changes a Secret", LABELS_ONLY,
            "PATCH", f"{_CORE}/namespaces/shop/secrets/own", {"data": {"token": "bWluZQ=="}}),
    Attempt(OUR_FEDERATION, "stores a renewed token of a member", ALLOWED,
            "PATCH", _LOGIN, {"data": {"token": "bmV3"}}),
    Attempt(OUR_FEDERATION, "sends a member's token to another host", TOKEN_ONLY,
            "PATCH", _LOGIN, {"metadata": {"annotations": {"reberth.dev/host": "mine:443"}}}),
    Attempt(OUR_FEDERATION, "changes the CA of a member", TOKEN_ONLY,
            "PATCH", _LOGIN, {"data": {"caBundle": "bWluZQ=="}}),
    Attempt(OUR_FEDERATION, "scales a Deployment", LABELS_ONLY,
            "PATCH", f"{_APPS}/namespaces/shop/deployments/web", {"spec": {"replicas": 9}}),
    Attempt(OUR_FEDERATION, "claims a Deployment", ALLOWED,
            "PATCH", f"{_APPS}/namespaces/shop/deployments/web", {"metadata": {"labels": {"mine": "1"}}}),
    Attempt(OUR_FEDERATION, "sets a finalizer on a Deployment", LABELS_ONLY,
            "PATCH", f"{_APPS}/namespaces/shop/deployments/web", {"metadata": {"finalizers": ["x.y/z"]}}),
    Attempt(OUR_FEDERATION, "changes a role, where it may (`rights/`)", LABELS_ONLY,
            "PATCH", f"{_RBAC}/clusterroles/reader",
            {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
    Attempt(OUR_FEDERATION, "changes an Event of others", "Reberth changes only its own Events",
            "PATCH", f"{_EVENTS}/shop/events/theirs", SERIES),
    Attempt(OUR_MEMBER, "writes a Deployment in kube-system", NOT_THERE,
            "POST", f"{_APPS}/namespaces/kube-system/deployments", deployment("x")),
    Attempt(OUR_MEMBER, "writes a Secret in reberth-system", NOT_THERE,
            "POST", f"{_CORE}/namespaces/reberth-system/secrets", _meta("x")),
    Attempt(OUR_MEMBER, "writes a Deployment elsewhere", ALLOWED,
            "POST", f"{_APPS}/namespaces/shop/deployments", deployment("copy")),
    Attempt(OUR_MEMBER, "grants itself more, where it may write roles (`rights/`)", NOT_ITSELF,
            "POST", f"{_RBAC}/clusterrolebindings",
            grant("mine", namespace="reberth-system", account="reberth-federation-member")),
    Attempt(OUR_MEMBER, "renews its token", ALLOWED, "POST",
            _OWN_TOKEN, {"spec": {}}),
    Attempt(OUR_MEMBER, "makes a token of another account", 'cannot create resource "serviceaccounts/token"',
            "POST", f"{_CORE}/namespaces/shop/serviceaccounts/default/token", {"spec": {}}),
)  # fmt: skip


_FEDERATION = ("hub", "member", "rights/hub", "rights/member")
FOLDERS = (
    "crds",
    "crds/federation",
    "extender",
    "rescheduler",
    *(f"federation/{each}" for each in _FEDERATION),
)


def tabulate() -> list[str]:
    """Write the rows of the table in docs/security.md."""
    head = ["| who | tries | the API server says |", "|---|---|---|"]
    return [*head, *(f"| {one.who.name} | {one.tries} | {one.words} |" for one in ATTEMPTS)]


@asynccontextmanager
async def defended() -> AsyncIterator[Cluster]:
    """A control plane with everything of the manifests in force, and accounts that try something."""
    async with running(without=[SCHEDULER, KWOK]) as cluster, cluster.client() as client:
        for name in ("reberth-system", "shop", "power"):
            await client.create_if_absent(f"{_CORE}/namespaces", _meta(name))
        for folder in FOLDERS:
            await manifests.apply(client, MANIFESTS / folder)
        await _populate(client)
        await _grant_all(client)
        yield cluster


async def _populate(client: Client) -> None:
    """Create what the attempts are about."""
    for name in ("n1", "n2"):
        await client.create(f"{_CORE}/nodes", node(name))
    await client.create(f"{_CORE}/namespaces/shop/secrets", _meta("own"))
    secret = _meta("member1") | {"data": {"caBundle": "Y2E=", "token": "b2xk"}}
    await client.create(f"{_CORE}/namespaces/karmada-cluster/secrets", secret)
    for namespace, name in (("shop", "web"), ("kube-system", "dns")):
        await client.wait(f"{_CORE}/namespaces/{namespace}/serviceaccounts/default", bool)
        pod = builders.pod(name, namespace=namespace, node="n2")
        await client.create(f"{_CORE}/namespaces/{namespace}/pods", pod | _meta(name))
    await client.create(f"{_APPS}/namespaces/shop/deployments", deployment("web"))
    await client.create(_HISTORIES, history("web"))
    await client.create(_SCORES, score("n1-load", "load"))
    await client.create(_LEASES, _typed("Lease", "coordination.k8s.io/v1", "reberth-rescheduler"))
    await client.create(_BINDINGS, binding("web", OWN_WEB))
    await client.create(f"{_EVENTS}/shop/events", event("theirs", "kubelet"))
    await client.create(f"{_RBAC}/clusterroles", _role("reader", [""], ["pods"], ["get"]))


async def _grant_all(client: Client) -> None:
    """Give the accounts the roles by which they are known, as their operator would."""
    everything = _role("everything", ["*"], ["*"], ["*"])
    karmada = _role("karmada-edit", ["policy.karmada.io", "work.karmada.io"], ["*"], ["*"])
    karmada["rules"][0] |= {
        "resources": [
            "propagationpolicies",
            "resourcebindings",
            "resourcebindings/status",
            "works",
            "works/status",
        ],
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    }
    karmada["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}
    scores = _role("power", ["reberth.dev"], ["nodeplacementscores", "nodeplacementscores/status"], ["*"])
    speaks = {
        "apiGroups": ["reberth.dev"],
        "resources": ["scoresources"],
        "resourceNames": ["power"],
        "verbs": ["write"],
    }
    scores["rules"].append(speaks)
    for role in (everything, karmada, scores):
        await client.create(f"{_RBAC}/clusterroles", role)
    for namespace, role_name, user in (
        ("shop", "edit", TENANT.user),
        ("shop", "edit", HUB_TENANT.user),
        ("shop", "everything", OWNER.user),
        ("reberth-system", "edit", HOUSEKEEPER.user),
        ("reberth-system", "everything", LANDLORD.user),
    ):
        made = _bind(user, role_name, {"kind": "User", "name": user})
        await client.create(f"{_RBAC}/namespaces/{namespace}/rolebindings", made | {"kind": "RoleBinding"})
    for name, role_name, subject in (
        ("power", "power", {"kind": "ServiceAccount", "name": "agent", "namespace": "power"}),
        ("operators", "reberth-rescheduler", {"kind": "Group", "name": "reberth:operators"}),
        ("operators-leases", "edit", {"kind": "Group", "name": "reberth:operators"}),
    ):
        await client.create(f"{_RBAC}/clusterrolebindings", _bind(name, role_name, subject))
    await client.wait(
        f"{_RBAC}/clusterroles/edit", lambda found: "propagationpolicies" in str(found["rules"])
    )


def _role(name: str, groups: list[str], resources: list[str], verbs: list[str]) -> Object:
    rule = {"apiGroups": groups, "resources": resources, "verbs": verbs}
    return _typed("ClusterRole", "rbac.authorization.k8s.io/v1", name) | {"rules": [rule]}


def _bind(name: str, role: str, subject: Object) -> Object:
    group = "rbac.authorization.k8s.io"
    subject = subject if subject["kind"] == "ServiceAccount" else {"apiGroup": group, **subject}
    return _typed("ClusterRoleBinding", f"{group}/v1", name) | {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
