"""What happens to the pods of a class of change, and the objects that are there before."""

from collections.abc import Callable
from typing import Any

from localcluster.client import Client, all_of
from tests.live.forecast.changes.change import APPS, CORE, Change
from tests.support.builders import Object, container, deployment, stateful_set

ZONE = "topology.kubernetes.io/zone"


async def nothing(_client: Client, _namespace: str) -> None:
    """Change nothing."""


def resizing(cpu: str, *, every: int = 1) -> Change:
    """Resize every pod in place, or every second."""

    async def change(client: Client, namespace: str) -> None:
        await all_of(
            _resize(client, pod, cpu) for pod in (await list_pods(client, namespace))[every - 1 :: every]
        )

    return change


async def _resize(client: Client, pod: Object, cpu: str) -> None:
    path = f"{CORE}/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    resized = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    await _show_resources(client, path, pod, {})
    await client.request(
        "PATCH",
        f"{path}/resize",
        {"spec": {"containers": [resized]}},
        patch="application/strategic-merge-patch+json",
    )
    await _show_resources(client, path, pod, {"main": resized["resources"]})


async def _show_resources(client: Client, path: str, pod: Object, resized: Object) -> None:
    """Say what a kubelet that can resize pods says of its containers: no others are resized."""
    asked = {each["name"]: each.get("resources", {}) for each in pod["spec"]["containers"]} | resized
    statuses = [
        {
            **each,
            "resources": asked[each["name"]],
            "allocatedResources": asked[each["name"]].get("requests", {}),
        }
        for each in pod["status"]["containerStatuses"]
    ]
    await client.patch(f"{path}/status", {"status": {"containerStatuses": statuses}})


def tolerating(key: str) -> Change:
    """Let every second pod tolerate a taint: tolerations can be added to a pod that runs."""

    async def change(client: Client, namespace: str) -> None:
        for pod in (await list_pods(client, namespace))[1::2]:
            added = [*pod["spec"]["tolerations"], {"key": key, "operator": "Exists"}]
            path = f"{CORE}/{namespace}/pods/{pod['metadata']['name']}"
            await client.patch(path, {"spec": {"tolerations": added}})

    return change


def leaving_room(cpu_of_each: int, *, room: int) -> Change:
    """Resize all pods, and create a quota with room for so many millicores more."""

    async def change(client: Client, namespace: str) -> None:
        await resizing(f"{cpu_of_each}m")(client, namespace)
        count = len(await list_pods(client, namespace))
        hard = {"requests.cpu": f"{count * cpu_of_each + room}m"}
        quota = {"metadata": {"name": "edge"}, "spec": {"hard": hard}}
        await client.create(f"{CORE}/{namespace}/resourcequotas", quota)

    return change


def leaving_room_for_all(cpu_of_each: int, *, growth: int, room: int) -> Change:
    """Do the same, with room for what all replacements ask for more, and so many millicores."""

    async def change(client: Client, namespace: str) -> None:
        count = len(await list_pods(client, namespace))
        await leaving_room(cpu_of_each, room=(count - 1) * growth + room)(client, namespace)

    return change


async def enforce_baseline(client: Client, namespace: str) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    await client.patch(f"{CORE}/{namespace}", {"metadata": {"labels": labels}})


async def list_pods(client: Client, namespace: str) -> list[Object]:
    pods: list[Object] = (await client.get(f"{CORE}/{namespace}/pods"))["items"]
    return pods


def creating(*made: Callable[[str], tuple[str, Object]]) -> Change:
    async def change(client: Client, namespace: str) -> None:
        for each in made:
            await client.create(*each(namespace))

    return change


def limit_range(name: str = "limits", **item: Any) -> Callable[[str], tuple[str, Object]]:
    spec = {"limits": [{"type": "Container", **item}]}
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": spec}
    return lambda namespace: (f"{CORE}/{namespace}/limitranges", body)


async def change_limit_range(client: Client, namespace: str) -> None:
    limits = [{"type": "Container", "defaultRequest": {"cpu": "150m"}}]
    await client.patch(f"{CORE}/{namespace}/limitranges/limits", {"spec": {"limits": limits}})


def web(replicas: int, **spec: Any) -> Object:
    return deployment("web", replicas=replicas, cpu="200m", **spec)


def unasking(replicas: int) -> Object:
    return deployment("web", replicas=replicas)


def make_set(replicas: int, **strategy: Any) -> Object:
    made = stateful_set("web", replicas=replicas, containers=[container(image="one", cpu="200m")])
    return {**made, "spec": {**made["spec"], "podManagementPolicy": "Parallel", "updateStrategy": strategy}}


async def new_image(client: Client, namespace: str) -> None:
    """Give the StatefulSet another template; its strategy replaces no pod for that."""
    made = {"containers": [container(image="two", cpu="100m")]}
    await client.patch(f"{APPS}/{namespace}/statefulsets/web", {"spec": {"template": {"spec": made}}})


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


def injecting(namespace: str) -> list[tuple[str, Object]]:
    """A sidecar, and a toleration, for every pod of the namespace."""
    sidecar = 'Object{spec: Object.spec{containers: [Object.spec.containers{name: "proxy", image: "proxy"}]}}'
    toleration = 'Object.spec.tolerations{key: "injected", operator: "Exists"}'
    added = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": sidecar}}
    return _place_policy(namespace, [added, _add("tolerations/-", toleration)])  # tolerations are one value


def keeping_to_zones(namespace: str) -> list[tuple[str, Object]]:
    """A node affinity for every pod of the namespace."""
    affinity = "Object.spec.affinity"
    required = f"{affinity}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    term = f"{required}.nodeSelectorTerms"
    zones = f'{term}.matchExpressions{{key: "{ZONE}", operator: "In", values: ["a", "b"]}}'
    value = (
        f"{affinity}{{nodeAffinity: {affinity}.nodeAffinity{{requiredDuringSchedulingIgnoredDuringExecution: "
        f"{required}{{nodeSelectorTerms: [{term}{{matchExpressions: [{zones}]}}]}}}}}}"
    )
    return _place_policy(namespace, [_add("affinity", value)])


def _add(field: str, value: str) -> Object:
    patch = f'[JSONPatch{{op: "add", path: "/spec/{field}", value: {value}}}]'
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}


def _place_policy(namespace: str, mutations: list[Object]) -> list[tuple[str, Object]]:
    policy, binding = _policy(namespace, mutations)
    root = "/apis/admissionregistration.k8s.io/v1"
    return [
        (f"{root}/mutatingadmissionpolicies", policy),
        (f"{root}/mutatingadmissionpolicybindings", binding),
    ]


def runtime_class(_namespace: str) -> list[tuple[str, Object]]:
    body = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sandbox"},
        "handler": "sandbox",
        "overhead": {"podFixed": {"cpu": "30m"}},
        "scheduling": {"tolerations": [{"key": "sandbox", "operator": "Exists"}]},
    }
    return [("/apis/node.k8s.io/v1/runtimeclasses", body)]


async def grow_runtime_class(client: Client, namespace: str) -> None:
    ((place, body),) = runtime_class(namespace)
    await client.delete(f"{place}/sandbox")
    await client.create(place, {**body, "overhead": {"podFixed": {"cpu": "60m"}}})


def priority(namespace: str) -> tuple[str, Object]:
    body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"{namespace}-default"},
        "value": 77,
        "globalDefault": True,
    }
    return "/apis/scheduling.k8s.io/v1/priorityclasses", body


def own_class(_namespace: str) -> list[tuple[str, Object]]:
    body = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "short-lived"},
        "value": 5,
    }
    return [("/apis/scheduling.k8s.io/v1/priorityclasses", body)]


async def delete_class(client: Client, _namespace: str) -> None:
    await client.delete("/apis/scheduling.k8s.io/v1/priorityclasses/short-lived")
