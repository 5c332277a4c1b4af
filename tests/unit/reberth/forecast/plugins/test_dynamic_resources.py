"""DynamicResources: devices that a pod claims."""

from reberth.forecast.plugins.dynamic_resources import filter_dynamic_resources
from reberth.forecast.state.verdict import FITS, Unforeseeable
from tests.support.builders import node, pod
from tests.support.forecast.worlds import asking, world


def test_a_pod_that_claims_devices_cannot_be_forecast() -> None:
    claims = [
        {"name": "gpu", "resourceClaimName": "shared"},
        {"name": "net", "resourceClaimTemplateName": "each"},
    ]
    view = world(node("n1"), pod("asking", resourceClaims=claims), pod("plain"))
    verdict = filter_dynamic_resources(asking(view), view)
    assert isinstance(verdict, Unforeseeable)
    assert verdict.reason.endswith("cannot be forecast: resource claims gpu, net")
    assert filter_dynamic_resources(asking(view, "plain"), view) is FITS
