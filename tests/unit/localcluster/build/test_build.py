"""Programs are built once, by one, wholly or not at all. A tiny Go module stands for the large ones."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from localcluster.build import build, download_cache, products, toolchain
from localcluster.build.products import Product

BUILD = """
import sys
from pathlib import Path
from localcluster.build import build, products
products.MODULES = Path(sys.argv[1])
print(build.programs(products.Product("tiny", "1.0.0", "tiny", {"tiny": "tiny"})))
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Product:
    monkeypatch.setenv("REBERTH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBE_BINARIES", raising=False)
    monkeypatch.setattr(products, "MODULES", tmp_path / "modules")
    folder = tmp_path / "modules" / "tiny-1.0.0"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("module tiny\n\ngo 1.21\n")
    (folder / "go.sum").write_text("")
    (folder / "main.go").write_text('package main\n\nfunc main() { println("tiny") }\n')
    return Product("tiny", "1.0.0", "tiny", {"tiny": "tiny"})


def test_a_program_is_built_once(tiny: Product, capsys: pytest.CaptureFixture[str]) -> None:
    first = build.programs(tiny)
    assert subprocess.run([first["tiny"]], capture_output=True, text=True, check=True).stderr == "tiny\n"
    assert "building tiny 1.0.0" in capsys.readouterr().err
    assert build.programs(tiny) == first
    assert capsys.readouterr().err == ""


def test_another_version_of_the_sources_is_another_program(tiny: Product) -> None:
    first = build.programs(tiny)
    (tiny.sources / "go.mod").write_text("module tiny\n\ngo 1.22\n")
    assert build.programs(tiny) != first


def test_sources_in_another_folder_are_built_and_part_of_the_version(tiny: Product, tmp_path: Path) -> None:
    folder = tiny.sources.rename(tmp_path / "elsewhere")
    own = Product("tiny", "1.0.0", "tiny", {"tiny": "."}, folder=folder)
    first = build.programs(own)
    (folder / "main.go").write_text('package main\n\nfunc main() { println("other") }\n')
    second = build.programs(own)
    assert subprocess.run([second["tiny"]], capture_output=True, text=True, check=True).stderr == "other\n"
    assert first != second


async def test_parallel_starts_wait_for_one_build(tiny: Product) -> None:
    starts = await asyncio.gather(*(start(tiny) for _ in range(3)))
    answers = await asyncio.gather(*(process.communicate() for process in starts))
    assert [process.returncode for process in starts] == [0, 0, 0]
    assert len({out for out, _ in answers}) == 1
    assert sum(b"built tiny" in err for _, err in answers) == 1


async def start(tiny: Product) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    modules = str(tiny.sources.parent)
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", BUILD, modules, stdout=pipe, stderr=pipe
    )


async def test_an_interrupted_build_leaves_no_half_program(tiny: Product) -> None:
    process = await start(tiny)
    assert process.stderr is not None
    assert b"building tiny" in await process.stderr.readline()
    process.send_signal(signal.SIGKILL)
    await process.communicate()
    left = [
        path for path in download_cache.cache_folder().rglob("tiny") if path.parent.suffix != ".unfinished"
    ]
    assert left == []
    assert build.programs(tiny)["tiny"].exists()


def test_a_failed_build_names_the_error_and_the_workaround(tiny: Product) -> None:
    (tiny.sources / "main.go").write_text("package main\n\nfunc main() { nonsense }\n")
    with pytest.raises(build.BuildFailed, match="(?s)cannot build tiny 1.0.0 .*nonsense.*KUBE_BINARIES"):
        build.programs(tiny)


def test_programs_that_are_there_are_used(
    tiny: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    monkeypatch.setenv("KUBE_BINARIES", str(given))
    assert build.programs(tiny)["tiny"].parent != given  # it is not there: built
    (given / "tiny").write_text("#!/bin/sh\n")
    (given / "tiny").chmod(0o755)
    assert build.programs(tiny) == {"tiny": given / "tiny"}
    monkeypatch.setenv("KUBE_BINARIES", str(tmp_path / "nowhere"))
    with pytest.raises(build.BuildFailed, match="KUBE_BINARIES=.*nowhere is not a folder"):
        build.programs(tiny)


def test_a_build_without_go_says_which_go_is_needed(tiny: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(toolchain.NoGo, match="needs Go 1.26 or newer: none on PATH, and none from PyPI"):
        build.programs(tiny)


def test_an_unknown_version_of_kubernetes_is_refused() -> None:
    known = "1.37.1, 1.36.3, 1.35.4"
    with pytest.raises(ValueError, match=f"Kubernetes 1.12.0 is not pinned here; known: {known}"):
        products.kubernetes("1.12.0")
    with pytest.raises(ValueError, match=f"kubelet 1.12.0 is not pinned here; known: {known}"):
        products.kubelet("1.12.0")


def test_a_pinned_product_names_its_module_and_version_in_go_mod() -> None:
    pinned = [products.ETCD, products.KWOK, products.DESCHEDULER, products.CONTAINERD]
    pinned.append(products.VERTICAL_AUTOSCALER)
    pinned += [products.kubernetes(version) for version in products.KUBERNETES_VERSIONS]
    pinned += [products.kubelet(version) for version in products.KUBELET_VERSIONS]
    for product in pinned:
        required = f"{product.module} v{product.version}"
        assert required in (product.sources / "go.mod").read_text(), product.title
        assert (product.sources / "go.sum").stat().st_size > 0, product.title
