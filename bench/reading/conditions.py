"""The conditions of a measurement: date, machine, versions, and other load."""

import datetime as dt
import os
import platform
from importlib.metadata import version
from pathlib import Path

from bench.reading.arms import INFORMER
from localcluster.build import products, toolchain

_PACKAGES = ("aiohttp", "kubernetes_asyncio", "msgspec", "numpy")


class Conditions:
    """Begins when the measurement does."""

    def __init__(self) -> None:
        self._began = dt.datetime.now(dt.UTC)
        self._load = os.getloadavg()[0]

    def describe(self) -> str:
        packages = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
        return (
            f"Measured on {self._began:%Y-%m-%d %H:%M} UTC. Machine: {_processor()}, {os.cpu_count()} cores, "
            f"{_memory() / 1e9:.0f} GB, Linux {platform.release()}; load average at the beginning "
            f"{self._load:.1f}, at the end {os.getloadavg()[0]:.1f}. "
            f"Python {platform.python_version()}, {packages}; "
            f"client-go {INFORMER.version} with {toolchain.find().version}; "
            f"Kubernetes {products.kubernetes().version}, etcd {products.ETCD.version}."
        )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
