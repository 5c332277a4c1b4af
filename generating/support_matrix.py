"""The table of docs/kubernetes-versions.md: what was proven on which version of Kubernetes."""

from generating.marked_table import put_table, write_table
from reberth.forecast.state.proven_versions import ProofResult, Results


def put_matrix(page: str, results: Results) -> str:
    """Put the table between its marks. Raises ValueError if they are missing."""
    return put_table(page, "reberth/forecast/state/proven_versions.json", write_matrix(results))


def write_matrix(results: Results) -> str:
    """Write a row for each proof, a column for each release."""
    proofs = dict.fromkeys(name for proven in results.values() for name in proven)
    rows = ([name, *(_write_cell(proven.get(name)) for proven in results.values())] for name in proofs)
    return write_table(["proof", *results], rows)


def _write_cell(result: ProofResult | None) -> str:
    if result is None:
        return "not run"
    return f"{result.passed:,} of {result.rounds:,}, {result.ended}"
