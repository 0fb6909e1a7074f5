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

// auditRound checks the guarantees on what was observed in a round, above all by the
// tasks themselves.
func (s *soakPool) auditRound(calm time.Time) {
	s.Helper()
	o := &soakObserver{soakPool: s, claims: map[heartbeatSpan]uint64{}, diskFullAttempts: map[heartbeatSpan]bool{}}
	for name, cores := range s.availableCores() {
		o.addRecord(s.roundStart(), audit.Event{Type: audit.Offered, Node: name,
			Resources: roost.Resources{CPU: roost.MilliCPU(1000 * cores)}})
	}
	o.addRecord(s.roundStart(), audit.Event{Type: audit.Injected, Detail: "the first fault"})
	o.addRecord(calm, audit.Event{Type: audit.FaultsEnded})
	for _, w := range s.jobs {
		o.addJob(w)
	}
	for _, a := range s.absences {
		o.addSilence(a)
	}
	now := time.Now()
	for _, name := range soakSubmits {
		o.addRecord(now, audit.Event{Type: audit.Recovered, Node: name, Jobs: o.queuedJobs[name]})
	}
	broken := o.violations(now)
	for _, b := range broken {
		switch b.Guarantee {
		case 1, 9, 11:
			s.totals.lostTasks++
		case 2, 3, 4:
			s.totals.duplicateTasks++
		default:
			s.totals.otherErrors++
		}
	}
	for _, b := range broken[:min(len(broken), 10)] {
		s.Errorf("%s", b.String())
	}
	if len(broken) > 10 {
		s.Errorf("and %d more", len(broken)-10)
	}
	s.checkUsageGrowth()
	s.checkNoProcesses()
	if !s.Failed() {
		s.removeRoundFiles()
	}
}

func (s *soakPool) roundStart() time.Time {
	began := time.Now()
	for _, w := range s.jobs {
		if w.requestedAt.Before(began) {
			began = w.requestedAt
		}
	}
	return began
}

// availableCores returns the cores that the machines offer.
func (s *soakPool) availableCores() map[string]int {
	all := map[string]int{s.desk.name: coresOfDesk}
	for _, name := range soakServers {
		all[name] = coresOfNode
	}
	return all
}

// soakObserver collects the observations.
type soakObserver struct {
	*soakPool
	records []audit.Event
	lives   []attemptLifetime
	claims  map[heartbeatSpan]uint64
	// attempts whose machine's disk was full: their output is what they could write
	diskFullAttempts map[heartbeatSpan]bool
	queuedJobs       map[string][]roost.JobID // by submit node: jobs that its schedd still has
}

// attemptLifetime is an attempt from its first line to its last one. If that is unknown
// it ends with the last observation of one of its processes.
type attemptLifetime struct {
	heartbeatSpan
	w          *soakJob
	task       roost.TaskID
	node       string
	began, end time.Time
	ended      bool // by itself
}

func (o *soakObserver) addRecord(at time.Time, seen audit.Event) {
	seen.At = max(at.Sub(o.began), 0)
	o.records = append(o.records, seen)
}

// violations checks the guarantees on all observations until now.
func (o *soakObserver) violations(now time.Time) []audit.Violation {
	rules := audit.DefaultRules()
	rules.StartWait, rules.KillGrace = scaledTimeout(), time.Duration(float64(deathDelay)*scaledTimeout().Minutes())
	auditor := audit.New(rules)
	slices.SortStableFunc(o.records, func(a, b audit.Event) int { return cmp.Compare(a.At, b.At) })
	for _, seen := range o.records {
		auditor.Observe(seen)
	}
	auditor.Finish(now.Sub(o.began))
	return auditor.Violations()
}

// addJob records what became of a job.
func (o *soakObserver) addJob(w *soakJob) {
	o.Helper()
	id, err := roost.ParseJobID(w.id, w.submitNode)
	if err != nil {
		o.Error(err)
		return
	}
	rows, err := o.queryRows(o.clients[w.submitNode],
		&wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{w.id}}, History: true, Tasks: true})
	if err != nil || len(rows) != w.count {
		o.Errorf("P1: %s (%s) has %d tasks, want %d (%v)", w.id, w.key, len(rows), w.count, err)
		return
	}
	if o.queuedJobs == nil {
		o.queuedJobs = map[string][]roost.JobID{}
	}
	o.queuedJobs[w.submitNode] = append(o.queuedJobs[w.submitNode], id)
	events := o.jobEvents(o.clients[w.submitNode], w.id)
	o.addAcknowledged(w, id, time.Unix(0, events[0].GetTime()))
	o.addLogEvents(id, events)
	if w.countsSteps {
		o.checkCounter(w, rows[0], events)
	} else {
		o.addTaskLines(w, id)
	}
	for _, row := range rows {
		o.addTask(w, id, row, events)
	}
	o.checkDependency(w)
	o.countOutcomes(w, rows, events)
}

// addAcknowledged records what the job's owner was told.
func (o *soakObserver) addAcknowledged(w *soakJob, id roost.JobID, submitted time.Time) {
	of := audit.Event{Key: w.key, Job: id, Node: w.submitNode, Tasks: w.count, Resources: roost.Resources{CPU: 1000}}
	taken := of
	taken.Type = audit.SubmissionStored
	o.addRecord(submitted, taken)
	of.Type = audit.IDShown
	o.addRecord(w.acknowledgedAt, of)
	for _, h := range w.holds {
		o.addRecord(h.from, audit.Event{Type: audit.HeldByUser, Job: id, Index: audit.AllTasks})
		o.addRecord(h.to, audit.Event{Type: audit.Released, Job: id, Index: audit.AllTasks})
	}
	if !w.removed.IsZero() {
		o.addRecord(w.removed, audit.Event{Type: audit.HeldByUser, Job: id, Index: audit.AllTasks,
			Detail: audit.Removal})
	}
}

// addLogEvents records what the job's log says about attempts.
func (o *soakObserver) addLogEvents(id roost.JobID, events []*wire.JobEvent) {
	for _, e := range events {
		a := attemptOfEvent(e)
		seen := audit.Event{Job: id, Index: a.index, Attempt: roost.AttemptNumber(a.number), Node: e.GetNode()}
		switch e.GetWhat() {
		case "assigned":
			seen.Type = audit.Assigned
		case "completed":
			seen.Type, seen.Code = audit.Completed, e.GetExit().GetCode()
		default:
			continue
		}
		o.addRecord(time.Unix(0, e.GetTime()), seen)
	}
}

// addTaskLines records what the job's tasks wrote. An attempt without a known end lived
// as long as one of its processes was seen, and as long as its lock kept another from
// beginning.
func (o *soakObserver) addTaskLines(w *soakJob, id roost.JobID) {
	first := len(o.lives)
	open := func(index int) *attemptLifetime { // the last attempt of a task whose end is not known
		for i := len(o.lives) - 1; i >= first; i-- {
			if l := &o.lives[i]; l.index == index && !l.ended {
				return l
			}
		}
		return nil
	}
	for _, m := range o.taskLogLines(w.key) {
		at := time.Unix(0, m.at)
		switch m.what {
		case "start", "overlap":
			b := heartbeatSpan{w.key, attemptRecord{m.index, m.attempt}}
			if last := open(m.index); last != nil && m.what == "overlap" {
				last.end = at.Add(1)
			}
			end := at.Add(1)
			if last := o.lastSeen[b]; last.After(end) {
				end = last
			}
			o.lives = append(o.lives, attemptLifetime{heartbeatSpan: b, w: w, task: id.Task(m.index), node: m.node,
				began: at, end: end})
		case "full":
			o.diskFullAttempts[heartbeatSpan{w.key, attemptRecord{m.index, m.attempt}}] = true
		case "end":
			for i := range o.lives[first:] {
				if l := &o.lives[first+i]; l.index == m.index && l.number == m.attempt && !l.ended {
					l.end, l.ended = at, true
				}
			}
		}
	}
	for _, l := range o.lives[first:] {
		o.claims[l.heartbeatSpan] = uint64(len(o.claims) + 1)
		seen := audit.Event{Type: audit.Began, Job: id, Index: l.index, Attempt: roost.AttemptNumber(l.number),
			Node: l.node, Claim: o.claims[l.heartbeatSpan], Resources: roost.Resources{CPU: 1000}}
		o.addRecord(l.began, seen)
		seen.Type, seen.Code = audit.Ended, -1
		if l.ended {
			seen.Code = int32(l.index % w.codes)
		}
		o.addRecord(l.end, seen)
	}
}

// checkCounter checks the lines of a checkpointed task, which say more than a start and
// an end.
func (o *soakObserver) checkCounter(w *soakJob, row *wire.JobStatus, events []*wire.JobEvent) {
	o.Helper()
	if row.State != "completed" {
		return
	}
	if !o.isDiskFullEnd(events) { // its output may not have been stored, and it does not check that
		view := *o.hostPool
		view.nodes = maps.Clone(o.nodes)
		view.nodes["submit"] = o.nodes[w.submitNode]
		(&desktopPool{hostPool: &view}).checkSteps(&countingTask{id: w.id, name: w.key, periodicImages: true}, events)
	}
	for _, e := range events {
		if a := attemptOfEvent(e); e.GetWhat() == "completed" { // the steps exist: it ran
			began := audit.Event{Type: audit.Began, Job: roost.JobID{}, Attempt: roost.AttemptNumber(a.number),
				Node: e.GetNode()}
			began.Job, _ = roost.ParseJobID(w.id, w.submitNode)
			at := time.Unix(0, e.GetTime())
			o.addRecord(at.Add(-3), began)
			began.Type = audit.Ended
			o.addRecord(at.Add(-2), began)
			began.Type = audit.OutputStored
			o.addRecord(at.Add(-1), began)
		}
	}
}

// isDiskFullEnd reports whether the disk of a machine of the job has been full since its
// submission.
func (o *soakObserver) isDiskFullEnd(events []*wire.JobEvent) bool {
	return slices.ContainsFunc(o.absences, func(a hostSilence) bool {
		return a.diskOnly && a.to.UnixNano() > events[0].GetTime() &&
			slices.ContainsFunc(events, func(e *wire.JobEvent) bool {
				return e.GetNode() == a.host
			})
	})
}

// addTask records the state of a task, and whether all of its output is there.
func (o *soakObserver) addTask(w *soakJob, id roost.JobID, row *wire.JobStatus, events []*wire.JobEvent) {
	index := int(row.Index)
	switch row.State {
	case "removed":
		at := time.Now()
		o.addRecord(at, audit.Event{Type: audit.Removed, Job: id, Index: index})
	case "completed":
		if w.countsSteps {
			return
		}
		why := o.outputErrors(w, row)
		if why != "" && !o.diskFullAttempts[heartbeatSpan{w.key, attemptRecord{index, int(row.Attempt)}}] {
			o.Errorf("P11: %s (%s): %s\n%s", row.Id, w.key, why, jobLogText(events))
			return
		}
		for _, e := range events {
			if a := attemptOfEvent(e); e.GetWhat() == "completed" && a.index == index {
				o.addRecord(time.Unix(0, e.GetTime()-1), audit.Event{Type: audit.OutputStored, Job: id, Index: index,
					Attempt: roost.AttemptNumber(a.number)})
			}
		}
	}
}

// outputErrors describes what is wrong with the output of a completed task; "" if nothing
// is.
func (o *soakObserver) outputErrors(w *soakJob, row *wire.JobStatus) string {
	var want, got strings.Builder
	for i := range w.lines {
		fmt.Fprintf(&want, "line %d of %s %d\n", i, w.key, row.Index)
	}
	stream, err := o.clients[w.submitNode].Logs(o.Context(), &wire.LogsRequest{Id: row.Id})
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
	file := filepath.Join(w.user.home, fmt.Sprintf("out-%s.%d", w.key, row.Index))
	text, err := os.ReadFile(file)
	if line := fmt.Sprintf("%s %d %d\n", w.key, row.Index, row.Attempt); string(text) != line {
		return fmt.Sprintf("its file has %q, want %q (%v)", text, line, err)
	}
	return ""
}

// checkDependency checks that a dependent job began after the other one had completed.
func (o *soakObserver) checkDependency(w *soakJob) {
	if w.dependsOn == nil {
		return
	}
	last := time.Time{}
	for _, e := range o.jobEvents(o.clients[w.submitNode], w.dependsOn.id) {
		if e.GetWhat() == "completed" {
			last = time.Unix(0, e.GetTime())
		}
	}
	for _, l := range o.lives {
		if l.w == w && l.began.Before(last) {
			o.Errorf("%s began at %s, and the job that it waits for, %s, had completed at %s", l.task,
				clockText(l.began), w.dependsOn.id, clockText(last))
		}
	}
}

// countOutcomes adds up what happened.
func (o *soakObserver) countOutcomes(w *soakJob, rows []*wire.JobStatus, events []*wire.JobEvent) {
	o.totals.jobs++
	o.totals.tasks += len(rows)
	o.totals.held += len(w.holds)
	for _, row := range rows {
		if row.State == "removed" {
			o.totals.removed++
		}
	}
	for _, e := range events {
		switch e.GetWhat() {
		case "assigned":
			o.totals.attempts++
		case "lost", "vacated", "preempted", "unlaunched":
			o.totals.restarted++
		case "started":
			if strings.HasPrefix(e.GetText(), "from ") {
				o.totals.restored++
			}
		}
	}
}

// addSilence records that leases end while a host is unreachable and may be renewed
// afterwards. For a suspended host it records that.
func (o *soakObserver) addSilence(a hostSilence) {
	if a.wasAsleep && slices.Contains(append(slices.Clone(soakServers), o.desk.name), a.host) {
		o.addRecord(a.from, audit.Event{Type: audit.Slept, Node: a.host})
		o.addRecord(a.to, audit.Event{Type: audit.Woke, Node: a.host})
	}
	const slack = time.Second // what was in transit still arrives
	lease := shortLease + shortLease/100 + slack
	if a.wasAsleep || a.diskOnly || a.to.Sub(a.from) < lease {
		return
	}
	for _, l := range o.lives {
		if l.began.Before(a.from) && l.end.After(a.from) && (l.node == a.host || l.w.submitNode == a.host) {
			claim := audit.Event{Type: audit.Leased, Node: l.node, Claim: o.claims[l.heartbeatSpan],
				Until: a.from.Add(lease).Sub(o.began)}
			o.addRecord(a.from, claim)
			claim.Type, claim.Until = audit.Renewed, 1<<62
			o.addRecord(a.to, claim)
			claim.Type = audit.Freed
			o.addRecord(l.end.Add(1), claim)
		}
	}
}
