from federation.objects.expectations import Expectations


def test_a_creation_is_expected_until_it_is_seen_or_times_out() -> None:
    now = [100.0]
    expectations = Expectations(lambda: now[0])
    assert expectations.seconds_left("a") == 0
    expectations.expect("a")
    expectations.expect("b")
    now[0] += 10
    assert expectations.seconds_left("a") == expectations.seconds_left("b") == 20
    expectations.observed("a")
    expectations.observed("unknown")
    assert expectations.seconds_left("a") == 0
    now[0] += 20
    assert expectations.seconds_left("b") == 0
