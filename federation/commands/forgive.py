"""`python -m federation forgive`: a workload may return to clusters in which it failed, and move again."""

import argparse
import asyncio

from federation.api import ResourceBinding
from federation.api.eviction_blocks import find_blocks
from federation.hub.object_api import ObjectApi
from federation.objects import resources
from reberth.cli.inputs import add_access_arguments, add_namespace_argument, read_access, read_name, read_now
from reberth.client.access import Access
from reberth.cluster.kinds import Resource
from reberth.values.errors import ConfigurationError, NotFound, taken_apart

DESCRIPTION = "forget in which clusters a workload failed: it may return there, and is not given up any more"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("binding", metavar="BINDING", help="NAMESPACE/NAME, or NAME with -n")
    parser.add_argument(
        "--cluster-scoped", action="store_true", help="BINDING is the name of a ClusterResourceBinding"
    )
    add_namespace_argument(parser, default="that of the kubeconfig's context")
    add_access_arguments(parser)


def answer(arguments: argparse.Namespace) -> str:
    """Forgive, and return what is printed. Raises ConfigurationError, or ReberthError."""
    resource, namespace, name = _find(arguments)
    with taken_apart():
        return asyncio.run(_forgive(read_access(arguments), resource, namespace, name, read_now(None)))


def _find(arguments: argparse.Namespace) -> tuple[Resource[ResourceBinding], str, str]:
    if arguments.cluster_scoped:
        return resources.CLUSTER_BINDINGS, "", arguments.binding
    return resources.BINDINGS, *read_name(arguments.binding, "BINDING", arguments, live=True)


async def _forgive(
    access: Access, resource: Resource[ResourceBinding], namespace: str, name: str, now: float
) -> str:
    shown = "/".join(filter(None, (namespace, name)))
    async with ObjectApi(access) as api:
        try:
            binding: ResourceBinding = await api.get(resource, name, namespace=namespace)
        except NotFound as error:
            raise ConfigurationError(f"BINDING: {shown} not found") from error
        history = binding.spec.active_eviction_history or ()
        if not history:
            return f"{shown} has no eviction history: nothing to forgive"
        version = binding.metadata.resource_version
        patch = {"metadata": {"resourceVersion": version}, "spec": {"activeEvictionHistory": None}}
        await api.merge(resource, name, patch, namespace=namespace)
    return _describe(shown, binding, now)


def _describe(shown: str, binding: ResourceBinding, now: float) -> str:
    history = binding.spec.active_eviction_history or ()
    blocked = find_blocks(binding, now=now)
    said = {each.cluster_name: " (blocked)" if each.cluster_name in blocked else "" for each in history}
    names = ", ".join(name + more for name, more in said.items())
    return f"{shown} may return to the clusters in which it failed: {names}"
