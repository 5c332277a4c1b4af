"""A kubeconfig with contexts that differ in their namespaces."""

from pathlib import Path

import yaml


def write_contexts(file: Path, *, current: str, **namespaces: str | None) -> Path:
    """Write one context for each keyword; None leaves its namespace out."""
    contexts = [
        {"name": name, "context": {"cluster": "c", "user": "u"} | ({"namespace": value} if value else {})}
        for name, value in namespaces.items()
    ]
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": contexts,
    }
    file.write_text(yaml.safe_dump(content))
    return file
