"""The container images of real nodes, made here: no registry is asked.

`localhost/pause:1` holds the namespaces of a pod, `localhost/busybox:1` is what its containers run. Both are
in one archive (an OCI image layout), which `ctr images import` reads.
"""

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localcluster.realnodes.programs import NodePrograms
from localcluster.realnodes.requirements import ARCHITECTURES

PAUSE = "localhost/pause:1"
BUSYBOX = "localhost/busybox:1"
_FOLDERS = ("bin", "dev", "etc", "proc", "run", "sys", "tmp", "usr")
_CREATED = "2026-01-01T00:00:00Z"
_OCI = "application/vnd.oci.image"


@dataclass
class Archive:
    """An OCI image layout: its blobs, and the manifests in its index."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: list[dict[str, Any]] = field(default_factory=list)

    def add_image(self, name: str, layer: bytes, entrypoint: Sequence[str]) -> None:
        digest = hashlib.sha256(layer).hexdigest()
        machine = {"architecture": ARCHITECTURES[platform.machine()], "os": "linux"}
        config = machine | {
            "created": _CREATED,
            "config": {"Entrypoint": list(entrypoint), "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created": _CREATED}],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.manifest.v1+json",
            "config": self._add(f"{_OCI}.config.v1+json", _json(config)),
            "layers": [self._add(f"{_OCI}.layer.v1.tar", layer)],
        }
        names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.split(":")[1]}
        entry = self._add(f"{_OCI}.manifest.v1+json", _json(manifest))
        self.manifests.append({**entry, "annotations": names, "platform": machine})

    def _add(self, kind: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    def write(self, path: Path) -> None:
        index = {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.index.v1+json",
            "manifests": self.manifests,
        }
        files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index)}
        files |= {f"blobs/sha256/{digest}": content for digest, content in self.blobs.items()}
        path.write_bytes(tar(files))


def write(programs: NodePrograms, path: Path) -> None:
    """Write the archive with both images."""
    archive = Archive()
    pause = tar({"pause": programs.pause.read_bytes()}, folders=_FOLDERS)
    archive.add_image(PAUSE, pause, ["/pause"])
    archive.add_image(BUSYBOX, _busybox_layer(programs.busybox), ["/bin/sh", "-c"])
    archive.write(path)


def _busybox_layer(busybox: Path) -> bytes:
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    links = {f"bin/{name}": "busybox" for name in listed.stdout.split() if name != "busybox"}
    return tar({"bin/busybox": busybox.read_bytes()}, folders=_FOLDERS, links=links)


def tar(
    files: Mapping[str, bytes], *, folders: Sequence[str] = (), links: Mapping[str, str] | None = None
) -> bytes:
    """A tar archive without times or owners, so that its digest depends on its content alone."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in folders:
            archive.addfile(_entry(name, tarfile.DIRTYPE, mode=0o1777 if name == "tmp" else 0o755))
        for name, content in files.items():
            archive.addfile(_entry(name, tarfile.REGTYPE, size=len(content)), io.BytesIO(content))
        for name, target in (links or {}).items():
            archive.addfile(_entry(name, tarfile.SYMTYPE, linkname=target))
    return out.getvalue()


def _entry(
    name: str, kind: bytes, *, mode: int = 0o755, size: int = 0, linkname: str = ""
) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size, entry.linkname = kind, mode, size, linkname
    return entry


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()
