"""The table of docs/kubernetes-versions.md: what was proven on which version of Kubernetes."""

from reberth.forecast.state.proven_versions import ProofResult, Results

_BEGIN = "<!-- The table is made by `make generate`, from reberth/forecast/state/proven_versions.json. -->\n"
_END = "<!-- The end of the table. -->\n"


def put_matrix(page: str, results: Results) -> str:
    """Put the table between its marks. Raises ValueError if they are missing."""
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError("the marks of the table are missing")
    return "".join((before, _BEGIN, "\n", write_matrix(results), "\n", _END, after))


def write_matrix(results: Results) -> str:
    """Write a row for each proof, a column for each release."""
    proofs = dict.fromkeys(name for proven in results.values() for name in proven)
    rows = [["proof", *results], ["---"] * (len(results) + 1)]
    rows += [[name, *(_write_cell(proven.get(name)) for proven in results.values())] for name in proofs]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _write_cell(result: ProofResult | None) -> str:
    if result is None:
        return "not run"
    return f"{result.passed:,} of {result.rounds:,}, {result.ended}"
