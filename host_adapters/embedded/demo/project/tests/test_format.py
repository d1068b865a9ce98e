import pytest

from minuta import format_duration, parse_duration


def test_leaves_out_what_is_zero():
    assert format_duration(5400) == "1h30m"
    assert format_duration(60) == "1m"


def test_zero():
    assert format_duration(0) == "0s"


@pytest.mark.parametrize("seconds", [0, 1, 59, 60, 3599, 3600, 5410])
def test_round_trip(seconds):
    assert parse_duration(format_duration(seconds)) == seconds
