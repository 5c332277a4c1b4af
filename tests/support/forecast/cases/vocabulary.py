"""The names used in cases: few, so that selectors often match."""

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
RACK = "example.com/rack"
DISK = "disk"
GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"
ZONES = ("z1", "z2", "z3")

NAMESPACES = ("red", "blue", "green")
APPS = ("web", "db", "cache")
TIERS = ("front", "back")
VERSIONS = ("v1", "v2")
IMAGES = ("registry.example/app:1.0", "registry.example/base:latest", "tools:3", "huge:latest", "side:1")

FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")

TAINTS = (
    {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "web", "effect": "PreferNoSchedule"},
    {"key": "flaky", "effect": "PreferNoSchedule"},
    {"key": "old", "value": "yes", "effect": "PreferNoSchedule"},
    {"key": "broken", "value": "disk", "effect": "NoExecute"},
)

PRIORITIES = {"low": -10, "ordinary": 0, "high": 1000}
RUNTIMES = {"sandboxed": {"cpu": "130m", "memory": "100Mi"}, "plain": {}}
