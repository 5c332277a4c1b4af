"""python -m generating: write the generated files, or only list the stale ones."""

import argparse
import sys

from generating.files import ROOT, generate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m generating", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file is stale")
    parser.add_argument(
        "--docs-url",
        default="",
        metavar="URL",
        help="where this repository can be read, such as https://git.example.com/reberth/blob/main/:"
        " the alerts' runbook_url begins with it (default: their path in the repository)",
    )
    arguments = parser.parse_args()
    check: bool = arguments.check
    files = generate(docs_url=arguments.docs_url and arguments.docs_url.rstrip("/") + "/")
    stale = [(path, text) for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path, text in stale:
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        print(f"{'stale' if check else 'written'}: {path.relative_to(ROOT)}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
