"""Addresses and cables of real nodes: in ranges reserved for documentation, from a bridge to each node."""

import ipaddress
import subprocess

BRIDGE = "nodes"
RANGE = ipaddress.ip_network("192.0.2.0/24")
GATEWAY = "192.0.2.1"
API_SERVER_PORT = 6443
_FIRST_NODE = 11
_POD_RANGES = [
    part
    for whole in ("198.51.100.0/24", "203.0.113.0/24")
    for part in ipaddress.ip_network(whole).subnets(new_prefix=26)
]
MOST_NODES = len(_POD_RANGES)
MOST_PODS = _POD_RANGES[0].num_addresses - 4  # the network, its gateway, the broadcast, and one to spare


def address_of(number: int) -> str:
    """Of the node of this number, from 1."""
    return str(RANGE[_FIRST_NODE + number - 1])


def pod_range_of(number: int) -> str:
    return str(_POD_RANGES[number - 1])


def is_of_node(host: str) -> bool:
    try:
        return ipaddress.ip_address(host) in RANGE
    except ValueError:
        return False


def create_bridge() -> None:
    """In this process's own network namespace, a new one."""
    ip("link", "set", "lo", "up")
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("address", "add", f"{GATEWAY}/{RANGE.prefixlen}", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")


def connect_node(name: str, address: str, network_pid: int) -> None:
    """Put a cable between the bridge and this process's own network namespace, a new one."""
    ip("link", "set", "lo", "up")
    ip("link", "add", "eth0", "type", "veth", "peer", "name", name, "netns", str(network_pid))
    ip("address", "add", f"{address}/{RANGE.prefixlen}", "dev", "eth0")
    ip("link", "set", "eth0", "up")
    ip("link", "set", name, "master", BRIDGE, "up", inside=network_pid)


def set_cable(name: str, state: str, network_pid: int) -> None:
    """Take the node's end of the bridge `down`, or `up` again."""
    ip("link", "set", name, state, inside=network_pid)


def ip(*arguments: str, inside: int | None = None) -> None:
    """Run ip, here or in the network namespace of a process."""
    entering = ["nsenter", "--target", str(inside), "--net", "--"] if inside else []
    subprocess.run([*entering, "ip", *arguments], check=True, stdin=subprocess.DEVNULL)
