"""Devices that a pod claims: which of them a node can still give is known to kube-scheduler alone."""

from reberth.landing.asking import Asked
from reberth.landing.verdicts import FITS, Unforeseeable, Verdict
from reberth.landing.viewing import View


def refuse_resource_claims(asked: Asked, _view: View) -> Verdict:
    claims = asked.template.spec.resource_claims
    if not claims:
        return FITS
    names = ", ".join(claim.name for claim in claims)
    return Unforeseeable(f"the devices that it claims cannot be forecast: resource claim {names}")
