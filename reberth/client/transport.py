"""The few parts of kubernetes_asyncio that are used: what reads a kubeconfig, and HTTP as it says.

Whoever imports anything of that package gets its records of all kinds of Kubernetes too: 38 MB and half a
second for nothing. They are loaded by two packages that do nothing else, so these are left empty while the
parts that are used are loaded. Whoever imports the package afterwards gets all of it.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec

_PACKAGE = "kubernetes_asyncio"
_CLIENT = f"{_PACKAGE}.client"


@contextmanager
def _emptied(*packages: str) -> Iterator[None]:
    """Have these packages hold nothing but what is imported from within them, and forget all of it then."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_inside(name)}
    for name in packages:
        spec = find_spec(name)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        sys.modules[name] = module_from_spec(spec)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _is_inside(name)]:
            del sys.modules[name]
        sys.modules.update(before)


def _is_inside(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")


with _emptied(_PACKAGE, _CLIENT):
    from kubernetes_asyncio.client.configuration import Configuration
    from kubernetes_asyncio.client.rest import RESTClientObject

    client = sys.modules[_CLIENT]
    client.Configuration = Configuration  # type: ignore[attr-defined] # a package that is empty as yet
    client.ApiClient = RESTClientObject  # type: ignore[attr-defined] # named there, and not used by us
    from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config

__all__ = [
    "ConfigException",
    "Configuration",
    "RESTClientObject",
    "load_incluster_config",
    "load_kube_config",
]
