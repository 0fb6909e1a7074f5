package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/idle"
)

func sessionAgentCommand() *command {
	return &command{
		name: "session-agent", group: groupOwner, brief: "tell the guard of this machine that you are there", most: 0, do: runSessionAgent,
		about: "Runs in your session and tells the machine's guard when you were there last, that a film or a call keeps the session awake, and that GameMode is on. It is for remote desktops (VNC, RDP), which no keyboard of the machine shows. It asks your desktop over D-Bus, and sends times and reasons only. It ends with the session.",
		examples: []example{
			{"roost session-agent", "run it until the session ends"},
			{"cp /usr/local/share/doc/roost/autostart/roost-session-agent.desktop ~/.config/autostart/", "start it with your desktop"},
		},
	}
}

const (
	askDesktop  = time.Second      // so late a remote desktop is noticed at most
	reportAgain = 10 * time.Second // what has not changed, so that the guard knows that it still holds
)

// runSessionAgent asks the desktop each second and reports what has changed.
func runSessionAgent(c *call) error {
	g, err := c.nearestGuard()
	if err != nil {
		return err
	}
	stop, release := c.interrupted()
	defer release()
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	desktop, err := idle.OpenDesktop(ctx)
	if err != nil {
		return advise(problem(roost.Unavailable, "%v", err), "run it inside a graphical session; its D-Bus is where DBUS_SESSION_BUS_ADDRESS says")
	}
	defer desktop.Close()
	conn, err := rpc.Dial("unix:"+g.socket, nil, auth.Startd)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := &reporter{c: c, to: wire.NewGuardClient(conn)}
	tick := time.NewTicker(askDesktop)
	defer tick.Stop()
	for {
		p, err := desktop.Look(ctx)
		if err != nil {
			return nil // the session has ended
		}
		if err := r.report(ctx, p); err != nil {
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

// reporter tells the guard what has changed. A guard that is not there will be, sooner or later.
type reporter struct {
	c    *call
	to   wire.GuardClient
	last idle.Presence
	at   time.Time
	gone bool // and it was said
}

func (r *reporter) report(ctx context.Context, p idle.Presence) error {
	// A desktop's idle time and the clock are not read at once: what differs by less than the time between two looks is the same touch.
	if p.Input-r.last.Input < askDesktop/2 {
		p.Input = r.last.Input
	}
	now := r.c.now()
	if p == r.last && now.Sub(r.at) < reportAgain {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, guardPatience)
	defer cancel()
	_, err := r.to.Present(ctx, &wire.PresentRequest{Input: int64(p.Input), Busy: p.Busy, Game: p.Game, By: p.By})
	err = fromWire(err)
	if errors.Is(err, roost.Unavailable) || errors.Is(err, context.DeadlineExceeded) {
		if !r.gone {
			fmt.Fprintf(r.c.stderr, "the guard of this machine does not answer; waiting for it: %v\n", err)
		}
		r.gone = true
		return nil
	}
	if err != nil {
		return err
	}
	r.last, r.at, r.gone = p, now, false
	return nil
}
