package update

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// Amount is a number of tasks, or a part of the tasks of a job.
type Amount struct {
	Number  int
	Percent float64 // 0: Number is meant
}

// ParseAmount reads "3" or "10%".
func ParseAmount(s string) (Amount, error) {
	if text, ok := strings.CutSuffix(strings.TrimSpace(s), "%"); ok {
		p, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(p >= 0 && p <= 100) {
			return Amount{}, fmt.Errorf("%w: %q is no part of the tasks: write 0%% to 100%%", roost.Invalid, s)
		}
		if p == 0 {
			return Amount{}, nil
		}
		return Amount{Percent: p}, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 || n > roost.MaxTasks {
		return Amount{}, fmt.Errorf("%w: %q is no number of tasks: write 0 to %d, or a part such as 10%%",
			roost.Invalid, s, roost.MaxTasks)
	}
	return Amount{Number: n}, nil
}

// String writes an amount as ParseAmount reads it.
func (a Amount) String() string {
	if a.Percent > 0 {
		return strconv.FormatFloat(a.Percent, 'g', -1, 64) + "%"
	}
	return strconv.Itoa(a.Number)
}

// RoundDown is the amount of count tasks, a part of a task left out.
func (a Amount) RoundDown(count int) int {
	if a.Percent > 0 {
		return int(math.Floor(a.Percent*float64(count)/100 + 1e-9))
	}
	return a.Number
}

// RoundUp is the amount of count tasks, a part of a task taken for a whole one.
func (a Amount) RoundUp(count int) int {
	if a.Percent > 0 {
		return int(math.Ceil(a.Percent*float64(count)/100 - 1e-9))
	}
	return a.Number
}
