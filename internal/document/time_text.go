package document

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// TimeOfNanos turns the wire's unix nanoseconds into a time; 0 is the zero time.
func TimeOfNanos(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Timestamp is a time for programs: RFC 3339 in UTC, empty for none.
func Timestamp(ns int64) string {
	if ns == 0 {
		return ""
	}
	return TimeOfNanos(ns).UTC().Format("2006-01-02T15:04:05.000Z")
}

// SpanText is a length of time in one or two units: "0.4s", "3m", "2h05m", "4d".
func SpanText(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	if d >= 10*24*time.Hour {
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// PrintableText shows unprintable characters as escapes, so that a job's name cannot move
// the cursor.
func PrintableText(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else if r < 0x80 {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Plural writes a count of things: "1 job", "2 jobs".
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
