"""access loads only the parts of kubernetes_asyncio it needs, and other importers still get all of it."""

import subprocess
import sys

LIGHT = """
import sys
imported = []
sys.addaudithook(lambda event, told: event == "import" and imported.append(told[0]))
from reberth.client import access
assert "kubernetes_asyncio.client.rest" in imported
assert not [name for name in imported if name.startswith("kubernetes_asyncio.client.models")]
assert not [name for name in sys.modules if name.startswith("kubernetes_asyncio")], "left half loaded"
"""
WHOLE_AFTERWARDS = """
from reberth.client import access
from kubernetes_asyncio import client, config
assert client.V1Pod(kind="Pod").kind == "Pod"
assert config.load_kube_config is not access.load_kube_config
"""
WHOLE_BEFORE = """
import kubernetes_asyncio
from kubernetes_asyncio import client
from reberth.client import access
import kubernetes_asyncio as again
assert again is kubernetes_asyncio and again.client is client
"""


def run(program: str) -> None:
    """Run it where nothing is loaded yet."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_access_loads_only_the_aiohttp_modules_it_uses() -> None:
    run(LIGHT)


def test_importing_the_whole_package_later_still_loads_all_of_it() -> None:
    run(WHOLE_AFTERWARDS)


def test_a_package_imported_before_access_stays_whole() -> None:
    run(WHOLE_BEFORE)
