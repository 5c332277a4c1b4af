"""Devices that a pod claims: which of them a node can still give is known to kube-scheduler alone."""

from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.verdict import FITS, FilterVerdict, Unforeseeable
from reberth.forecast.state.view import View


def filter_dynamic_resources(incoming: IncomingPod, _view: View) -> FilterVerdict:
    claims = incoming.template.spec.resource_claims
    if not claims:
        return FITS
    names = ", ".join(claim.name for claim in claims)
    return Unforeseeable(f"the devices that it claims cannot be forecast: resource claim {names}")
