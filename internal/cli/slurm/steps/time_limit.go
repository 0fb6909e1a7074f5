package steps

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseTimeLimit reads a time limit: minutes, minutes:seconds, hours:minutes:seconds,
// days-hours, days-hours:minutes or days-hours:minutes:seconds.
func parseTimeLimit(text string) (limit time.Duration, unlimited bool, err error) {
	switch strings.ToUpper(text) {
	case "UNLIMITED", "INFINITE", "-1", "0":
		return 0, true, nil
	}
	days, clock, hasDays := strings.Cut(text, "-")
	units := []time.Duration{time.Minute}
	if !hasDays {
		days, clock = "", text
	}
	parts := strings.Split(clock, ":")
	switch {
	case hasDays:
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	case len(parts) == 2:
		units = []time.Duration{time.Minute, time.Second}
	case len(parts) == 3:
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	}
	if hasDays {
		parts, units = append([]string{days}, parts...), append([]time.Duration{24 * time.Hour}, units...)
	}
	if len(parts) > len(units) {
		return 0, false, errors.New("too many parts")
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil || float64(limit)+float64(n)*float64(units[i]) > math.MaxInt64 {
			return 0, false, errors.New("no time")
		}
		limit += time.Duration(n) * units[i]
	}
	return limit, false, nil
}
