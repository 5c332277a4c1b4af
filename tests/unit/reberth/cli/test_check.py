"""What `python -m reberth check` prints."""

import json

from reberth.cli.check import CheckReport, KindCheck, tabulate_report, write_report_json

FOUND = CheckReport(
    "https://server",
    "1.36",
    [KindCheck("nodes", 1250, None), KindCheck("moveledgers", 0, "not installed in this cluster")],
)


def test_the_table_has_a_line_for_each_kind() -> None:
    assert tabulate_report(FOUND).splitlines() == [
        "https://server, Kubernetes 1.36",
        "KIND         OBJECTS  RESULT",
        "nodes          1,250  ok",
        "moveledgers        0  not installed in this cluster",
    ]


def test_json_has_the_same_content() -> None:
    assert json.loads(write_report_json(FOUND)) == {
        "server": "https://server",
        "kubernetes": "1.36",
        "trouble": None,
        "kinds": {
            "nodes": {"objects": 1250, "trouble": None},
            "moveledgers": {"objects": 0, "trouble": "not installed in this cluster"},
        },
    }


def test_a_server_that_cannot_be_asked_is_told_in_json_too() -> None:
    told = json.loads(write_report_json(CheckReport("https://server", "", [], "no answer")))
    assert (told["trouble"], told["kinds"]) == ("no answer", {})
