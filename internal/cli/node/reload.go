package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/master"
)

// reloadTimeout bounds how long the command waits for the daemons to serve again.
const reloadTimeout = 2 * time.Minute

// ReloadCommand returns roost reload: make the daemons of this machine read the node file
// again.
func ReloadCommand() *frame.Command {
	return &frame.Command{
		Name: "reload", Group: frame.GroupPool, Summary: "make the daemons of this machine read their settings again",
		MaxOperands: 0, Run: reloadNode,
		Description: "Makes the master of this machine read its node file again, and restart the daemons whose " +
			"settings have changed. If the programs have been replaced, it starts all of them anew, itself too. " +
			"Tasks run on. A file with a mistake changes nothing.",
		Examples: []frame.Example{
			{Line: "roost reload", Description: "after a change of the node file, or of the programs"},
			{Line: "roost config check new.hcl", Description: "check a file first"},
		},
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "config", Usage: "the node's `FILE`, see roost-node(5)"},
			frame.JSONFlag()},
	}
}

func reloadNode(c *frame.Invocation) error {
	n, err := nodeaccess.ReadNodeFile(c) // a mistake is told before anything happens
	if err != nil {
		return err
	}
	before, running, err := master.ReadState(n.Dir)
	if err != nil || !running {
		return frame.KindErrorf(roost.Unavailable, "no master runs in %s on this machine, so nothing can reload", n.Dir)
	}
	seen := 0
	if before.Reload != nil {
		seen = before.Reload.Count
	}
	if err := master.RequestReload(n.Dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context, reloadTimeout)
	defer cancel()
	state, err := awaitReload(ctx, n.Dir, seen)
	if err != nil {
		return err
	}
	r := state.Reload
	if c.WantsJSON() {
		if err := frame.PrintJSON(c.Stdout, frame.JSONDocument{"replaced": r.Replaced, "reason": r.Reason,
			"restarted": listOf(r.Restarted), "started": listOf(r.Started), "stopped": listOf(r.Stopped),
			"error": r.Error}); err != nil {
			return err
		}
	}
	if r.Error != "" {
		return frame.KindErrorf(roost.BadConfig, "the master has changed nothing: %s", r.Error)
	}
	if !c.WantsJSON() {
		fmt.Fprintln(c.Stdout, reloadText(r))
	}
	return nil
}

func listOf(all []string) []string { return append([]string{}, all...) }

// awaitReload waits until the master has reloaded once more, and all its daemons serve.
func awaitReload(ctx context.Context, dir string, seen int) (*master.NodeState, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var waiting []string
	for {
		state, running, err := master.ReadState(dir)
		if err == nil && running && state.Reload != nil && state.Reload.Count > seen {
			if state.Reload.Error != "" {
				return state, nil
			}
			if waiting = notServing(state); state.Ready && len(waiting) == 0 {
				return state, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, frame.KindErrorf(roost.Unavailable, "the master has reloaded, but after %v these daemons "+
				"do not serve: %s; look at their logs in %s/log", reloadTimeout, strings.Join(waiting, ", "), dir)
		}
	}
}

func notServing(s *master.NodeState) (names []string) {
	for _, d := range s.Daemons {
		if !d.Ready {
			names = append(names, strings.TrimSpace(d.Role+" "+d.Name))
		}
	}
	return names
}

// reloadText says what a reload has changed.
func reloadText(r *master.ReloadState) string {
	if r.Replaced {
		return "all daemons and the master were started anew: " + r.Reason
	}
	var parts []string
	for _, p := range []struct {
		what  string
		names []string
	}{{"restarted", r.Restarted}, {"started", r.Started}, {"stopped", r.Stopped}} {
		if len(p.names) > 0 {
			parts = append(parts, p.what+": "+strings.Join(p.names, ", "))
		}
	}
	if len(parts) == 0 {
		return "no setting has changed; no daemon was restarted"
	}
	return strings.Join(parts, "; ")
}
