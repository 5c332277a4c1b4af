"""The files of a real node: what they say, and to whom its certificates belong."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from localcluster import credentials
from localcluster.components import Design
from localcluster.realnodes import node_files
from localcluster.realnodes.node_files import NodeShape
from localcluster.realnodes.node_plan import NodePlan, read_plan
from localcluster.realnodes.programs import NodePrograms

GIBIBYTE = 1 << 30


@pytest.fixture
def design(tmp_path: Path) -> Design:
    made = Design(folder=str(tmp_path / "it"), first_port=18000, kubernetes="1.36.3", real_nodes=2)
    Path(made.folder).mkdir()
    credentials.create(made)
    return made


@pytest.fixture
def plan(design: Design) -> NodePlan:
    programs = NodePrograms(*(Path(f"/programs/{name}/it") for name in ("k", "c", "r", "cni", "p", "b")))
    shape = NodeShape(memory=4 * GIBIBYTE, kubelet={"maxPods": 7}, labels={"disk": "ssd"})
    return node_files.write(design, 2, programs, shape)


def test_the_plan_is_what_the_node_reads(plan: NodePlan) -> None:
    assert read_plan(Path(plan.folder)) == plan
    assert (plan.name, plan.address) == ("real-2", "192.0.2.12")
    assert plan.search_path == "/programs/k:/programs/c:/programs/r"
    assert plan.kubelet_flags == ("--node-labels=localcluster.reberth.dev/real=,disk=ssd",)


def test_the_kubelet_has_the_fields_of_the_shape_and_the_files_exist(plan: NodePlan) -> None:
    kubelet = yaml.safe_load(plan.path("kubelet.yaml").read_text())
    assert kubelet["maxPods"] == 7
    for path in (kubelet["tlsCertFile"], kubelet["tlsPrivateKeyFile"], kubelet["resolvConf"]):
        assert Path(path).exists()


def test_a_smaller_memory_is_the_distance_at_which_pods_are_evicted(plan: NodePlan) -> None:
    shape = NodeShape(memory=4 * GIBIBYTE)
    found = node_files.kubelet_configuration(plan, shape, 16 * GIBIBYTE)["evictionHard"]
    assert found["memory.available"] == str(12 * GIBIBYTE)
    found = node_files.kubelet_configuration(plan, shape, 2 * GIBIBYTE)["evictionHard"]
    assert found["memory.available"] == str(100 << 20)


def test_the_node_is_known_to_the_node_authorizer(plan: NodePlan) -> None:
    user = yaml.safe_load(Path(plan.kubeconfig).read_text())["users"][0]["user"]
    certificate = x509.load_pem_x509_certificate(Path(user["client-certificate"]).read_bytes())
    assert certificate.subject.rfc4514_string() == "CN=system:node:real-2,O=system:nodes"


def test_containerd_and_cni_know_their_folders(plan: NodePlan) -> None:
    containerd = tomllib.loads(plan.path("containerd.toml").read_text())
    cni = containerd["plugins"]["io.containerd.cri.v1.runtime"]["cni"]
    assert cni == {"bin_dirs": ["/programs/cni/it"], "conf_dir": str(plan.path("cni"))}
    network = json.loads(plan.path("cni", "10-bridge.conflist").read_text())
    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "198.51.100.64/26"}]]
