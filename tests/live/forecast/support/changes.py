"""Classes of change between a running pod and its replacement, each with the right answer stated first.

A class lays out its objects, lets pods come up, and changes something. Then every pod is deleted in turn, and
what the controller creates is held against what was foretold.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from localcluster.client import Client
from tests.support.builders import Object, container, deployment, stateful_set

CORE = "/api/v1/namespaces"
APPS = "/apis/apps/v1/namespaces"
Change = Callable[[Client, str], Awaitable[None]]


class Expected(NamedTuple):
    """What is right of the next pod: a rule that refuses it, or what it has."""

    refused: str | None = None
    cpu: str | None = None
    containers: tuple[str, ...] = ("main",)
    tolerates: str | None = None
    priority: int | None = None
    image: str | None = None
    overhead_cpu: str | None = None


class ChangeClass(NamedTuple):
    """A class of change; `before` are the objects that are there when the pods are created."""

    name: str
    expected: Expected
    change: Change
    workload: Callable[[int], Object]
    before: Callable[[str], list[tuple[str, Object]]] = lambda _namespace: []
    blocks: bool = False
    """The API server creates no pod any more, or any of several: none is deleted."""
    shows: str = ""
    """The container that a policy adds, once the API server has taken notice of it."""


async def _nothing(_client: Client, _namespace: str) -> None:
    """Change nothing."""


def _resize(cpu: str, *, most: int | None = None) -> Change:
    """Resize every pod in place, or only so many."""

    async def change(client: Client, namespace: str) -> None:
        for pod in (await client.get(f"{CORE}/{namespace}/pods"))["items"][:most]:
            await _show_resources(client, f"{CORE}/{namespace}/pods/{pod['metadata']['name']}", pod)
            path = f"{CORE}/{namespace}/pods/{pod['metadata']['name']}/resize"
            resized = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
            await client.request(
                "PATCH",
                path,
                {"spec": {"containers": [resized]}},
                patch="application/strategic-merge-patch+json",
            )

    return change


async def _show_resources(client: Client, path: str, pod: Object) -> None:
    """Say what a kubelet that can resize pods says of its containers: no others are resized."""
    asked = {each["name"]: each.get("resources", {}) for each in pod["spec"]["containers"]}
    statuses = [{**each, "resources": asked[each["name"]]} for each in pod["status"]["containerStatuses"]]
    await client.patch(f"{path}/status", {"status": {"containerStatuses": statuses}})


def _create(*made: Callable[[str], tuple[str, Object]]) -> Change:
    async def change(client: Client, namespace: str) -> None:
        for each in made:
            await client.create(*each(namespace))

    return change


def _limit_range(name: str = "limits", **item: Any) -> Callable[[str], tuple[str, Object]]:
    spec = {"limits": [{"type": "Container", **item}]}
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": spec}
    return lambda namespace: (f"{CORE}/{namespace}/limitranges", body)


async def _change_limit_range(client: Client, namespace: str) -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": "150m"}}]
    await client.patch(f"{CORE}/{namespace}/limitranges/limits", {"spec": {"limits": limits}})


def _web(replicas: int, **spec: Any) -> Object:
    return deployment("web", replicas=replicas, cpu="200m", **spec)


def _unasking(replicas: int) -> Object:
    return deployment("web", replicas=replicas)


def _set(replicas: int, **strategy: Any) -> Object:
    made = stateful_set("web", replicas=replicas, containers=[container(image="one", cpu="200m")])
    return {**made, "spec": {**made["spec"], "podManagementPolicy": "Parallel", "updateStrategy": strategy}}


def _new_image(client: Client, namespace: str) -> Awaitable[None]:
    """Give the StatefulSet another template; its strategy replaces no pod for that."""
    made = {"containers": [container(image="two", cpu="100m")]}
    return client.patch(f"{APPS}/{namespace}/statefulsets/web", {"spec": {"template": {"spec": made}}})


def _policy(name: str, mutations: list[Object]) -> list[Object]:
    """A MutatingAdmissionPolicy that changes the pods of namespaces with its label."""
    version = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": mutations,
    }
    named = {"name": name}
    bound = {
        "policyName": name,
        "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}},
    }
    return [
        {"apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": named, "spec": spec},
        {"apiVersion": version, "kind": "MutatingAdmissionPolicyBinding", "metadata": named, "spec": bound},
    ]


def _injecting(namespace: str) -> list[tuple[str, Object]]:
    """A sidecar, and a toleration, for every pod of the namespace."""
    sidecar = 'Object{spec: Object.spec{containers: [Object.spec.containers{name: "proxy", image: "proxy"}]}}'
    toleration = 'Object.spec.tolerations{key: "injected", operator: "Exists"}'
    patch = f'[JSONPatch{{op: "add", path: "/spec/tolerations/-", value: {toleration}}}]'
    mutations = [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": sidecar}},
        {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}},  # tolerations are one value
    ]
    policy, binding = _policy(namespace, mutations)
    root = "/apis/admissionregistration.k8s.io/v1"
    return [
        (f"{root}/mutatingadmissionpolicies", policy),
        (f"{root}/mutatingadmissionpolicybindings", binding),
    ]


def _runtime_class(_namespace: str) -> list[tuple[str, Object]]:
    body = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sandbox"},
        "handler": "sandbox",
        "overhead": {"podFixed": {"cpu": "30m"}},
        "scheduling": {"tolerations": [{"key": "sandbox", "operator": "Exists"}]},
    }
    return [("/apis/node.k8s.io/v1/runtimeclasses", body)]


async def _grow_runtime_class(client: Client, namespace: str) -> None:
    ((place, body),) = _runtime_class(namespace)
    await client.delete(f"{place}/sandbox")
    await client.create(place, {**body, "overhead": {"podFixed": {"cpu": "60m"}}})


def _priority(namespace: str) -> tuple[str, Object]:
    body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"{namespace}-default"},
        "value": 77,
        "globalDefault": True,
    }
    return "/apis/scheduling.k8s.io/v1/priorityclasses", body


def _own_class(_namespace: str) -> list[tuple[str, Object]]:
    body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "short-lived"},
        "value": 5,
    }
    return [("/apis/scheduling.k8s.io/v1/priorityclasses", body)]


async def _delete_class(client: Client, _namespace: str) -> None:
    await client.delete("/apis/scheduling.k8s.io/v1/priorityclasses/short-lived")


CLASSES = (
    ChangeClass("unchanged", Expected(cpu="200m"), _nothing, _web),
    ChangeClass("resized-down", Expected(cpu="200m"), _resize("100m"), _web),
    ChangeClass("resized-up", Expected(cpu="200m"), _resize("300m"), _web),
    ChangeClass(
        "limit-range",
        Expected(cpu="150m"),
        _create(_limit_range(default={"cpu": "1"}, defaultRequest={"cpu": "150m"})),
        _unasking,
    ),
    ChangeClass(
        "changed-limit-range",
        Expected(cpu="150m"),
        _change_limit_range,
        _unasking,
        lambda namespace: [_limit_range(defaultRequest={"cpu": "50m"})(namespace)],
    ),
    ChangeClass(
        "contradicting-limit-ranges",
        Expected(refused="CannotForecast"),
        _create(_limit_range("more", defaultRequest={"cpu": "150m"})),
        _unasking,
        lambda namespace: [_limit_range(defaultRequest={"cpu": "50m"})(namespace)],
        blocks=True,
    ),
    ChangeClass(
        "forbidden-by-limit-range",
        Expected(refused="CannotBeReplaced"),
        _create(_limit_range(min={"cpu": "250m"})),
        _web,
        blocks=True,
    ),
    ChangeClass(
        "injected",
        Expected(cpu="200m", containers=("main", "proxy"), tolerates="injected"),
        _resize("100m", most=1),
        _web,
        _injecting,
        shows="proxy",
    ),
    ChangeClass(
        "constrained-template",
        Expected(cpu="200m", tolerates="mine"),
        _nothing,
        lambda replicas: _web(
            replicas,
            tolerations=[{"key": "mine", "operator": "Exists"}],
            topologySpreadConstraints=[
                {
                    "maxSkew": 9,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                    "matchLabelKeys": ["pod-template-hash"],
                }
            ],
        ),
    ),
    ChangeClass("default-priority", Expected(cpu="200m", priority=77), _create(_priority), _web),
    ChangeClass(
        "missing-priority-class",
        Expected(refused="CannotBeReplaced"),
        _delete_class,
        lambda replicas: _web(replicas, priorityClassName="short-lived"),
        _own_class,
        blocks=True,
    ),
    ChangeClass(
        "partition",
        Expected(cpu="200m", image="one"),
        _new_image,
        lambda replicas: _set(replicas, type="RollingUpdate", rollingUpdate={"partition": 1000}),
    ),
    ChangeClass(
        "on-delete",
        Expected(cpu="100m", image="two"),
        _new_image,
        lambda replicas: _set(replicas, type="OnDelete"),
    ),
    ChangeClass(
        "runtime-class",
        Expected(cpu="200m", overhead_cpu="60m", tolerates="sandbox"),
        _grow_runtime_class,
        lambda replicas: _web(replicas, runtimeClassName="sandbox"),
        _runtime_class,
    ),
)
