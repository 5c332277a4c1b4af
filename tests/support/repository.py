"""Paths of the repository's own files."""

import ast
import gc
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MANIFESTS = ROOT / "manifests"
ALERT_RULES = ROOT / "grafana" / "alerts.yaml"


def parse_source(text: str) -> ast.Module:
    """Parse Python source without the garbage collector.

    A finalizer that it ran meanwhile could log an exception, and CPython 3.11 takes the depth of that for its
    own: `AST constructor recursion depth mismatch`.
    """
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.enable()
