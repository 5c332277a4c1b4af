"""The plan memory: what it keeps of moves, and lookups in it."""

from rescheduler.model.plan_memory import PlanMemory, RememberedMove


def moved(controller: str, left: str, forgotten: float = 100.0) -> RememberedMove:
    return RememberedMove(controller, left, ("b",), since=0.0, paid_back=50.0, forgotten=forgotten)


def test_moves_are_found_by_their_controller() -> None:
    memory = PlanMemory(moved=(moved("web", "a"), moved("db", "c"), moved("web", "d")))
    assert [each.left for each in memory.moves_of("web")] == ["a", "d"]
    assert memory.moves_of("nobody") == ()


def test_lookups_in_a_plan_memory_do_not_leak_into_the_next_one() -> None:
    memory = PlanMemory(moved=(moved("web", "a"), moved("web", "b", forgotten=10.0)))
    assert len(memory.moves_of("web")) == 2
    assert [each.left for each in memory.expire(20.0).moves_of("web")] == ["a"]
    assert [each.left for each in memory.remember([moved("web", "e")]).moves_of("web")] == ["a", "b", "e"]
