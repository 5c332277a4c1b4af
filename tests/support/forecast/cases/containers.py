"""Draw a pod's containers and their requests; for bound pods also an in-place resize."""

from reberth.cluster.pods.requests import Version
from tests.support.forecast.cases.dice import Dice, Object
from tests.support.forecast.cases.vocabulary import GPU, HUGE, IMAGES

_CPU = ("50m", "100m", "250m", "400m", "0.3", "7m", "2500u")
_MEMORY = ("32Mi", "128Mi", "256Mi", "512Mi", "1500k", "300M", "0.1Gi", "129000000500m")
_PORTS = (80, 443, 8080)
RESTARTS_ALL_CONTAINERS: Version = (1, 36)
RESIZES_PODS: Version = (1, 36)
"""The versions since which a rule may restart the whole pod, and pod-level requests are resized in place."""


def make_containers(dice: Dice, *, heavy: float) -> Object:
    """The fields `containers`, `initContainers` and `resources` of a pod's spec."""
    made: Object = {
        "containers": [_container(dice, f"c{n}", heavy) for n in range(dice.weighed({1: 6, 2: 3, 3: 1}))]
    }
    initial = []
    if dice.often("init containers", 0.2):
        initial = [_container(dice, f"i{n}", heavy * 1.5) for n in range(dice.randint(1, 2))]
    if dice.often("sidecars", 0.2):
        sidecars = [_sidecar(dice, f"s{n}", heavy) for n in range(dice.randint(1, 2))]
        initial = dice.sample([*initial, *sidecars], len(initial) + len(sidecars))
    if initial:
        made["initContainers"] = initial
    if dice.often("pod-level resources", 0.12) and not _asks_for_less_than_a_milli(made):
        made["resources"] = _pod_level(dice, made)
    _drop_repeated_ports(made)
    return made


def _drop_repeated_ports(spec: Object) -> None:
    """A pod may ask for a port of its node once only."""
    taken: set[tuple[str, int]] = set()
    for container in _all(spec):
        ports = container.pop("ports", [])
        fresh = {(port["protocol"], port["hostPort"]): port for port in ports}
        fresh = {key: port for key, port in fresh.items() if key not in taken}
        taken |= fresh.keys()
        if fresh:
            container["ports"] = list(fresh.values())


def _container(dice: Dice, name: str, heavy: float) -> Object:
    made: Object = {"name": name, "image": _image(dice), "resources": _resources(dice, heavy)}
    if dice.often("host ports", 0.07):
        made["ports"] = [_port(dice) for _ in range(dice.randint(1, 2))]
    if dice.often("restart rules", 0.04):
        made["restartPolicy"] = "Never"
        codes = {"operator": "In", "values": [42]}
        action = dice.choice(["Restart", "RestartAllContainers"])
        allowed = action if dice.version >= RESTARTS_ALL_CONTAINERS else "Restart"
        made["restartPolicyRules"] = [{"action": allowed, "exitCodes": codes}]
    return made


def _sidecar(dice: Dice, name: str, heavy: float) -> Object:
    made = _container(dice, name, heavy)
    if dice.version < RESTARTS_ALL_CONTAINERS:  # which allows them no rules
        made.pop("restartPolicyRules", None)
    return {**made, "restartPolicy": "Always"}


def _image(dice: Dice) -> str:
    name = dice.choice(IMAGES)
    return name.removesuffix(":latest") if dice.chance(0.5) else name


def _port(dice: Dice) -> Object:
    number = dice.choice(_PORTS)
    made: Object = {
        "containerPort": number,
        "hostPort": number,
        "protocol": dice.weighed({"TCP": 5, "UDP": 1}),
    }
    address = dice.weighed({None: 5, "127.0.0.1": 1, "10.0.0.7": 1, "0.0.0.0": 1})
    return {**made, "hostIP": address} if address else made


def _resources(dice: Dice, heavy: float) -> Object:
    requests: Object = {}
    if dice.chance(0.75):
        requests["cpu"] = dice.choice(_CPU)
    if dice.chance(0.7):
        requests["memory"] = dice.choice(_MEMORY)
    if dice.chance(0.06):
        requests[dice.choice(["cpu", "memory"])] = "0"
    if dice.often("ephemeral storage", 0.1 * heavy):
        requests["ephemeral-storage"] = dice.choice(["1Gi", "2G", "5Gi"])
    if dice.often("extended resources", 0.04 * heavy):
        requests[GPU] = "1"
    limits = {name: requests[name] for name in (GPU,) if name in requests}
    if dice.often("huge pages", 0.03 * heavy) and requests.get("cpu", "0") != "0":
        requests[HUGE] = limits[HUGE] = dice.choice(["2Mi", "32Mi"])
    return {key: value for key, value in (("requests", requests), ("limits", limits)) if value}


def _pod_level(dice: Dice, made: Object) -> Object:
    """At least what the containers request together: so much is always enough."""
    count = len(made["containers"]) + len(made.get("initContainers", ()))
    requests = {"cpu": f"{count * 400 + 5}m", "memory": f"{count * 512 + 3}Mi"}
    asks_little = all("requests" not in one.get("resources", {}) for one in _all(made))
    if asks_little:
        requests = {"cpu": "333m", "memory": "77Mi"}
    has_huge = any(HUGE in one["resources"].get("requests", ()) for one in _all(made))
    if has_huge and dice.chance(0.5):
        requests[HUGE] = "128Mi"
    asked = {key: value for key, value in requests.items() if dice.chance(0.8)} or requests
    limits = asked if dice.chance(0.3) else {key: asked[key] for key in asked if key == HUGE}
    return {"requests": asked, **({"limits": limits} if limits else {})}


def _asks_for_less_than_a_milli(made: Object) -> bool:
    """The API server's default for the pod would be too little for it: it rounds the sum, not the parts."""
    return any("u" in one["resources"].get("requests", {}).get("cpu", "") for one in _all(made))


def _all(spec: Object) -> list[Object]:
    return [*spec.get("initContainers", ()), *spec["containers"]]


def resized_status(dice: Dice, spec: Object) -> Object:
    """The status of a running pod whose resources were changed in place, or are to be."""
    status: Object = {
        "phase": "Running",
        "containerStatuses": [_container_status(dice, one) for one in spec["containers"]],
    }
    sidecars = [one for one in spec.get("initContainers", ()) if one.get("restartPolicy") == "Always"]
    if sidecars:
        status["initContainerStatuses"] = [_container_status(dice, one) for one in sidecars]
    if "resources" in spec:
        given = {"resources": {"requests": _actual(dice)}, "allocatedResources": _actual(dice)}
        chosen = {key: value for key, value in given.items() if dice.chance(0.8)}
        status |= chosen if dice.version >= RESIZES_PODS else {}
    pending = dice.weighed({None: 3, "Deferred": 1, "Infeasible": 2})
    if pending:
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": pending}]
    return status


def _container_status(dice: Dice, container: Object) -> Object:
    made: Object = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {}},
    }
    if dice.chance(0.8):
        made["resources"] = {"requests": _actual(dice)}
    if dice.chance(0.8):
        made["allocatedResources"] = _actual(dice)
    return made


def _actual(dice: Dice) -> Object:
    return {"cpu": dice.choice(_CPU), "memory": dice.choice(_MEMORY)}
