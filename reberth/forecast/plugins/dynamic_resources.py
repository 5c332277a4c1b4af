"""Devices that a pod claims: which of them a node can still give is known to kube-scheduler alone."""

from reberth.forecast.state.incoming_pod import Asked
from reberth.forecast.state.verdict import FITS, Unforeseeable, Verdict
from reberth.forecast.state.view import View


def refuse_resource_claims(asked: Asked, _view: View) -> Verdict:
    claims = asked.template.spec.resource_claims
    if not claims:
        return FITS
    names = ", ".join(claim.name for claim in claims)
    return Unforeseeable(f"the devices that it claims cannot be forecast: resource claim {names}")
