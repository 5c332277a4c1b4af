"""How the services of a real node are started."""

from localcluster.realnodes import node_process
from localcluster.realnodes.node_plan import CONTAINERD, KUBELET, NodePlan

PLAN = NodePlan(
    name="real-1",
    address="192.0.2.11",
    folder="/it/nodes/real-1",
    cluster="/it",
    group="reberth-0-real-1",
    kubeconfig="/it/kubeconfigs/node.yaml",
    network_pid=1,
    memory=1,
    search_path="/a:/b",
    kubelet_flags=("--v=9",),
)


def test_the_kubelet_is_this_node_and_its_own_flags_come_last() -> None:
    arguments = node_process.arguments(PLAN, KUBELET)
    assert "--hostname-override=real-1" in arguments
    assert "--node-ip=192.0.2.11" in arguments
    assert arguments[-1] == "--v=9"


def test_a_service_is_tagged_and_finds_the_programs_of_the_node_first() -> None:
    found = node_process.environment(PLAN, CONTAINERD, {"PATH": "/bin", "HOME": "/root"})
    assert found == {
        "LOCALCLUSTER_PROCESS": "/it#real-1/containerd",
        "PATH": "/a:/b:/bin",
        "TMPDIR": "/run",
        "HOME": "/root",
    }
