import pytest

from minuta import parse_duration


def test_one_unit():
    assert parse_duration("45m") == 2700


def test_several_units():
    assert parse_duration("1h30m") == 5400
    assert parse_duration("2h5m10s") == 7510


def test_rest_that_is_no_duration():
    with pytest.raises(ValueError):
        parse_duration("1h and a bit")


def test_nothing():
    with pytest.raises(ValueError):
        parse_duration("")
