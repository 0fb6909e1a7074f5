package adstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/script"
)

// TestStories runs the scripts in testdata. Commands:
//
//	update TYPE NAME START SEQUENCE LEASE   with the ad as input, none to renew;
//	                                        "private K V" in it for a private attribute;
//	                                        at its end node=NAME for the node whose certificate it came with
//	invalidate TYPE NAME START SEQUENCE
//	tick DURATION                           lets time pass and leases expire
//	query [TYPE] [limit=N] [show=A,B]       with the constraint as input
//	follow FEED TYPE, take FEED N, unfollow FEED
//
// The limits are those of a very small pool.
func TestStories(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		p := &scriptRunner{
			store: New(SizeLimits{AdBytes: 100, Attributes: 5, AdsPerType: 3, AdsPerNode: 2, Types: 2,
				Lease: time.Hour}),
			now: time.Unix(0, 0), feeds: map[string]*TypeFeed{},
		}
		return func(s script.ScriptCommand) string {
			out := p.runCommand(s)
			p.store.check()
			return out
		}
	})
}

type scriptRunner struct {
	store *Store
	now   time.Time
	feeds map[string]*TypeFeed
}

func (p *scriptRunner) runCommand(s script.ScriptCommand) string {
	switch s.Command {
	case "update", "invalidate":
		return p.applyUpdate(s)
	case "tick":
		d, err := time.ParseDuration(s.Args[0])
		if err != nil {
			return err.Error()
		}
		p.now = p.now.Add(d)
		return fmt.Sprintf("%d expired, %d left", p.store.Expire(p.now), p.store.Count())
	case "query":
		return p.runQuery(s)
	case "follow":
		f, err := p.store.StartFeed(s.Args[1])
		if err != nil {
			return err.Error()
		}
		p.feeds[s.Args[0]] = f
		return "ok"
	case "take":
		return p.takeDeltas(s)
	case "unfollow":
		p.store.EndFeed(p.feeds[s.Args[0]])
		return "ok"
	}
	return "unknown command"
}

func (p *scriptRunner) applyUpdate(s script.ScriptCommand) string {
	node := ""
	if n := len(s.Args) - 1; strings.HasPrefix(s.Args[n], "node=") {
		node, s.Args = s.Args[n][len("node="):], s.Args[:n]
	}
	u := AdUpdate{Node: node, Type: s.Args[0], Name: s.Args[1], Invalidate: s.Command == "invalidate",
		Private: map[string]string{}}
	fmt.Sscan(s.Args[2], &u.Started)
	fmt.Sscan(s.Args[3], &u.Sequence)
	if len(s.Args) > 4 {
		u.Lease, _ = time.ParseDuration(s.Args[4])
	}
	for _, line := range s.Input {
		if words := strings.Fields(line); words[0] == "private" {
			u.Private[words[1]] = words[2]
		} else {
			u.Ad += line
		}
	}
	outcome, err := p.store.Update(p.now, u)
	if err != nil {
		return err.Error()
	}
	return [...]string{"stored", "renewed", "dropped", "removed", "resend"}[outcome]
}

func (p *scriptRunner) runQuery(s script.ScriptCommand) string {
	typ, limit, projection := "", 0, []string(nil)
	for _, a := range s.Args {
		if n, ok := strings.CutPrefix(a, "limit="); ok {
			fmt.Sscan(n, &limit)
		} else if names, ok := strings.CutPrefix(a, "show="); ok {
			projection = strings.Split(names, ",")
		} else {
			typ = a
		}
	}
	q, err := CompileQuery(strings.Join(s.Input, "\n"), projection, limit)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	q.Select(p.store.List(typ), &classad.EvalEnv{Now: p.now}, func(text string) bool {
		out.WriteString(text + "\n")
		return true
	})
	return out.String()
}

func (p *scriptRunner) takeDeltas(s script.ScriptCommand) string {
	most := 0
	fmt.Sscan(s.Args[1], &most)
	deltas, err := p.feeds[s.Args[0]].Take(most)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, d := range deltas {
		switch {
		case d.Synced:
			out.WriteString("synced\n")
		case d.Entry == nil:
			fmt.Fprintf(&out, "%s gone\n", d.Name)
		default:
			fmt.Fprintf(&out, "%s %s %v\n", d.Name, d.Entry.Text, d.Entry.Private)
		}
	}
	return out.String()
}
