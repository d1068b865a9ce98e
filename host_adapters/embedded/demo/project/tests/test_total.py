from minuta import total


def test_sum():
    assert total(["10m", "20m"]) == 1800


def test_each_call_begins_at_zero():
    assert total(["1m"]) == 60
    assert total(["1m"]) == 60


def test_nothing_is_zero():
    assert total([]) == 0
