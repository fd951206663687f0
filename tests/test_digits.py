"""References compare numbers to six significant digits: more would be about the machine, fewer would hide a change."""
import digits
import nbformat
import pytest

TEXT = "      cost  gap\n0  3.4  0.123456789012\n1  4.2  -1.5e-05 of 100,004 in 12.5 %"


@pytest.mark.parametrize("old, new, alike", [
    ("0.123456789012", "0.123456789013", True), ("0.123456789012", "0.1234568", True),
    ("0.123456789012", "0.12346", False), ("0.123456789012", "0.123466789012", False),     # the fifth digit
    ("3.4", "3.5", False), ("gap", "gaps", False), ("100,004", "100,005", False), ("100,004", "100004", True),
    ("-1.5e-05", "1.5e-05", False), ("-1.5e-05", "-1.50000001e-05", True), ("-1.5e-05", "-1.50001e-05", False),
    ("12.5 %", "12.5", False), ("  0.1234", " 0.1234", True)])
def test_a_change_in_the_fifth_digit_is_one_and_in_the_seventh_is_none(old, new, alike):
    changed = TEXT.replace(old, new)
    assert changed != TEXT
    assert digits.same(TEXT, changed) == digits.same(changed, TEXT) == alike
    assert (digits.Printed(TEXT) == digits.Printed(changed)) == alike != (digits.Printed(TEXT) != digits.Printed(changed))


@pytest.mark.parametrize("old, new, alike", [("nan", "nan", True), ("nan", "0.5", False), ("inf", "-inf", False),
                                             ("v1.2.3", "v1.2.4", False), ("x1", "x2", False), ("0x1f", "0x2f", False),
                                             ("1e-17", "-3e-16", True), ("0", "1e-9", False), ("[1. 2.]", "[1. 3.]", False)])
def test_what_is_no_number_is_compared_as_it_stands(old, new, alike):
    assert digits.same(old, new) == alike


def test_every_digit_before_the_sixth_counts_at_every_size():
    for exponent in range(-9, 10):
        number = 1.23456789 * 10.0**exponent
        for place in range(1, 10):
            moved = number + 2 * 10.0 ** (exponent - place + 1)
            assert digits.close(number, moved) == (place > 6), (exponent, place)


def test_a_reference_that_differs_in_its_last_digits_alone_is_not_rewritten():
    import conftest
    old, new, other = ([nbformat.v4.new_output("stream", text=text)] for text in ("1.2345678", "1.23456781", "1.2346"))
    assert conftest.unchanged(old, new) is old and conftest.unchanged(old, other) is other and conftest.unchanged([], new) is new
