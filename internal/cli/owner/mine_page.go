package owner

import (
	"context"
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/ownerpage"
	"github.com/roost-batch/roost/internal/wire"
)

// pagedMachine is the machine of a guard, for a page.
type pagedMachine struct {
	c     *frame.Invocation
	guard GuardAddress
}

// request returns the invocation for one request of a page, whose words are as on the
// command line.
func (p pagedMachine) request(ctx context.Context, words string) *frame.Invocation {
	c := *p.c
	c.Context, c.Args = ctx, strings.Fields(words)
	return &c
}

// Show implements ownerpage.Machine.
func (p pagedMachine) Show(ctx context.Context) (d document.OwnMachine, err error) {
	c := p.request(ctx, "")
	err = WithGuard(c, p.guard, func(ctx context.Context, w wire.GuardClient) error {
		m, err := w.Mine(ctx, &wire.MineRequest{})
		if err == nil {
			d = ownMachine(c, m)
		}
		return err
	}, func(error) error { return p.guard.noGuard() })
	return d, err
}

// Pause implements ownerpage.Machine.
func (p pagedMachine) Pause(ctx context.Context, words, reason string) error {
	c := p.request(ctx, words)
	until, err := parsePauseEnd(c)
	if err == nil {
		_, _, err = pauseGuard(c, p.guard, until, reason)
	}
	return err
}

// Resume implements ownerpage.Machine.
func (p pagedMachine) Resume(ctx context.Context) error {
	_, _, err := resumeGuard(p.request(ctx, ""), p.guard)
	return err
}

// serveMine serves the page of the machine until the user ends it.
func serveMine(c *frame.Invocation, g GuardAddress) error {
	machine := pagedMachine{c, g}
	if _, err := machine.Show(c.Context); err != nil {
		return err
	}
	server, token, err := ownerpage.New(machine, callerName(c.Getenv))
	if err != nil {
		return err
	}
	l, err := ownerpage.Listen()
	if err != nil {
		return err
	}
	signals, release := c.NotifyInterrupts()
	defer release()
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	link := fmt.Sprintf("http://%s/login#%s", l.Addr(), token)
	if c.WantsJSON() {
		err = frame.PrintJSON(c.Stdout, frame.JSONDocument{"url": link})
	} else {
		_, err = fmt.Fprintf(c.Stdout, "%s\n", link)
		fmt.Fprintln(c.Stderr, "The link can be used once and within a minute. Ctrl-C ends the page.")
	}
	if err != nil {
		l.Close()
		return err
	}
	return server.Run(ctx, l)
}
