from bench.event_loop.__main__ import describe
from bench.event_loop.cycles import CycleCost


def test_the_longest_step_is_that_of_all_cycles() -> None:
    cycles = [CycleCost(0.4, 0.006, 0.004), CycleCost(0.5, 0.007, 0.005), CycleCost(0.6, 0.009, 0.003)]
    text = describe(5000, 137_500, {"utilisation": cycles}, "Measured on a machine.")
    assert "5,000 nodes and 137,500 pods" in text
    assert "| `underUtilisedNodes` | 500.0 ms | 7.0 ms | 5.0 ms | 1.0% |" in text
