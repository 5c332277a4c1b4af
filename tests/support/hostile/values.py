"""Values at the ends of what the API server takes, and beyond what anybody expects."""

from tests.support import builders
from tests.support.builders import Object

NODE_OF_TENANT = "hostile-0"
FORBIDDEN_NODE = "n0"
"""A node with a taint, so that its pods are proposed for a move."""
REPLICA_SET = builders.owner("ReplicaSet", "evil-abc", uid="uid-rs-evil")

_DEEP = '{"x":' + "[" * 20_000 + "]" * 20_000 + "}"
TEXTS = (
    *("", "true", "false", "apply", "off", "1h", "99999999h", "-1", "2147483647", "-2147483648", "5e3", "0"),
    *(
        "../x",
        "a/b",
        "%2F",
        "\n",
        "\x00",
        "\ud7ff",
        "٣",
        "😀" * 100,
        "1" * 64 + "h",
        "1h" * 40,
        "1" * 100_000,
    ),
    *("x" * 63, "x" * 1024, "x" * 1025, "x" * 2**17, "load/cpu=1," * 2_000, '{"a":' * 5_000, _DEEP),
    *(
        '{"preferAvoidPods": [{}]}',
        '{"preferAvoidPods": [{"podSignature": {"podController": {"uid": "u"}}}]}',
    ),
)
# What nearly means something, for the annotations that have a grammar of their own.
MEANT = {
    "karpenter.sh/do-not-disrupt": (
        "99999999h",
        "9" * 63 + "h",
        "1h" * 40,
        "-99999999h",
        "1" * 100_000,
        "1.h",
    ),
    "reberth.dev/automation": ("apply", "off", "recommend", "APPLY", "x" * 2**17),
    "reberth.dev/score-weights": (
        "load/cpu=3",
        "load/cpu=999",
        "load/cpu=1," * 90,
        "load/cpu=1".ljust(2**17),
    ),
    "controller.kubernetes.io/pod-deletion-cost": ("2147483647", "-2147483648", "9" * 2**17, "٣", "1e3"),
    "scheduling.koordinator.sh/eviction-cost": ("2147483647", "-1", "9" * 64, ""),
    "descheduler.alpha.kubernetes.io/prefer-no-eviction": ("", "x" * 2**17),
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": ("e", "e," * 50_000, ","),
}
QUANTITIES = (
    *("0", "1", "100m", "1n", "9223372036854775807", "8Ei", "7Ei", "9223372036854775807m", "1E"),
    *("4611686018427387904", "-0", "1e18", "0.000000001"),
)
LABELS = ("", "a", "0", "-1", "007", "9223372036854775808", "x" * 63, "1e5", "true", "A_B.c")
KEYS = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "app", f"{'a' * 200}.example.com/{'k' * 63}")
TIMES = (
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-11-18T11:59:59Z", "2026-11-18T12:00:01Z"),
    "9999-12-31T23:59:59-23:59",
)
INT32 = (-(2**31), -1, 0, 1, 2, 100, 2**31 - 1)
OWNERS: tuple[list[Object], ...] = (
    *(
        [],
        [REPLICA_SET],
        [builders.owner("Node", "n0", uid="n", api_version="v1")],
        [builders.owner("DaemonSet", "d")],
    ),
    [builders.owner("X" * 63, "x" * 253, uid="u", api_version="a/b/c")],
    [builders.owner("K" * 2_000, "n" * 100_000, uid="u" * 1_000, api_version="v" * 1_000)],
    [builders.owner("Job", "../x", api_version="batch/v1"), {**REPLICA_SET, "controller": False}],
    [builders.owner("ReplicaSet", "web", uid="uid-shop-web")],  # that of a neighbour
)
