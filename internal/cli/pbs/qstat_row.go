package pbs

import (
	"cmp"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// pbsRow is a job in a table.
func (l *pbsList) pbsRow(s *scheddapi.JobStatus) *qstat.JobRow {
	r := &qstat.JobRow{
		ID: pbsframe.IDText(s.GetId(), s.GetArray()), Name: replaceBlanks(s.GetName()),
		User:  qstat.VisibleText(s.GetOwner()),
		Queue: qstat.VisibleText(pbsQueue(s)), State: l.stateLetter(s), CPU: usedTimeText(s),
	}
	if !l.needsDetails() {
		return r
	}
	j := newPBSJob(l.Invocation, s)
	for _, a := range append(j.resources(), j.used()...) {
		switch a.Name + "." + a.Resource {
		case "Resource_List.walltime":
			r.RequestedWall = a.Value
		case "Resource_List.cput":
			r.RequestedCPU = a.Value
		case "Resource_List.mem":
			r.Memory = a.Value
		case "Resource_List.ncpus":
			r.Tasks = a.Value
		case "Resource_List.nodect":
			r.Nodes = a.Value
		case "resources_used.walltime":
			r.Wall = a.Value
		}
	}
	if r.Host, r.Comment = execHost(s), j.comment(); l.torqueAttributes() {
		r.Host = torqueHosts(r.Host)
	}
	r.Session = j.session()
	r.Started, r.Estimate = s.GetStarted()/int64(time.Second), s.GetStart()
	if s.GetArray() && !isSubjob(s) {
		r.Subjobs, r.Expired = int(s.GetTasks()), document.FinishedCount(s)
	}
	return r
}

// replaceBlanks keeps clients that split lines at blanks from losing their place.
func replaceBlanks(name string) string {
	return strings.ReplaceAll(qstat.VisibleText(nameOrNone(name)), " ", "_")
}

// nameOrNone is the name of a job; PBS knows none without.
func nameOrNone(name string) string {
	if name == "" {
		return "-"
	}
	return name
}

// usedTimeText is the CPU time that was used, "0" before there is any.
func usedTimeText(s *scheddapi.JobStatus) string {
	e, u := s.GetExit(), s.GetUsage()
	cpu := time.Duration(e.GetUserCpu() + e.GetSystemCpu())
	if e == nil {
		cpu = time.Duration(u.GetUserCpu() + u.GetSystemCpu())
	}
	if s.GetStarted() == 0 || s.GetArray() && !isSubjob(s) {
		return "0"
	}
	return pbsframe.ClockText(cpu)
}

// pbsState is PBS's letter for the state of a job. An array that has begun is B, a job
// that waits for its start time is W, and a task that has ended is X while its array goes
// on.
func pbsState(s *scheddapi.JobStatus) string {
	switch {
	case s.GetArray() && s.GetState() == "" && !document.IsFinal(s) &&
		(s.GetStarted() != 0 || document.FinishedCount(s) > 0):
		return "B"
	case isSubjob(s) && document.IsFinal(s) && document.FinishedCount(s) < int(s.GetTasks()):
		return "X"
	}
	name := document.StateOf(s)
	if name == "failed" {
		return "F"
	}
	state, err := roost.ParseTaskState(name)
	switch {
	case err != nil:
		return "Q"
	case state == roost.Suspended && strings.HasPrefix(s.GetSuspendedBy(), "owner"):
		return "U" // the workstation is in use
	case state == roost.Blocked && s.GetTimed():
		return "W"
	}
	return string(state.PBSLetter())
}

// pbsQueue is the queue of a job in PBS's sense, where reservations are queues.
func pbsQueue(s *scheddapi.JobStatus) string {
	return cmp.Or(s.GetReservation(), s.GetQueue(), roost.DefaultQueueName)
}
