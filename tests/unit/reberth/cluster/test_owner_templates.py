"""Templates that were read are remembered within bounds."""

import json

from reberth.cluster.owner_templates import read_template


def text(number: int, length: int) -> bytes:
    return json.dumps({"metadata": {"labels": {"number": str(number), "long": "x" * length}}}).encode()


def test_many_small_templates_and_few_large_ones_are_remembered() -> None:
    small, large = text(0, 100), text(0, 10_000)
    before = read_template(small), read_template(large)
    assert read_template(large) is before[1]
    for number in range(1, 100):
        read_template(text(number, 100))
        read_template(text(number, 10_000))
    assert read_template(small) is before[0]
    assert read_template(large) is not before[1]
