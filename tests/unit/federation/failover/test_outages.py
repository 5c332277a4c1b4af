"""Since when workloads have no ready pod in any cluster."""

from federation.failover.outages import Outages
from tests.support.federation.objects import WEB


def test_an_outage_lasts_from_the_last_ready_pod_to_the_next_one() -> None:
    outages = Outages()
    assert outages.observe(WEB, is_ready=False, now=1) is None
    assert outages.count == 0, "it has never been up"
    assert outages.observe(WEB, is_ready=True, now=2) is None
    for now in (10, 20):
        assert outages.observe(WEB, is_ready=False, now=now) is None
    other = WEB._replace(name="other")
    outages.observe(other, is_ready=True, now=20)
    outages.observe(other, is_ready=False, now=21)
    assert (outages.count, outages.find_longest(30)) == (2, 20)
    assert outages.observe(WEB, is_ready=True, now=40) == 30
    assert (outages.count, outages.find_longest(40)) == (1, 19)
    assert outages.observe(other, is_ready=None, now=50) is None
    assert (outages.count, outages.find_longest(50)) == (0, 0)
    assert outages.observe(other, is_ready=False, now=60) is None
    assert outages.count == 0, "it is another one of that name"
