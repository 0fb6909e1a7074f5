package accounting

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// unitDigits is how many decimals an amount can have.
const unitDigits = 6

// Unit is one unit of charge.
const Unit MicroUnits = 1_000_000

// NoBudget is the amount of a budget that bounds nothing. It takes an earlier one away.
const NoBudget MicroUnits = math.MaxInt64

// String returns the amount in units with the decimals that it needs, as "-12.5".
func (m MicroUnits) String() string { return FormatDecimal(int64(m), unitDigits) }

// ParseMicroUnits reads an amount in units, which has at most six decimals.
func ParseMicroUnits(text string) (MicroUnits, error) {
	n, err := ParseDecimal(text, unitDigits)
	if err != nil {
		return 0, fmt.Errorf("amount %w", err)
	}
	return MicroUnits(n), nil
}

// FormatDecimal writes n/10^digits exactly, without zeros at its end.
func FormatDecimal(n int64, digits int) string {
	sign, size := "", uint64(n)
	if n < 0 {
		sign, size = "-", -uint64(n)
	}
	text := strconv.FormatUint(size, 10)
	if missing := digits + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	whole, part := text[:len(text)-digits], strings.TrimRight(text[len(text)-digits:], "0")
	if part == "" {
		return sign + whole
	}
	return sign + whole + "." + part
}

// ParseDecimal reads a number with at most so many decimals, and returns it times
// 10^digits. Rounding would make other amounts of money than were written.
func ParseDecimal(text string, digits int) (int64, error) {
	fail := func(why string) (int64, error) {
		return 0, fmt.Errorf("%.40q: %w: %s", text, roost.Invalid, why)
	}
	whole, part, _ := strings.Cut(text, ".")
	unsigned := strings.TrimPrefix(whole, "-")
	if unsigned == "" || strings.Trim(unsigned+part, "0123456789") != "" || strings.HasSuffix(text, ".") {
		return fail("write a number, as 12.5")
	}
	if len(part) > digits {
		return fail(fmt.Sprintf("it has more than %d decimals", digits))
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", digits-len(part)), 10, 64)
	if err != nil {
		return fail("it is too large")
	}
	return n, nil
}
