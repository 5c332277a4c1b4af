"""Write the go.mod and go.sum of a product anew: python -m localcluster.build.pin kubernetes-1.37.1.

A maintainer runs it after a change of a version in `products`. The published module of Kubernetes lacks the
staging folders that its own go.mod points to, so each of these modules is replaced by its release.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from localcluster.build import products, toolchain
from localcluster.build.products import Product

PINNED = {
    product.sources.name: product
    for product in (
        products.ETCD,
        products.KWOK,
        products.DESCHEDULER,
        products.CONTAINERD,
        products.VERTICAL_AUTOSCALER,
        *map(products.kubernetes, products.KUBERNETES_VERSIONS),
        *map(products.kubelet, products.KUBELET_VERSIONS),
    )
}
_LANGUAGE = re.compile(r"^go \S+$", re.MULTILINE)
_STAGED = re.compile(r"^[ \t]+(k8s\.io/\S+) => \./staging", re.MULTILINE)


def pin(product: Product) -> None:
    go = toolchain.find().path
    product.sources.mkdir(parents=True, exist_ok=True)
    wanted = f"{product.module}@v{product.version}"
    command = [go, "mod", "download", "-json", wanted]
    answer = subprocess.run(command, cwd=product.sources.parent, capture_output=True, text=True, check=True)
    published = Path(json.loads(answer.stdout)["GoMod"]).read_text()
    (product.sources / "go.mod").write_text(go_mod(product, published))
    (product.sources / "tools.go").write_text(tools_go(product))
    subprocess.run([go, "mod", "tidy"], cwd=product.sources, check=True)


def go_mod(product: Product, published: str) -> str:
    """The module that requires the product and nothing else; `go mod tidy` adds what that needs."""
    language = _LANGUAGE.search(published)
    lines = [f"module localcluster/{product.name}", language[0] if language else ""]
    lines.append(f"require {product.module} v{product.version}")
    return (
        "\n\n".join([*lines, *(f"replace {old} => {new}" for old, new in _replaced(product, published))])
        + "\n"
    )


def _replaced(product: Product, published: str) -> list[tuple[str, str]]:
    staged = _STAGED.findall(published)
    release = product.version.removeprefix("1.")
    return [*(product.replaced or {}).items(), *((module, f"{module} v0.{release}") for module in staged)]


def tools_go(product: Product) -> str:
    """Imports keep the programs' packages in go.mod; the build tag keeps this file out of every build."""
    imports = "".join(f'\t_ "{package}"\n' for package in product.programs.values())
    return f"//go:build tools\n\npackage tools\n\nimport (\n{imports})\n"


if __name__ == "__main__":
    for name in sys.argv[1:] or PINNED:
        pin(PINNED[name])
