package main

import (
	"context"
	"fmt"
)

// figure is one number that a measure gives, and a line of the table.
type figure struct {
	key   string // of the answer's values
	title string
	label string // the same, short: for the picture
	unit  unit
	more  bool // more of it is better
}

// unit is what a figure counts.
type unit string

const (
	seconds   unit = "seconds"
	perSecond unit = "per second"
	bytesOf   unit = "bytes"
)

// measure is what is done with each system in turn.
type measure struct {
	name    string
	rounds  bool              // in each round; else once
	cell    bool              // on a system that was started to match
	counts  func(sizes) []int // once for each of these
	run     func(*agent, context.Context, order, *answer) error
	figures func(n int, s sizes) []figure
}

func measures() []measure {
	return []measure{
		{name: "idle", run: (*agent).idle, figures: func(int, sizes) []figure {
			return []figure{{"idle", "memory of the central daemons, idle", "idle", bytesOf, false}}
		}},
		{name: "latency", rounds: true, run: (*agent).latency, figures: func(int, sizes) []figure {
			return []figure{{"start", "submit to start, idle pool", "submit to start", seconds, false}, {"command", "the command that submits", "the command", seconds, false}}
		}},
		{name: "batch", rounds: true, run: (*agent).batch, figures: func(_ int, s sizes) []figure {
			return []figure{{"batch", fmt.Sprintf("jobs finished a second, an array of %d /bin/true", s.Batch), "array, finished", perSecond, true}, {"cost", "CPU time for each of them", "CPU for a job", seconds, false}}
		}},
		{name: "loop", rounds: true, run: (*agent).loop, figures: func(int, sizes) []figure {
			return []figure{{"loop", "submits a second, commands in a shell's loop", "submitted in a loop", perSecond, true}}
		}},
		{name: "running", rounds: true, run: (*agent).running, figures: func(int, sizes) []figure {
			return []figure{{"running", "memory beside each running job", "a running job", bytesOf, false}}
		}},
		{name: "array", counts: queuedSizes, run: (*agent).queuedArray, figures: func(n int, _ sizes) []figure {
			return []figure{{"array", fmt.Sprintf("memory of the central daemons, an array of %d queued", n), fmt.Sprintf("array of %d", n), bytesOf, false}}
		}},
		{name: "each", counts: queuedSizes, run: (*agent).queuedEach, figures: func(n int, _ sizes) []figure {
			return []figure{{"each", fmt.Sprintf("memory of the central daemons, %d jobs queued", n), fmt.Sprintf("%d jobs", n), bytesOf, false}}
		}},
		{name: "restart", run: (*agent).restart, figures: func(_ int, s sizes) []figure {
			return []figure{
				{"answers", fmt.Sprintf("queue daemon killed, %d jobs queued: answers", s.Restart), "killed: answers", seconds, false},
				{"starts", "the same: starts a job", "killed: starts a job", seconds, false},
			}
		}},
		{name: "match", cell: true, run: (*agent).matching, figures: func(_ int, s sizes) []figure {
			return []figure{{"match", fmt.Sprintf("matching %d jobs of %d kinds to %d machines", s.Jobs, s.Kinds, s.Machines), "matching", seconds, false}}
		}},
	}
}

func queuedSizes(s sizes) []int { return s.Queued }

func (a *agent) matching(ctx context.Context, o order, ans *answer) (err error) {
	*ans, err = a.match(ctx, o.Sizes)
	return err
}

func measureNames() (names []string) {
	for _, m := range measures() {
		names = append(names, m.name)
	}
	return names
}

func measureOf(name string) (measure, bool) {
	for _, m := range measures() {
		if m.name == name {
			return m, true
		}
	}
	return measure{}, false
}

// numbers are the counts that the measure is made for.
func (m measure) numbers(s sizes) []int {
	if m.counts == nil {
		return []int{0}
	}
	return m.counts(s)
}
