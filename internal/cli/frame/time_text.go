package frame

import (
	"time"

	"github.com/roost-batch/roost/internal/document"
)

// AgoText is a time for people: how long it is past on a terminal, and a date elsewhere.
func (c *Invocation) AgoText(ns int64) string {
	if ns == 0 {
		return "-"
	}
	if !c.OutScreen.Terminal {
		return document.TimeOfNanos(ns).UTC().Format(time.RFC3339)
	}
	d := c.Now().Sub(document.TimeOfNanos(ns))
	if d < 0 {
		return "in " + document.SpanText(-d)
	}
	return document.SpanText(d) + " ago"
}

// StartHour is a time in the future for people, with its date unless that is today.
func (c *Invocation) StartHour(t time.Time) string {
	now := c.Now()
	if t = t.In(now.Location()); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04")
	}
	return t.Format("2006-01-02 15:04")
}
