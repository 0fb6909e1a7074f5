package frame

import (
	"time"

	"github.com/roost-batch/roost"
)

// TimeFlag reads a flag with an instant: a length of time before now, or a date. Without
// the flag it is otherwise.
func (c *Invocation) TimeFlag(name string, otherwise time.Time) (time.Time, error) {
	text := c.StringFlag(name)
	if text == "" {
		return otherwise, nil
	}
	if d, err := roost.ParseDuration(text); err == nil {
		return c.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04",
		"2006-01-02 15:04:05", "2006-01-02 15:04",
		"2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return otherwise, UsageErrorf("--%s: %q is neither a length of time, as 90m or 2d, nor a date, as 2026-03-01 or "+
		"2026-03-01T14:30:00", name, text)
}

// PastTimeFlag reads a flag with an instant that has passed.
func (c *Invocation) PastTimeFlag(name string) (time.Time, error) {
	t, err := c.TimeFlag(name, time.Time{})
	if err == nil && t.After(c.Now()) {
		return t, UsageErrorf("--%s: %s is in the future: it is %s now; name a time that has passed, as 10m for ten "+
			"minutes ago", name, t.Format(time.RFC3339), c.Now().Format(time.RFC3339))
	}
	return t, err
}
