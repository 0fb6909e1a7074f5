package roost

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a duration in Go's form, in PBS's form, or as a number of seconds.
// Go's form ("90s", "1h30m") has days and weeks, too ("2d", "1w"); PBS's is "01:30:00",
// "5:0" or "0:5:0.5". Durations are not negative.
func ParseDuration(s string) (time.Duration, error) {
	text := strings.TrimSpace(s)
	bad := fmt.Errorf("%q is not a length of time: write it as \"90s\", \"1h30m\", \"2d\" or \"01:30:00\"", s)
	if strings.Contains(text, ":") {
		return parseClock(text, bad)
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return durationOfSeconds(seconds, bad)
	}
	var total float64
	for text != "" {
		end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if end <= 0 {
			return 0, bad
		}
		n, err := strconv.ParseFloat(text[:end], 64)
		if err != nil {
			return 0, bad
		}
		text = text[end:]
		unit := text
		if next := strings.IndexAny(text, "0123456789."); next > 0 {
			unit = text[:next]
		}
		size, ok := timeUnits[strings.TrimSpace(unit)]
		if !ok {
			return 0, bad
		}
		total += n * size
		text = text[len(unit):]
	}
	return durationOfSeconds(total, bad)
}

var timeUnits = map[string]float64{"ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

func parseClock(text string, bad error) (time.Duration, error) {
	fields := strings.Split(text, ":")
	if len(fields) > 4 {
		return 0, bad
	}
	scale, total := [...]float64{1, 60, 3600, 86400}, 0.0
	for i, f := range fields {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil || n < 0 {
			return 0, bad
		}
		total += n * scale[len(fields)-1-i]
	}
	return durationOfSeconds(total, bad)
}

func durationOfSeconds(seconds float64, bad error) (time.Duration, error) {
	// the bound itself, as a float64, is larger than the largest int64
	if math.IsNaN(seconds) || seconds < 0 || seconds >= math.MaxInt64/1e9 {
		return 0, bad
	}
	return time.Duration(math.Round(seconds * 1e9)), nil
}
