package sbatch

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a time limit: minutes, minutes:seconds, hours:minutes:seconds,
// days-hours, days-hours:minutes or days-hours:minutes:seconds.
func ParseTime(text string) (limit time.Duration, unlimited, ok bool) {
	switch strings.ToUpper(text) {
	case "UNLIMITED", "INFINITE", "-1":
		return 0, true, true
	}
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		clock = text
	}
	parts := strings.Split(clock, ":")
	units := []time.Duration{time.Minute}
	switch {
	case hasDays:
		parts, units = append([]string{days}, parts...), []time.Duration{24 * time.Hour, time.Hour, time.Minute,
			time.Second}
	case len(parts) == 2:
		units = []time.Duration{time.Minute, time.Second}
	case len(parts) == 3:
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	}
	if len(parts) > len(units) {
		return 0, false, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil || float64(limit)+float64(n)*float64(units[i]) > math.MaxInt64/2 {
			return 0, false, false
		}
		limit += time.Duration(n) * units[i]
	}
	return limit, limit == 0, true
}

// ParseMegabytes reads an amount of memory: a number of MiB, or with K, M, G or T.
func ParseMegabytes(text string) (megabytes int64, ok bool) {
	upper := strings.TrimSuffix(strings.ToUpper(text), "B")
	if upper == "" {
		return 0, false
	}
	scale, number := float64(1), upper
	switch upper[len(upper)-1] {
	case 'K':
		scale, number = 1.0/1024, upper[:len(upper)-1]
	case 'M':
		number = upper[:len(upper)-1]
	case 'G':
		scale, number = 1024, upper[:len(upper)-1]
	case 'T':
		scale, number = 1024*1024, upper[:len(upper)-1]
	}
	n, err := strconv.ParseUint(number, 10, 40)
	if err != nil {
		return 0, false
	}
	return int64(math.Ceil(float64(n) * scale)), true
}

// parseGPUs reads a number of GPUs, as in "2", "a100:2" or "gpu:a100:2".
func parseGPUs(text string) (count int, kind string, ok bool) {
	words := strings.Split(text, ":")
	n, err := strconv.ParseUint(words[len(words)-1], 10, 16)
	if err != nil {
		return 1, words[len(words)-1], len(words) == 1 && words[0] != ""
	}
	if len(words) > 1 {
		kind = words[len(words)-2]
	}
	return int(n), kind, len(words) <= 2
}

// ParseBegin reads the time of --begin.
func ParseBegin(text string, now time.Time) (time.Time, bool) {
	lower := strings.ToLower(text)
	at := func(hour int) (time.Time, bool) {
		t := time.Date(now.Year(), now.Month(), now.Day(), hour, 0, 0, 0, now.Location())
		if !t.After(now) {
			t = t.AddDate(0, 0, 1)
		}
		return t, true
	}
	switch lower {
	case "now":
		return now, true
	case "today":
		return now, true
	case "tomorrow":
		return now.AddDate(0, 0, 1), true
	case "midnight":
		return at(0)
	case "noon":
		return at(12)
	case "fika":
		return at(15)
	case "teatime":
		return at(16)
	}
	if rest, ok := strings.CutPrefix(lower, "now+"); ok {
		return parseOffset(rest, now)
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "01/02/06-15:04",
		"01/02/06-15:04:05", "01/02/06", "010206"} {
		if t, err := time.ParseInLocation(layout, strings.ToUpper(text), now.Location()); err == nil {
			return t, true
		}
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			if !t.After(now) {
				t = t.AddDate(0, 0, 1)
			}
			return t, true
		}
	}
	return now, false
}

// parseOffset reads what follows "now+": a number, and a unit in full or cut short.
func parseOffset(text string, now time.Time) (time.Time, bool) {
	digits := 0
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseUint(text[:digits], 10, 31)
	if err != nil {
		return now, false
	}
	unit := text[digits:]
	for _, u := range []struct {
		name string
		size time.Duration
	}{{"seconds", time.Second}, {"minutes", time.Minute}, {"hours", time.Hour}, {"days", 24 * time.Hour},
		{"weeks", 7 * 24 * time.Hour}} {
		if strings.HasPrefix(u.name, unit) {
			return now.Add(time.Duration(n) * u.size), true
		}
	}
	return now, false
}

// ParseLicenses reads licences, as in "matlab:2,ansys". The result is the limits of the
// pool that they stand for.
func ParseLicenses(text string) (limits string, ok bool) {
	if text == "" {
		return "", true
	}
	var list []string
	for word := range strings.SplitSeq(strings.ReplaceAll(text, ";", ","), ",") {
		name, count, counted := strings.Cut(word, ":")
		if !counted {
			name, count, counted = strings.Cut(word, "=")
		}
		name, _, _ = strings.Cut(name, "@")
		if n, err := strconv.ParseUint(count, 10, 31); name == "" || counted && (err != nil || n == 0) {
			return "", false
		}
		if counted {
			name += ":" + count
		}
		list = append(list, name)
	}
	return strings.Join(list, ", "), true
}
