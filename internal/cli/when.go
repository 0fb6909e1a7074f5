package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// instant turns the wire's unix nanoseconds into a time; 0 is the zero time.
func instant(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// stamp is a time for programs: RFC 3339 in UTC, empty for none.
func stamp(ns int64) string {
	if ns == 0 {
		return ""
	}
	return instant(ns).UTC().Format("2006-01-02T15:04:05.000Z")
}

// ago is a time for people: how long it is past on a terminal, and a date elsewhere.
func (c *call) ago(ns int64) string {
	if ns == 0 {
		return "-"
	}
	if !c.out.terminal {
		return instant(ns).UTC().Format(time.RFC3339)
	}
	d := c.now().Sub(instant(ns))
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

// span is a length of time in one or two units: "0.4s", "3m", "2h05m", "4d".
func span(d time.Duration) string {
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

// clock is a length of time as PBS writes it, "01:02:03".
func clock(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// printable makes text of users safe for a terminal: what is not printable is shown as an escape, so that a job's name cannot move the cursor.
func printable(text string) string {
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

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// hour is a time to come for people: with its day where that is not today's.
func (c *call) hour(t time.Time) string {
	now := c.now()
	if t = t.In(now.Location()); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}
