"""The table of docs/security.md is that of the attempts which a live test makes."""

from tests.live.support.hostile_accounts import tabulate
from tests.support.repository import DOCS


def test_the_page_has_the_table_of_attempts() -> None:
    page = (DOCS / "security.md").read_text()
    assert "\n".join(tabulate()) in page
