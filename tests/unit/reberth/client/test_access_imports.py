"""What of kubernetes_asyncio is loaded, and that nobody else is touched by it."""

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


def test_only_what_is_used_is_loaded() -> None:
    run(LIGHT)


def test_whoever_imports_the_package_afterwards_gets_all_of_it() -> None:
    run(WHOLE_AFTERWARDS)


def test_whoever_has_imported_the_package_before_keeps_it() -> None:
    run(WHOLE_BEFORE)
