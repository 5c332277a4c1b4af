"""Blocks of ports: nobody is given one twice."""

import socket
from pathlib import Path

import pytest

from localcluster.host import ports


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBERTH_CACHE", str(tmp_path / "cache"))


def cluster(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def test_two_clusters_have_blocks_that_do_not_touch(tmp_path: Path) -> None:
    first, second = (ports.claim(cluster(tmp_path, name)) for name in ("a", "b"))
    assert abs(first - second) >= ports.BLOCK


def test_a_block_is_free_again_when_released_or_when_its_folder_is_gone(tmp_path: Path) -> None:
    folder = cluster(tmp_path, "a")
    first = ports.claim(folder)
    ports.release(first, folder)
    assert ports.claim(folder) == first
    folder.rmdir()
    assert ports.claim(cluster(tmp_path, "b")) == first


def test_a_cluster_releases_only_its_own_block(tmp_path: Path) -> None:
    first = ports.claim(cluster(tmp_path, "a"))
    ports.release(first, tmp_path / "stranger")
    assert ports.claim(cluster(tmp_path, "b")) != first


def test_a_block_with_a_port_in_use_is_skipped(tmp_path: Path) -> None:
    folder = cluster(tmp_path, "a")
    first = ports.claim(folder)
    ports.release(first, folder)
    with socket.socket() as stranger:
        stranger.bind((ports.HOST, first + 3))
        stranger.listen()
        assert ports.claim(folder) > first
