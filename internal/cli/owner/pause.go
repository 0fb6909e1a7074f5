package owner

import (
	"context"
	"os"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/guard"
)

// PauseCommand returns roost pause: keep the pool off your machine.
func PauseCommand() *frame.Command {
	return &frame.Command{
		Name: "pause", Group: frame.GroupOwner, Summary: "keep the pool off your machine", Synopsis: "[HOW LONG]",
		MaxOperands: -1, Run: pauseMachine,
		Description: "Stops the pool's tasks on this machine at once, and lets none come, for as long as you say: a " +
			"length of time, until a time of day or a date, or for good, which it is when you say nothing. It needs " +
			"no password of whoever sits at the machine, works with the pool down, and survives a restart. What " +
			"stands still leaves after some minutes, with what it has reached if it can be saved.",
		Examples: []frame.Example{
			{Line: "roost pause 1h", Description: "an hour's peace"},
			{Line: "roost pause until 18:00 --reason 'a talk'", Description: "until the evening, and others see why"},
			{Line: "roost pause until 2026-12-01", Description: "until a day"},
			{Line: "roost pause for good", Description: "until you say: roost resume"},
		},
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "reason", Usage: "a `TEXT` that others see"}, frame.JSONFlag()},
	}
}

func pauseMachine(c *frame.Invocation) error {
	until, err := parsePauseEnd(c)
	if err != nil {
		return err
	}
	g, err := NearestGuard(c)
	if err != nil {
		return err
	}
	r, how, err := pauseGuard(c, g, until, c.StringFlag("reason"))
	if err != nil {
		return err
	}
	return machineStatus(c, r, how)
}

// pauseGuard pauses the machine of a guard, and says how if the guard did not do it.
func pauseGuard(c *frame.Invocation, g GuardAddress, until int64, reason string) (r *wire.OwnerReply, how string,
	err error) {
	err = WithGuard(c, g, func(ctx context.Context, w wire.GuardClient) (err error) {
		r, err = w.Pause(ctx, &wire.PauseRequest{Until: until, Reason: reason})
		return err
	}, func(error) (err error) {
		if !canPauseDirectly(g.dir) {
			return g.noGuard()
		}
		how = " (without the guard, which does not answer)"
		r, err = guard.PauseOffline(g.dir, until, callerName(c.Getenv), reason)
		return err
	})
	return r, how, err
}

// ResumeMachine ends the pause of this machine: "roost resume" without a job.
func ResumeMachine(c *frame.Invocation) error {
	g, err := NearestGuard(c)
	if err != nil {
		return err
	}
	r, how, err := resumeGuard(c, g)
	if err != nil {
		return err
	}
	return machineStatus(c, r, how)
}

// resumeGuard ends the pause of a guard's machine, and says how if the guard did not do
// it.
func resumeGuard(c *frame.Invocation, g GuardAddress) (r *wire.OwnerReply, how string, err error) {
	err = WithGuard(c, g, func(ctx context.Context, w wire.GuardClient) (err error) {
		r, err = w.Resume(ctx, &wire.ResumeRequest{})
		return err
	}, func(error) (err error) {
		if !canPauseDirectly(g.dir) {
			return g.noGuard()
		}
		how = " (once the guard, which does not answer, runs again)"
		r, err = guard.ResumeOffline(g.dir)
		return err
	})
	return r, how, err
}

// canPauseDirectly reports whether this user may pause a node without its guard: root,
// and whose the node is.
func canPauseDirectly(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil && (os.Geteuid() == 0 || OwnsPool(dir))
}

// callerName is the name for the record, where no kernel vouches for one. Who became root
// by sudo(8) is known by his own.
func callerName(getenv func(string) string) string {
	for _, name := range []string{"SUDO_USER", "USER", "LOGNAME"} {
		if who := getenv(name); who != "" {
			return who
		}
	}
	return "root"
}

// parsePauseEnd reads how long a pause is to be: unix nanoseconds, 0 for good.
func parsePauseEnd(c *frame.Invocation) (int64, error) {
	text := strings.Join(c.Args, " ")
	switch text {
	case "", "for good", "forever", "for ever":
		return 0, nil
	}
	wrong := func(why string) (int64, error) {
		cure := "say how long, as in: roost pause 1h, roost pause until 18:00, roost pause until 2026-12-01, roost " +
			"pause for good"
		if _, ok := parseClockTime(c, text); ok {
			why, cure = "that is when, and not how long", "did you mean: roost pause until "+text
		}
		return 0, frame.WithHint(frame.UsageErrorf("%q: %s", text, why), cure)
	}
	if rest, ok := strings.CutPrefix(text, "until "); ok {
		t, ok := parseClockTime(c, rest)
		if !ok {
			return wrong("that is neither a time of day nor a date")
		}
		if !t.After(c.Now()) {
			return wrong("that has passed")
		}
		return t.UnixNano(), nil
	}
	d, err := roost.ParseDuration(strings.TrimPrefix(text, "for "))
	switch {
	case err != nil || strings.Contains(text, ":"): // 18:00 would be eighteen minutes, as PBS writes it
		return wrong("that is no length of time")
	case d <= 0:
		return wrong("that is over at once")
	}
	return c.Now().Add(d).UnixNano(), nil
}

// parseClockTime reads a time of day, today's or else tomorrow's, a date, or both.
func parseClockTime(c *frame.Invocation, text string) (time.Time, bool) {
	here := c.Now().Location()
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, here); err == nil {
			y, m, d := c.Now().Date()
			at := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, here)
			if !at.After(c.Now()) {
				at = time.Date(y, m, d+1, t.Hour(), t.Minute(), t.Second(), 0, here)
			}
			return at, true
		}
	}
	if text == "tomorrow" {
		y, m, d := c.Now().Date()
		return time.Date(y, m, d+1, 0, 0, 0, 0, here), true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04",
		"2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, here); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
