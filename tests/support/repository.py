"""Where the repository's own files stand, for tests that read them."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MANIFESTS = ROOT / "manifests"
ALERT_RULES = ROOT / "grafana" / "alerts.yaml"
