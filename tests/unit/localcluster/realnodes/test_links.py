"""The addresses of real nodes: all reserved for documentation, none given twice."""

import ipaddress

from localcluster.realnodes import links

DOCUMENTATION = [ipaddress.ip_network(each) for each in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")]


def test_addresses_of_nodes_are_in_one_range_and_differ_from_the_gateway() -> None:
    found = {links.address_of(number) for number in range(1, links.MOST_NODES + 1)}
    assert len(found) == links.MOST_NODES
    assert links.GATEWAY not in found
    assert all(map(links.is_of_node, found))


def test_pods_of_different_nodes_have_no_address_in_common() -> None:
    ranges = [ipaddress.ip_network(links.pod_range_of(number)) for number in range(1, links.MOST_NODES + 1)]
    assert not any(one.overlaps(other) for one in ranges for other in ranges if one is not other)
    assert all(any(each.subnet_of(whole) for whole in DOCUMENTATION) for each in ranges)
    assert all(each.num_addresses - 3 > links.MOST_PODS for each in ranges)


def test_only_addresses_of_the_range_are_of_nodes() -> None:
    assert not any(map(links.is_of_node, ("127.0.0.1", "198.51.100.2", "a.example", "")))
