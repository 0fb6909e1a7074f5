package translate

import (
	"fmt"
	"strings"
	"time"
)

// parseSlurmBegin parses the value of --begin.
func parseSlurmBegin(v string) (string, bool) {
	switch strings.ToLower(v) {
	case "now":
		return "", true
	case "midnight":
		return "00:00", true
	case "noon":
		return "12:00", true
	case "teatime":
		return "16:00", true
	case "fika":
		return "15:00", true
	}
	if rest, ok := strings.CutPrefix(strings.ToLower(v), "now+"); ok {
		end := strings.LastIndexAny(rest, "0123456789") + 1
		unit, ok := map[string]time.Duration{"": time.Second, "s": time.Second, "second": time.Second, "m": time.Minute,
			"min": time.Minute, "minute": time.Minute, "h": time.Hour, "hour": time.Hour, "d": 24 * time.Hour,
			"day": 24 * time.Hour, "w": 7 * 24 * time.Hour,
			"week": 7 * 24 * time.Hour}[strings.TrimSuffix(rest[end:], "s")]
		if rest[end:] == "s" {
			unit, ok = time.Second, true
		}
		var n int64
		if _, err := fmt.Sscanf(rest[:end], "%d", &n); err != nil || !ok || n < 0 || n > 1e7 {
			return "", false
		}
		return durationText(time.Duration(n) * unit), true
	}
	for _, layout := range []string{"15:04", "15:04:05", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.Parse(layout, v); err == nil {
			if layout == "15:04:05" {
				return at.Format("15:04"), true
			}
			return strings.Replace(v, "T", " ", 1), true
		}
	}
	return "", false
}
