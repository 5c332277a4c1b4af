"""The token bucket of every rate limit."""

from reberth.values.token_bucket import TokenBucket


def test_bucket_begins_full_and_never_holds_more_than_the_burst() -> None:
    bucket = TokenBucket(3, now=100.0)
    assert bucket.tokens == 3.0

    bucket.fill(1000.0, rate=5.0)
    assert bucket.tokens == 3.0


def test_tokens_come_with_time() -> None:
    bucket = TokenBucket(3, now=100.0)
    bucket.tokens -= 4
    assert bucket.tokens == -1.0

    bucket.fill(102.0, rate=0.75)
    assert bucket.tokens == 0.5


def test_first_look_of_a_bucket_without_a_beginning_adds_nothing() -> None:
    bucket = TokenBucket(3)
    bucket.tokens -= 3
    bucket.fill(100.0, rate=1.0)
    assert bucket.tokens == 0.0

    bucket.fill(101.0, rate=1.0)
    assert bucket.tokens == 1.0
