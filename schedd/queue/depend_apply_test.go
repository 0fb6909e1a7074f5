package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// dependencyOutcome is what has become of a job, as one who only reads the log would put
// it.
type dependencyOutcome struct {
	dependencies                  []string // its dependencies, as they were taken
	started, ended                bool
	live                          bool
	runOneSet                     int  // of rivals; each job begins in one of its own
	ok, dropped, removedUnstarted bool // succeeded; dropped by the queue; in hold or blocked when it was removed
}

// dependencyOracle judges a queue by its log alone.
type dependencyOracle struct {
	*testQueue
	outcomes map[uint64]*dependencyOutcome
}

// submit asks for a job with some dependencies, and notes it if it is taken.
func (o *dependencyOracle) submit(says []string) {
	spec := jobad.SubmitSpec{Ad: parseTestAd(o, "PBS = []"), Count: 1}
	if len(says) > 0 {
		spec.Ad.SetStrings(roost.AttrDependsOn, says)
	}
	o.keys++
	events, ids, _, err := o.queue.SubmitJobs(o.now, alice, strconv.Itoa(o.keys), []jobad.SubmitSpec{spec},
		SubmitLimits{})
	if err != nil {
		if !errors.Is(err, roost.Conflict) {
			o.Fatalf("%v: %v", says, err)
		}
		return
	}
	now := &dependencyOutcome{dependencies: says, runOneSet: o.keys}
	o.outcomes[ids[0].Seq] = now
	for _, text := range says {
		if n, ok := strings.CutPrefix(text, "runone:"); ok {
			seq, _ := strconv.ParseUint(n, 10, 64)
			was := o.outcomes[seq].runOneSet
			for _, f := range o.outcomes {
				if f.runOneSet == was {
					f.runOneSet = now.runOneSet
				}
			}
		}
	}
	o.applyAndCheck(events)
}

// applyAndCheck applies events and all that follows from them, and judges each.
func (o *dependencyOracle) applyAndCheck(events []eventlog.JobEvent) {
	for len(events) > 0 {
		e := events[0]
		events = events[1:]
		if e.Type == eventlog.RemovalRequested || e.Type == eventlog.Dropped {
			s, _ := o.queue.TaskStatus(roost.JobID{Seq: e.Job, Host: "h"}.Task(0))
			o.outcomes[e.Job].removedUnstarted = s.Task.State == roost.Held || s.Task.State == roost.Blocked
		}
		o.apply(e)
		f := o.outcomes[e.Job]
		switch e.Type {
		case eventlog.Assigned:
			if why := o.mayNotRun(e.Job); why != "" {
				o.Fatalf("job %d is started (it says %v): %s", e.Job, f.dependencies, why)
			}
		case eventlog.Started:
			f.started = true
		case eventlog.Dropped:
			f.dropped = true
			if why := o.mayNotRun(e.Job); !strings.HasPrefix(why, "never: ") {
				o.Fatalf("job %d is dropped (it says %v): %q", e.Job, f.dependencies, why)
			}
		}
		st, ok := o.queue.Status(e.Job)
		if !ok { // purged
			continue
		}
		f.ended = st.Counts[roost.Completed]+st.Counts[roost.Removed] > 0
		f.live = st.Counts[roost.Starting]+st.Counts[roost.Running]+st.Counts[roost.Suspended]+
			st.Counts[roost.Exiting] > 0
		f.started = f.started || st.Counts[roost.Completed] > 0
		f.ok = st.Counts[roost.Completed] > 0 && st.Failed == 0
		if len(events) == 0 {
			events = o.queue.Followups(o.now)
		}
	}
}

// mayNotRun says why a job may not run now; empty if it may. The reason begins with
// "never: " if it may not ever.
func (o *dependencyOracle) mayNotRun(seq uint64) (why string) {
	worse := func(text string) {
		if !strings.HasPrefix(why, "never: ") {
			why = text
		}
	}
	on, sync := 0, 0
	alternatives, dead, isMet := 0, 0, false
	for _, text := range o.outcomes[seq].dependencies {
		kind, rest, _ := strings.Cut(text, ":")
		n, _ := strconv.ParseUint(rest, 10, 64)
		if other, ok := strings.CutPrefix(kind, "?"); ok {
			w := o.conditionUnmet(other, o.outcomes[n])
			alternatives++
			isMet = isMet || w == ""
			if strings.HasPrefix(w, "never: ") {
				dead++
			}
			continue
		}
		switch kind {
		case "on":
			on += int(n)
		case "synccount":
			sync += int(n)
		default:
			if w := o.conditionUnmet(kind, o.outcomes[n]); w != "" {
				worse(w + text)
			}
		}
	}
	switch {
	case isMet || alternatives == 0:
	case dead == alternatives:
		worse("never: no alternative can come")
	default:
		worse("not yet: no alternative has come")
	}
	for other, f := range o.outcomes {
		named := map[string]bool{}
		for _, text := range f.dependencies {
			kind, rest, _ := strings.Cut(text, ":")
			if rest != strconv.FormatUint(seq, 10) {
				continue
			}
			if after, ok := strings.CutPrefix(kind, "before"); ok {
				named["before"] = true
				if w := o.conditionUnmet("after"+after, f); w != "" {
					worse(fmt.Sprintf("%sjob %d says %s", w, other, text))
				}
			}
			named[kind] = true
		}
		if named["before"] {
			on--
		}
		if named["syncwith"] {
			sync--
		}
	}
	if on > 0 || sync > 0 {
		worse(fmt.Sprintf("%d and %d jobs are missing", on, sync))
	}
	for other, f := range o.outcomes {
		switch {
		case other == seq || f.runOneSet != o.outcomes[seq].runOneSet:
		case f.started && f.ended:
			worse(fmt.Sprintf("never: its rival %d ran", other))
		case f.live:
			worse(fmt.Sprintf("its rival %d runs", other))
		}
	}
	return why
}

// conditionUnmet judges one condition: "", "not yet: " or "never: ".
func (o *dependencyOracle) conditionUnmet(kind string, f *dependencyOutcome) string {
	removedEarly := f.removedUnstarted && !f.started // with all that wait for it
	switch {
	case kind == "aftercorr":
		return o.conditionUnmet("afterok", f)
	case kind == "after" && f.started, kind == "afterany" && f.ended && !removedEarly, kind == "afterok" && f.ended &&
		f.ok, kind == "afternotok" && f.ended && !f.ok && !removedEarly:
		return ""
	case kind == "syncwith":
		if o.syncReady(f) {
			return ""
		}
		if f.ended {
			return "never: "
		}
		return "not yet: "
	case strings.HasPrefix(kind, "before") || kind == "runone":
		return ""
	case f.ended:
		return "never: "
	}
	return "not yet: "
}

// syncReady reports whether all jobs are there that are to start with this one.
func (o *dependencyOracle) syncReady(master *dependencyOutcome) bool {
	missing := 0
	for seq, f := range o.outcomes {
		if f != master {
			continue
		}
		for _, text := range f.dependencies {
			if n, ok := strings.CutPrefix(text, "synccount:"); ok {
				c, _ := strconv.Atoi(n)
				missing += c
			}
		}
		for _, g := range o.outcomes {
			if slices.Contains(g.dependencies, fmt.Sprintf("syncwith:%d", seq)) {
				missing--
			}
		}
	}
	return missing <= 0
}

// TestDependenciesAgainstLog checks random jobs with random dependencies. None starts
// before it may, and none is dropped that might run, whatever happens to the others. When
// everything that could run has ended, what is left still waits for something that has
// not come.
func TestDependenciesAgainstLog(t *testing.T) {
	dropped, started := checkRandomDependencies(t, 250)
	if dropped < 100 || started < 500 {
		t.Fatalf("%d jobs dropped and %d started: that tests little", dropped, started)
	}
}

// checkRandomDependencies has an oracle judge so many histories.
func checkRandomDependencies(t testing.TB, seeds uint64) (dropped, started int) {
	t.Helper()
	for seed := range seeds {
		o, rng := &dependencyOracle{newTestQueue(t), map[uint64]*dependencyOutcome{}}, rand.New(rand.NewPCG(seed, 11))
		for range 40 {
			switch rng.IntN(5) {
			case 0, 1:
				o.submit(o.randomDependencies(rng))
			case 2:
				if n := len(o.outcomes); n > 0 && rng.IntN(2) == 0 {
					target := TaskSelector{Job: roost.JobID{Seq: 1 + rng.Uint64N(uint64(n)), Host: "h"}}
					var events []eventlog.JobEvent
					switch rng.IntN(4) {
					case 3:
						for _, seq := range o.queue.TakeFinal() {
							if e, ok := o.queue.PurgeJob(o.now, seq); ok {
								events = append(events, e)
							}
						}
					case 0:
						events, _ = o.queue.RemoveTasks(o.now, alice, target, "", false)
					case 1:
						events, _ = o.queue.HoldTasks(o.now, alice, target, "")
					case 2:
						events, _ = o.queue.ReleaseTasks(o.now, alice, target)
					}
					o.applyAndCheck(events)
				}
			default:
				o.applyAndCheck(o.advanceRandom(rng))
			}
		}
		for seq := range o.outcomes {
			events, _ := o.queue.ReleaseTasks(o.now, alice, TaskSelector{Job: roost.JobID{Seq: seq, Host: "h"}})
			o.applyAndCheck(events)
		}
		for range 1000 {
			if events := o.advanceRandom(rng); events != nil {
				o.applyAndCheck(events)
			}
		}
		for seq, f := range o.outcomes {
			if f.dropped {
				dropped++
			}
			if f.started {
				started++
			}
			st, _ := o.queue.Status(seq)
			if why := o.mayNotRun(seq); !f.ended && st.Counts[roost.Held] == 0 &&
				(why == "" || strings.HasPrefix(why, "never: ")) {
				t.Fatalf("seed %d: job %d is left over (%v, says %v): %q", seed, seq, st.Counts, f.dependencies, why)
			}
		}
	}
	return dropped, started
}

// randomDependencies makes up dependencies on jobs that are there and have not ended.
func (o *dependencyOracle) randomDependencies(rng *rand.Rand) (says []string) {
	var open []uint64
	for seq, f := range o.outcomes {
		if !f.ended {
			open = append(open, seq)
		}
	}
	slices.Sort(open)
	switch {
	case rng.IntN(4) == 0:
		says = append(says, []string{"on:1", "on:2", "synccount:1"}[rng.IntN(3)])
	case len(open) == 0 || rng.IntN(4) == 0:
		return nil
	}
	for range rng.IntN(3) {
		if len(open) > 0 {
			kinds := []string{"after", "afterok", "afternotok", "afterany", "runone", "runone", "before", "beforeok",
				"beforenotok", "beforeany", "syncwith", "aftercorr", "?afterok", "?afternotok", "?afterany", "?after"}
			if report := fmt.Sprintf("%s:%d", kinds[rng.IntN(len(kinds))],
				open[rng.IntN(len(open))]); !slices.Contains(says, report) {
				says = append(says, report)
			}
		}
	}
	return says
}

// anyDependencies makes up dependencies on jobs that there may be or not.
func (d *testQueue) anyDependencies(rng *rand.Rand) (waits []string) {
	kinds := strings.Fields("afterany afterok afternotok after runone before beforeok beforeany syncwith " +
		"afterokarray afteranyarray aftercorr ?afterok ?afternotok ?after")
	for range 1 + rng.IntN(2) {
		waits = append(waits, fmt.Sprintf("%s:%d", kinds[rng.IntN(len(kinds))], 1+rng.Uint64N(d.queue.lastSeq)))
		if rng.IntN(6) == 0 {
			waits = append(waits, fmt.Sprintf("after:%d+%ds", 1+rng.Uint64N(d.queue.lastSeq), rng.IntN(40)))
		}
		if rng.IntN(8) == 0 {
			waits = append(waits, []string{"on:1", "on:2", "synccount:1"}[rng.IntN(3)])
		}
	}
	return waits
}
