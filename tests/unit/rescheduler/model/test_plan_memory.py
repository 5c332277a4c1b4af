"""The plan memory: what it keeps of moves, and lookups in it."""

from rescheduler.model.plan_memory import MOST_REMEMBERED, PlanMemory, RememberedMove


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


def test_of_too_many_moves_the_oldest_are_forgotten() -> None:
    ended = moved("web", "gone", forgotten=10.0)
    many = [moved("web", f"n{number}") for number in range(MOST_REMEMBERED + 2)]
    kept = PlanMemory(moved=(*many, ended)).expire(20.0).moved
    assert len(kept) == MOST_REMEMBERED
    assert (kept[0].left, kept[-1].left) == ("n2", f"n{MOST_REMEMBERED + 1}")
