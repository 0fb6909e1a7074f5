package plot

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// linearTicks computes the ticks of a linear scale. They are multiples of 1, 2, 2.5 or 5
// times a power of ten, four to nine of them.
type linearTicks struct{}

func (linearTicks) Ticks(from, to float64) (ticks []plot.Tick) {
	gap := math.Pow(10, math.Floor(math.Log10((to-from)/4)))
	for _, times := range []float64{5, 2.5, 2} {
		if (to-from)/(gap*times) >= 4 {
			gap *= times
			break
		}
	}
	decimals := decimalDigits(gap)
	for i, last := math.Floor(from/gap+1e-9), math.Ceil(to/gap-1e-9); i <= last; i++ {
		ticks = append(ticks, plot.Tick{Value: i * gap, Label: formatNumber(i*gap, decimals)})
	}
	return ticks
}

// decimalDigits returns how many decimals distinguish two numbers with that difference.
func decimalDigits(gap float64) int {
	d := 0
	for ; d < 12 && gap < 1e9 && math.Abs(gap-math.Round(gap)) > 1e-6*gap; d++ {
		gap *= 10
	}
	return d
}

// logTicks computes the ticks of a logarithmic scale: 1, 10, 100, …. If those are few, it
// adds 2 and 5 between them.
type logTicks struct{}

func (logTicks) Ticks(from, to float64) (ticks []plot.Tick) {
	few := to/from < 2000
	for e := math.Floor(math.Log10(from)); e <= math.Ceil(math.Log10(to)); e++ {
		for digit := 1.; digit < 10; digit++ {
			v := digit * math.Pow(10, e)
			if v < from*(1-1e-9) || v > to*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 || few && (digit == 2 || digit == 5) {
				t.Label = shortNumber(v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// roundLog widens a range on both sides to the next of 1, 2 and 5 times a power of ten.
func roundLog(from, to float64) (float64, float64) {
	low := math.Pow(10, math.Floor(math.Log10(from)))
	for _, digit := range []float64{5, 2} {
		if low*digit <= from*(1+1e-9) {
			low *= digit
			break
		}
	}
	high := math.Pow(10, math.Ceil(math.Log10(to)))
	for _, digit := range []float64{0.2, 0.5} {
		if high*digit >= to*(1-1e-9) {
			high *= digit
			break
		}
	}
	return low, high
}

// nameTicks are the names below bars.
type nameTicks []string

func (p nameTicks) Ticks(float64, float64) (ticks []plot.Tick) {
	for i, name := range p {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: printable(name)})
	}
	return ticks
}

// formatNumber formats a number with decimals and with commas between thousands.
func formatNumber(v float64, decimals int) string {
	sign := ""
	if v < 0 {
		sign = "-"
	}
	text := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, rest, _ := strings.Cut(text, ".")
	if rest != "" {
		rest = "." + rest
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole + rest
}

// shortNumber formats a number with three significant digits, or with all digits of its
// integer part.
func shortNumber(v float64) string {
	if v == 0 {
		return "0"
	}
	e := int(math.Floor(math.Log10(math.Abs(v))))
	if e < -6 || e > 11 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	text := formatNumber(v, max(2-e, 0))
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
