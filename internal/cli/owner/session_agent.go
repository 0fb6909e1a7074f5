package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// SessionAgentCommand returns roost session-agent: tell the guard of this machine that
// you are there.
func SessionAgentCommand() *frame.Command {
	return &frame.Command{
		Name: "session-agent", Group: frame.GroupOwner, Summary: "tell the guard of this machine that you are there",
		MaxOperands: 0, Run: runSessionAgent,
		Description: "Runs in your session and tells the machine's guard when you were there last, that a film or a " +
			"call keeps the session awake, and that GameMode is on. It is for remote desktops (VNC, RDP), which no " +
			"keyboard of the machine shows. It asks your desktop over D-Bus, and sends times and reasons only. It " +
			"ends with the session.",
		Examples: []frame.Example{
			{Line: "roost session-agent", Description: "run it until the session ends"},
			{Line: "cp /usr/local/share/doc/roost/autostart/roost-session-agent.desktop ~/.config/autostart/",
				Description: "start it with your desktop"},
		},
	}
}

const (
	desktopPollInterval = time.Second      // so late a remote desktop is noticed at most
	reportInterval      = 10 * time.Second // what has not changed, so that the guard knows that it still holds
)

// runSessionAgent asks the desktop each second and reports what has changed.
func runSessionAgent(c *frame.Invocation) error {
	g, err := NearestGuard(c)
	if err != nil {
		return err
	}
	stop, release := c.NotifyInterrupts()
	defer release()
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	desktop, err := idle.OpenDesktop(ctx)
	if err != nil {
		return frame.WithHint(frame.KindErrorf(roost.Unavailable, "%v", err),
			"run it inside a graphical session; its D-Bus is where DBUS_SESSION_BUS_ADDRESS says")
	}
	defer desktop.Close()
	conn, err := rpc.Dial("unix:"+g.Socket, nil, peer.Startd)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := &guardReporter{c: c, guardAddr: wire.NewGuardClient(conn)}
	tick := time.NewTicker(desktopPollInterval)
	defer tick.Stop()
	for {
		p, err := desktop.ReadPresence(ctx)
		if err != nil {
			return nil // the session has ended
		}
		if err := r.reportChange(ctx, p); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-desktop.Done():
			return nil
		case <-tick.C:
		}
	}
}

// guardReporter tells the guard what has changed. A guard that is not there will be,
// sooner or later.
type guardReporter struct {
	c              *frame.Invocation
	guardAddr      wire.GuardClient
	lastReport     idle.SessionPresence
	lastReportTime time.Time
	desktopGone    bool // and it was said
}

func (r *guardReporter) reportChange(ctx context.Context, p idle.SessionPresence) error {
	// A desktop's idle time and the clock are not read at once: what differs by less than
	// the time between two looks is the same touch.
	if p.Input-r.lastReport.Input < desktopPollInterval/2 {
		p.Input = r.lastReport.Input
	}
	now := r.c.Now()
	if p == r.lastReport && now.Sub(r.lastReportTime) < reportInterval {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	_, err := r.guardAddr.Present(ctx, &wire.PresentRequest{Input: int64(p.Input), Busy: p.InUseReason, Game: p.Game,
		By: p.Origin})
	err = rpc.FromStatus(err)
	if errors.Is(err, roost.Unavailable) || errors.Is(err, context.DeadlineExceeded) {
		if !r.desktopGone {
			fmt.Fprintf(r.c.Stderr, "the guard of this machine does not answer; waiting for it: %v\n", err)
		}
		r.desktopGone = true
		return nil
	}
	if err != nil {
		return err
	}
	r.lastReport, r.lastReportTime, r.desktopGone = p, now, false
	return nil
}
