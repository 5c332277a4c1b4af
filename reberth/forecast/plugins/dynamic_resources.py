"""DynamicResources: a pod with resource claims cannot be forecast.

Which devices a node can still allocate depends on ResourceSlices, CEL expressions and allocations that only
kube-scheduler tracks.

kube-scheduler: `pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go`:
`(*DynamicResources).PreFilter`, `(*DynamicResources).Filter`, `(*DynamicResources).Score`. The plugin scores
since 1.35; a pod without resource claims gets 0 for every node.
"""

from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.verdict import FITS, FilterVerdict, Unforeseeable
from reberth.forecast.state.view import View


def filter_dynamic_resources(incoming: IncomingPod, _view: View) -> FilterVerdict:
    claims = incoming.template.spec.resource_claims
    if not claims:
        return FITS
    names = ", ".join(claim.name for claim in claims)
    return Unforeseeable(f"dynamic resource allocation cannot be forecast: resource claims {names}")
