from federation.objects.expectations import Expectations


def test_what_was_made_is_awaited_until_it_is_seen_or_some_time_has_passed() -> None:
    now = [100.0]
    awaited = Expectations(lambda: now[0])
    assert awaited.wait("a") == 0
    awaited.note("a")
    awaited.note("b")
    now[0] += 10
    assert awaited.wait("a") == awaited.wait("b") == 20
    awaited.hear("a")
    awaited.hear("unknown")
    assert awaited.wait("a") == 0
    now[0] += 20
    assert awaited.wait("b") == 0
