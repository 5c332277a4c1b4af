from msgspec.structs import replace

from federation.objects.names import Key
from federation.propagation.shortage_news import ShortageNews
from federation.scheduling import Decision, Reason

KEY = Key("work.karmada.io/v1alpha2", "ResourceBinding", "default", "web-deployment")
NONE = Decision((), "", Reason.UNSCHEDULABLE, "room for 0", {}, steady="too little room")
ONE = replace(NONE, message="room for 1")


def test_figures_are_told_when_they_have_changed_and_the_pause_is_over() -> None:
    news = ShortageNews()
    news.told(KEY, NONE, now=0)
    assert not news.is_due(KEY, ONE, now=29)
    assert not news.is_due(KEY, NONE, now=31)
    assert news.is_due(KEY, ONE, now=31)
    news.told(KEY, ONE, now=31)
    assert not news.is_due(KEY, NONE, now=60)
    news.told(KEY, replace(ONE, reason=Reason.SUCCESS), now=61)
    assert not news.is_due(KEY, NONE, now=62), "it is told with the condition"


def test_what_was_told_before_a_restart_is_not_told_again() -> None:
    news = ShortageNews()
    assert not news.is_due(KEY, NONE, now=0)
    assert news.is_due(KEY, ONE, now=30)


def test_all_bindings_together_write_less_than_once_a_second() -> None:
    news = ShortageNews()
    keys = [KEY._replace(name=str(number)) for number in range(3_000)]
    for key in keys:
        news.told(key, NONE, now=0)
    due = [key for half in range(60, 260) for key in keys if news.is_due(key, ONE, now=half / 2)]
    assert 35 <= len(due) <= 41, "two Events each in a hundred seconds"


def test_a_message_without_figures_is_told_with_its_condition_alone() -> None:
    news, plain = ShortageNews(), replace(NONE, steady="")
    news.told(KEY, plain, now=0)
    assert not news.is_due(KEY, replace(plain, message="another"), now=99)
