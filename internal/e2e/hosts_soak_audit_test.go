package e2e

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/wire"
)

// audit holds what was seen of a round, by the tasks themselves above all, against the promises.
func (s *soak) audit(calm time.Time) {
	s.Helper()
	o := &observer{soak: s, claims: map[beat]uint64{}, short: map[beat]bool{}}
	for name, cores := range s.cores() {
		o.see(s.roundBegan(), audit.Seen{What: audit.Offered, Node: name, Resources: roost.Resources{CPU: roost.MilliCPU(1000 * cores)}})
	}
	o.see(s.roundBegan(), audit.Seen{What: audit.Injected, Note: "the first fault"})
	o.see(calm, audit.Seen{What: audit.Calm})
	for _, w := range s.jobs {
		o.job(w)
	}
	for _, a := range s.absences {
		o.absence(a)
	}
	now := time.Now()
	for _, name := range soakSubmits {
		o.see(now, audit.Seen{What: audit.Recovered, Node: name, Jobs: o.known[name]})
	}
	broken := o.broken(now)
	for _, b := range broken {
		switch b.Promise {
		case 1, 9, 11:
			s.sum.lost++
		case 2, 3, 4:
			s.sum.twice++
		default:
			s.sum.others++
		}
	}
	for _, b := range broken[:min(len(broken), 10)] {
		s.Errorf("%s", b.String())
	}
	if len(broken) > 10 {
		s.Errorf("and %d more", len(broken)-10)
	}
	s.used()
	s.allGone()
	if !s.Failed() {
		s.forget()
	}
}

func (s *soak) roundBegan() time.Time {
	began := time.Now()
	for _, w := range s.jobs {
		if w.asked.Before(began) {
			began = w.asked
		}
	}
	return began
}

// cores are what the machines lend.
func (s *soak) cores() map[string]int {
	all := map[string]int{s.desk.name: coresOfDesk}
	for _, name := range soakServers {
		all[name] = coresOfNode
	}
	return all
}

// observer puts together what was seen.
type observer struct {
	*soak
	all    []audit.Seen
	lives  []life
	claims map[beat]uint64
	short  map[beat]bool            // attempts that were told that their machine's disk is full: their output is what they could write
	known  map[string][]roost.JobID // by submit node: what its schedd still knows
}

// life is an attempt from its first line to its last, or to when one of its processes was last seen.
type life struct {
	beat
	w          *errand
	task       roost.TaskID
	node       string
	began, end time.Time
	ended      bool // by itself
}

func (o *observer) see(at time.Time, seen audit.Seen) {
	seen.At = max(at.Sub(o.began), 0)
	o.all = append(o.all, seen)
}

// broken holds all that was seen until now against the promises.
func (o *observer) broken(now time.Time) []audit.Breach {
	rules := audit.DefaultRules()
	rules.Patience, rules.KillGrace = limit(), time.Duration(float64(dying)*limit().Minutes())
	auditor := audit.New(rules)
	slices.SortStableFunc(o.all, func(a, b audit.Seen) int { return cmp.Compare(a.At, b.At) })
	for _, seen := range o.all {
		auditor.See(seen)
	}
	auditor.Finish(now.Sub(o.began))
	return auditor.Broken()
}

// job sees what became of a job.
func (o *observer) job(w *errand) {
	o.Helper()
	id, err := roost.ParseJobID(w.id, w.at)
	if err != nil {
		o.Error(err)
		return
	}
	rows, err := o.rows(o.clients[w.at], &wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{w.id}}, History: true, Tasks: true})
	if err != nil || len(rows) != w.count {
		o.Errorf("P1: %s (%s) has %d tasks, want %d (%v)", w.id, w.key, len(rows), w.count, err)
		return
	}
	if o.known == nil {
		o.known = map[string][]roost.JobID{}
	}
	o.known[w.at] = append(o.known[w.at], id)
	events := o.events(o.clients[w.at], w.id)
	o.told(w, id, time.Unix(0, events[0].GetTime()))
	o.logged(id, events)
	if w.saved {
		o.counted(w, rows[0], events)
	} else {
		o.written(w, id)
	}
	for _, row := range rows {
		o.task(w, id, row, events)
	}
	o.after(w)
	o.count(w, rows, events)
}

// told sees what the job's owner was told.
func (o *observer) told(w *errand, id roost.JobID, submitted time.Time) {
	of := audit.Seen{Key: w.key, Job: id, Node: w.at, Tasks: w.count, Resources: roost.Resources{CPU: 1000}}
	taken := of
	taken.What = audit.Taken
	o.see(submitted, taken)
	of.What = audit.Printed
	o.see(w.told, of)
	for _, h := range w.holds {
		o.see(h.from, audit.Seen{What: audit.HeldBack, Job: id, Index: audit.All})
		o.see(h.to, audit.Seen{What: audit.LetGo, Job: id, Index: audit.All})
	}
	if !w.removed.IsZero() {
		o.see(w.removed, audit.Seen{What: audit.HeldBack, Job: id, Index: audit.All, Note: audit.Removal})
	}
}

// logged sees what the job's log says of attempts.
func (o *observer) logged(id roost.JobID, events []*wire.JobEvent) {
	for _, e := range events {
		a := attemptOf(e)
		seen := audit.Seen{Job: id, Index: a.index, Attempt: roost.Attempt(a.number), Node: e.GetNode()}
		switch e.GetWhat() {
		case "assigned":
			seen.What = audit.Assigned
		case "completed":
			seen.What, seen.Code = audit.Completed, e.GetExit().GetCode()
		default:
			continue
		}
		o.see(time.Unix(0, e.GetTime()), seen)
	}
}

// written sees what the job's tasks wrote down. One of which nothing tells when it died lived as long as one of its processes was seen, and as long as its lock
// kept another from beginning.
func (o *observer) written(w *errand, id roost.JobID) {
	first := len(o.lives)
	open := func(index int) *life { // the last of a task of whose end nothing is known
		for i := len(o.lives) - 1; i >= first; i-- {
			if l := &o.lives[i]; l.index == index && !l.ended {
				return l
			}
		}
		return nil
	}
	for _, m := range o.moments(w.key) {
		at := time.Unix(0, m.at)
		switch m.what {
		case "start", "overlap":
			b := beat{w.key, attempt{m.index, m.attempt}}
			if last := open(m.index); last != nil && m.what == "overlap" {
				last.end = at.Add(1)
			}
			end := at.Add(1)
			if last := o.alive[b]; last.After(end) {
				end = last
			}
			o.lives = append(o.lives, life{beat: b, w: w, task: id.Task(m.index), node: m.node, began: at, end: end})
		case "full":
			o.short[beat{w.key, attempt{m.index, m.attempt}}] = true
		case "end":
			for i := range o.lives[first:] {
				if l := &o.lives[first+i]; l.index == m.index && l.number == m.attempt && !l.ended {
					l.end, l.ended = at, true
				}
			}
		}
	}
	for _, l := range o.lives[first:] {
		o.claims[l.beat] = uint64(len(o.claims) + 1)
		seen := audit.Seen{What: audit.Began, Job: id, Index: l.index, Attempt: roost.Attempt(l.number), Node: l.node, Claim: o.claims[l.beat], Resources: roost.Resources{CPU: 1000}}
		o.see(l.began, seen)
		seen.What, seen.Code = audit.Ended, -1
		if l.ended {
			seen.Code = int32(l.index % w.codes)
		}
		o.see(l.end, seen)
	}
}

// counted holds the record of a task that was saved against the promises, which says more of it than a beginning and an end.
func (o *observer) counted(w *errand, row *wire.JobStatus, events []*wire.JobEvent) {
	o.Helper()
	if row.State != "completed" {
		return
	}
	if !o.lackedRoom(events) { // or what it printed may not have been kept, and it does not look
		view := *o.hosts
		view.nodes = maps.Clone(o.nodes)
		view.nodes["submit"] = o.nodes[w.at]
		(&desktops{hosts: &view}).right(&counted{id: w.id, name: w.key, periodic: true}, events)
	}
	for _, e := range events {
		if a := attemptOf(e); e.GetWhat() == "completed" { // the steps are there: it ran
			began := audit.Seen{What: audit.Began, Job: roost.JobID{}, Attempt: roost.Attempt(a.number), Node: e.GetNode()}
			began.Job, _ = roost.ParseJobID(w.id, w.at)
			at := time.Unix(0, e.GetTime())
			o.see(at.Add(-3), began)
			began.What = audit.Ended
			o.see(at.Add(-2), began)
			began.What = audit.Stored
			o.see(at.Add(-1), began)
		}
	}
}

// lackedRoom reports whether the disk of a machine on which a job was run was full since it was submitted.
func (o *observer) lackedRoom(events []*wire.JobEvent) bool {
	return slices.ContainsFunc(o.absences, func(a absence) bool {
		return a.full && a.to.UnixNano() > events[0].GetTime() && slices.ContainsFunc(events, func(e *wire.JobEvent) bool { return e.GetNode() == a.host })
	})
}

// task sees how a task stands, and whether all of its output is there.
func (o *observer) task(w *errand, id roost.JobID, row *wire.JobStatus, events []*wire.JobEvent) {
	index := int(row.Index)
	switch row.State {
	case "removed":
		at := time.Now()
		o.see(at, audit.Seen{What: audit.Removed, Job: id, Index: index})
	case "completed":
		if w.saved {
			return
		}
		why := o.missing(w, row)
		if why != "" && !o.short[beat{w.key, attempt{index, int(row.Attempt)}}] {
			o.Errorf("P11: %s (%s): %s\n%s", row.Id, w.key, why, story(events))
			return
		}
		for _, e := range events {
			if a := attemptOf(e); e.GetWhat() == "completed" && a.index == index {
				o.see(time.Unix(0, e.GetTime()-1), audit.Seen{What: audit.Stored, Job: id, Index: index, Attempt: roost.Attempt(a.number)})
			}
		}
	}
}

// missing says what is wrong with the output of a task that has completed; empty when nothing is.
func (o *observer) missing(w *errand, row *wire.JobStatus) string {
	var want, got strings.Builder
	for i := range w.lines {
		fmt.Fprintf(&want, "line %d of %s %d\n", i, w.key, row.Index)
	}
	stream, err := o.clients[w.at].Logs(o.Context(), &wire.LogsRequest{Id: row.Id})
	for err == nil {
		var chunk *wire.LogChunk
		if chunk, err = stream.Recv(); err == nil {
			got.Write(chunk.Data)
		}
	}
	if err != io.EOF || got.String() != want.String() {
		return fmt.Sprintf("its output has %d bytes, want %d (%v)", got.Len(), want.Len(), err)
	}
	if w.codes != 1 {
		return ""
	}
	file := filepath.Join(w.by.home, fmt.Sprintf("out-%s.%d", w.key, row.Index))
	text, err := os.ReadFile(file)
	if line := fmt.Sprintf("%s %d %d\n", w.key, row.Index, row.Attempt); string(text) != line {
		return fmt.Sprintf("its file has %q, want %q (%v)", text, line, err)
	}
	return ""
}

// after holds that a job which waits for another began when that one had completed.
func (o *observer) after(w *errand) {
	if w.after == nil {
		return
	}
	last := time.Time{}
	for _, e := range o.events(o.clients[w.at], w.after.id) {
		if e.GetWhat() == "completed" {
			last = time.Unix(0, e.GetTime())
		}
	}
	for _, l := range o.lives {
		if l.w == w && l.began.Before(last) {
			o.Errorf("%s began at %s, and the job that it waits for, %s, had completed at %s", l.task, clock(l.began), w.after.id, clock(last))
		}
	}
}

// count adds up what happened.
func (o *observer) count(w *errand, rows []*wire.JobStatus, events []*wire.JobEvent) {
	o.sum.jobs++
	o.sum.tasks += len(rows)
	o.sum.held += len(w.holds)
	for _, row := range rows {
		if row.State == "removed" {
			o.sum.removed++
		}
	}
	for _, e := range events {
		switch e.GetWhat() {
		case "assigned":
			o.sum.attempts++
		case "lost", "vacated", "preempted", "unlaunched":
			o.sum.again++
		case "started":
			if strings.HasPrefix(e.GetText(), "from ") {
				o.sum.restored++
			}
		}
	}
}

// absence sees when the leases of those end who run where nobody is heard of, and that they may be longer again afterwards; or that a machine slept.
func (o *observer) absence(a absence) {
	if a.asleep && slices.Contains(append(slices.Clone(soakServers), o.desk.name), a.host) {
		o.see(a.from, audit.Seen{What: audit.Froze, Node: a.host})
		o.see(a.to, audit.Seen{What: audit.Woke, Node: a.host})
	}
	const slack = time.Second // what was on its way still arrives
	lease := shortLease + shortLease/100 + slack
	if a.asleep || a.full || a.to.Sub(a.from) < lease {
		return
	}
	for _, l := range o.lives {
		if l.began.Before(a.from) && l.end.After(a.from) && (l.node == a.host || l.w.at == a.host) {
			claim := audit.Seen{What: audit.Leased, Node: l.node, Claim: o.claims[l.beat], Until: a.from.Add(lease).Sub(o.began)}
			o.see(a.from, claim)
			claim.What, claim.Until = audit.Renewed, 1<<62
			o.see(a.to, claim)
			claim.What = audit.Freed
			o.see(l.end.Add(1), claim)
		}
	}
}
