package cli

import (
	"cmp"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/qstat"
	"github.com/roost-batch/roost/internal/wire"
)

// pbsRow is a job in a table.
func (l *pbsList) pbsRow(s *wire.JobStatus) *qstat.Row {
	r := &qstat.Row{
		ID: pbsName(s.GetId(), s.GetArray()), Name: oneWord(s.GetName()), User: qstat.Visible(s.GetOwner()), Queue: qstat.Visible(pbsQueue(s)), State: l.letter(s), CPU: timeUse(s),
	}
	if !l.detailed() {
		return r
	}
	j := l.pbsJob(s)
	for _, a := range append(j.resources(), j.used()...) {
		switch a.Name + "." + a.Resource {
		case "Resource_List.walltime":
			r.WantWall = a.Value
		case "Resource_List.cput":
			r.WantCPU = a.Value
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
	if r.Host, r.Comment = execHost(s), j.comment(); l.torque() {
		r.Host = torqueHosts(r.Host)
	}
	r.Session = j.session()
	r.Started, r.Estimate = s.GetStarted()/int64(time.Second), s.GetStart()
	if s.GetArray() && !isSubjob(s) {
		r.Subjobs, r.Expired = int(s.GetTasks()), finished(s)
	}
	return r
}

// oneWord keeps clients that split lines at blanks from losing their place.
func oneWord(name string) string {
	return strings.ReplaceAll(qstat.Visible(named(name)), " ", "_")
}

// named is the name of a job; PBS knows none without.
func named(name string) string {
	if name == "" {
		return "-"
	}
	return name
}

// timeUse is the CPU time that was used, "0" before there is any.
func timeUse(s *wire.JobStatus) string {
	e, u := s.GetExit(), s.GetUsage()
	cpu := time.Duration(e.GetUserCpu() + e.GetSystemCpu())
	if e == nil {
		cpu = time.Duration(u.GetUserCpu() + u.GetSystemCpu())
	}
	if s.GetStarted() == 0 || s.GetArray() && !isSubjob(s) {
		return "0"
	}
	return clock(cpu)
}

// pbsState is PBS's letter: an array that has begun is B, a job that waits for its start time is W, and a task of an array that has ended is X while
// the array goes on.
func pbsState(s *wire.JobStatus) string {
	switch {
	case s.GetArray() && s.GetState() == "" && !final(s) && (s.GetStarted() != 0 || finished(s) > 0):
		return "B"
	case isSubjob(s) && final(s) && finished(s) < int(s.GetTasks()):
		return "X"
	}
	name := stateOf(s)
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
func pbsQueue(s *wire.JobStatus) string {
	return cmp.Or(s.GetReservation(), s.GetQueue(), roost.UsualQueue)
}
