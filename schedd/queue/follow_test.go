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
)

// fate is what has become of a job, as one who only reads the log would put it.
type fate struct {
	says            []string // its dependencies, as they were taken
	started, ended  bool
	live            bool
	group           int  // of rivals; each job begins in one of its own
	ok, dropped, in bool // succeeded; dropped by the queue; in hold or blocked when it was removed
}

// onlooker judges a queue by its log alone.
type onlooker struct {
	*desk
	fates map[uint64]*fate
}

// submit asks for a job with some dependencies, and notes it if it is taken.
func (o *onlooker) submit(says []string) {
	spec := Spec{Ad: ad(o, "PBS = []"), Count: 1}
	if len(says) > 0 {
		spec.Ad.SetStrings(roost.AttrDependsOn, says)
	}
	o.keys++
	events, ids, _, err := o.q.Submit(o.now, alice, strconv.Itoa(o.keys), []Spec{spec}, Limits{})
	if err != nil {
		if !errors.Is(err, roost.Conflict) {
			o.Fatalf("%v: %v", says, err)
		}
		return
	}
	now := &fate{says: says, group: o.keys}
	o.fates[ids[0].Seq] = now
	for _, text := range says {
		if n, ok := strings.CutPrefix(text, "runone:"); ok {
			seq, _ := strconv.ParseUint(n, 10, 64)
			was := o.fates[seq].group
			for _, f := range o.fates {
				if f.group == was {
					f.group = now.group
				}
			}
		}
	}
	o.tell(events)
}

// tell applies events and all that follows from them, and judges each.
func (o *onlooker) tell(events []Event) {
	for len(events) > 0 {
		e := events[0]
		events = events[1:]
		if e.What == RemovalRequested || e.What == Dropped {
			s, _ := o.q.TaskStatus(roost.JobID{Seq: e.Job, Host: "h"}.Task(0))
			o.fates[e.Job].in = s.Task.State == roost.Held || s.Task.State == roost.Blocked
		}
		o.apply(e)
		f := o.fates[e.Job]
		switch e.What {
		case Assigned:
			if why := o.verdict(e.Job); why != "" {
				o.Fatalf("job %d is started (it says %v): %s", e.Job, f.says, why)
			}
		case Started:
			f.started = true
		case Dropped:
			f.dropped = true
			if why := o.verdict(e.Job); !strings.HasPrefix(why, "never: ") {
				o.Fatalf("job %d is dropped (it says %v): %q", e.Job, f.says, why)
			}
		}
		st, ok := o.q.Status(e.Job)
		if !ok { // purged
			continue
		}
		f.ended = st.Counts[roost.Completed]+st.Counts[roost.Removed] > 0
		f.live = st.Counts[roost.Starting]+st.Counts[roost.Running]+st.Counts[roost.Suspended]+st.Counts[roost.Exiting] > 0
		f.started = f.started || st.Counts[roost.Completed] > 0
		f.ok = st.Counts[roost.Completed] > 0 && st.Failed == 0
		if len(events) == 0 {
			events = o.q.Consequences(o.now)
		}
	}
}

// verdict says why a job may not run now, "" if it may; it begins with "never: " if it may not ever.
func (o *onlooker) verdict(seq uint64) (why string) {
	worse := func(text string) {
		if !strings.HasPrefix(why, "never: ") {
			why = text
		}
	}
	on, sync := 0, 0
	for _, text := range o.fates[seq].says {
		kind, rest, _ := strings.Cut(text, ":")
		n, _ := strconv.ParseUint(rest, 10, 64)
		switch kind {
		case "on":
			on += int(n)
		case "synccount":
			sync += int(n)
		default:
			if w := o.about(kind, o.fates[n]); w != "" {
				worse(w + text)
			}
		}
	}
	for other, f := range o.fates {
		named := map[string]bool{}
		for _, text := range f.says {
			kind, rest, _ := strings.Cut(text, ":")
			if rest != strconv.FormatUint(seq, 10) {
				continue
			}
			if after, ok := strings.CutPrefix(kind, "before"); ok {
				named["before"] = true
				if w := o.about("after"+after, f); w != "" {
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
	for other, f := range o.fates {
		switch {
		case other == seq || f.group != o.fates[seq].group:
		case f.started && f.ended:
			worse(fmt.Sprintf("never: its rival %d ran", other))
		case f.live:
			worse(fmt.Sprintf("its rival %d runs", other))
		}
	}
	return why
}

// about judges one condition: "", "not yet: " or "never: ".
func (o *onlooker) about(kind string, f *fate) string {
	barren := f.in && !f.started // with all that wait for it
	switch {
	case kind == "after" && f.started, kind == "afterany" && f.ended && !barren, kind == "afterok" && f.ended && f.ok, kind == "afternotok" && f.ended && !f.ok && !barren:
		return ""
	case kind == "syncwith":
		if o.verdictOfSync(f) {
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

// verdictOfSync reports whether all jobs are there that are to start with this one.
func (o *onlooker) verdictOfSync(master *fate) bool {
	missing := 0
	for seq, f := range o.fates {
		if f != master {
			continue
		}
		for _, text := range f.says {
			if n, ok := strings.CutPrefix(text, "synccount:"); ok {
				c, _ := strconv.Atoi(n)
				missing += c
			}
		}
		for _, g := range o.fates {
			if slices.Contains(g.says, fmt.Sprintf("syncwith:%d", seq)) {
				missing--
			}
		}
	}
	return missing <= 0
}

// Of any jobs with any dependencies none starts before it may and none is dropped that might, whatever happens to the others; and when everything has
// ended that could run, what is left still waits for something that has not come.
func TestDependenciesByTheLog(t *testing.T) {
	dropped, started := 0, 0
	for seed := range uint64(250) {
		o, rng := &onlooker{newDesk(t), map[uint64]*fate{}}, rand.New(rand.NewPCG(seed, 11))
		for range 40 {
			switch rng.IntN(5) {
			case 0, 1:
				o.submit(o.invent(rng))
			case 2:
				if n := len(o.fates); n > 0 && rng.IntN(2) == 0 {
					target := Target{Job: roost.JobID{Seq: 1 + rng.Uint64N(uint64(n)), Host: "h"}}
					var events []Event
					switch rng.IntN(4) {
					case 3:
						for _, seq := range o.q.Done() {
							if e, ok := o.q.Purge(o.now, seq); ok {
								events = append(events, e)
							}
						}
					case 0:
						events, _ = o.q.Remove(o.now, alice, target, "", false)
					case 1:
						events, _ = o.q.Hold(o.now, alice, target, "")
					case 2:
						events, _ = o.q.Release(o.now, alice, target)
					}
					o.tell(events)
				}
			default:
				o.tell(o.work(rng))
			}
		}
		for seq := range o.fates {
			events, _ := o.q.Release(o.now, alice, Target{Job: roost.JobID{Seq: seq, Host: "h"}})
			o.tell(events)
		}
		for range 1000 {
			if events := o.work(rng); events != nil {
				o.tell(events)
			}
		}
		for seq, f := range o.fates {
			if f.dropped {
				dropped++
			}
			if f.started {
				started++
			}
			st, _ := o.q.Status(seq)
			if why := o.verdict(seq); !f.ended && st.Counts[roost.Held] == 0 && (why == "" || strings.HasPrefix(why, "never: ")) {
				t.Fatalf("seed %d: job %d is left over (%v, says %v): %q", seed, seq, st.Counts, f.says, why)
			}
		}
	}
	if dropped < 100 || started < 500 {
		t.Fatalf("%d jobs dropped and %d started: that tests little", dropped, started)
	}
}

// invent makes up dependencies on jobs that are there and have not ended.
func (o *onlooker) invent(rng *rand.Rand) (says []string) {
	var open []uint64
	for seq, f := range o.fates {
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
			kinds := []string{"after", "afterok", "afternotok", "afterany", "runone", "runone", "before", "beforeok", "beforenotok", "beforeany", "syncwith"}
			if say := fmt.Sprintf("%s:%d", kinds[rng.IntN(len(kinds))], open[rng.IntN(len(open))]); !slices.Contains(says, say) {
				says = append(says, say)
			}
		}
	}
	return says
}

// anyWaits makes up dependencies on jobs that there may be or not.
func (d *desk) anyWaits(rng *rand.Rand) (waits []string) {
	kinds := strings.Fields("afterany afterok afternotok after runone before beforeok beforeany syncwith afterokarray afteranyarray")
	for range 1 + rng.IntN(2) {
		waits = append(waits, fmt.Sprintf("%s:%d", kinds[rng.IntN(len(kinds))], 1+rng.Uint64N(d.q.lastSeq)))
		if rng.IntN(8) == 0 {
			waits = append(waits, []string{"on:1", "on:2", "synccount:1"}[rng.IntN(3)])
		}
	}
	return waits
}
