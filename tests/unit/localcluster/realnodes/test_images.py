"""The images of real nodes: an OCI layout whose digests fit, the same for the same programs."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from localcluster.realnodes import images
from localcluster.realnodes.programs import NodePrograms


@pytest.fixture
def programs(tmp_path: Path) -> NodePrograms:
    busybox, pause = tmp_path / "busybox", tmp_path / "pause"
    busybox.write_text("#!/bin/sh\nprintf 'busybox\\nls\\nsh\\n'\n")
    busybox.chmod(0o755)
    pause.write_bytes(b"a program")
    other = tmp_path / "other"
    return NodePrograms(other, other, other, other, pause=pause, busybox=busybox)


def read(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]


def test_both_images_are_named_and_every_digest_fits(programs: NodePrograms, tmp_path: Path) -> None:
    images.write(programs, tmp_path / "images.tar")
    files = read(tmp_path / "images.tar")
    blobs = {name.rpartition("/")[2]: content for name, content in files.items() if "blobs" in name}
    assert all(hashlib.sha256(content).hexdigest() == digest for digest, content in blobs.items())
    entries = json.loads(files["index.json"])["manifests"]
    assert [each["annotations"]["io.containerd.image.name"] for each in entries] == [
        images.PAUSE,
        images.BUSYBOX,
    ]
    for entry in entries:
        manifest = json.loads(blobs[entry["digest"].removeprefix("sha256:")])
        for part in (manifest["config"], *manifest["layers"]):
            assert len(blobs[part["digest"].removeprefix("sha256:")]) == part["size"]


def test_busybox_has_a_link_for_each_applet(programs: NodePrograms, tmp_path: Path) -> None:
    images.write(programs, tmp_path / "images.tar")
    files = read(tmp_path / "images.tar")
    layers = [content for content in files.values() if b"bin/busybox" in content]
    with tarfile.open(fileobj=io.BytesIO(layers[0])) as layer:
        links = {member.name: member.linkname for member in layer if member.issym()}
        assert links == {"bin/ls": "busybox", "bin/sh": "busybox"}
        assert layer.getmember("bin/busybox").mode == 0o755


def test_the_same_programs_give_the_same_images(programs: NodePrograms, tmp_path: Path) -> None:
    for name in ("one", "two"):
        images.write(programs, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
