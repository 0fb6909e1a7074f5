package startd

import (
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/wire"
)

// What a hostile startd says beside what an honest one does. An ordinary build has none
// of it: see package attack.

// attackedNode is the node whose name and attempts it takes.
const attackedNode = "exec1"

// sendHostileSession says what a hostile startd says at the beginning of a session.
func sendHostileSession(s *scheddSession) {
	if attack.Is(attack.ForeignAttempts) {
		for job := range uint64(10) {
			sendHostileReports(s, &wire.AttemptRef{Job: job + 1, Attempt: 1})
		}
		for claim := range uint64(100) {
			s.queue.Put(&wire.FromStartd{Of: &wire.FromStartd_Lost{Lost: &wire.ClaimLost{Claim: claim,
				Reason: "attacked"}}})
		}
		s.queue.Put(&wire.FromStartd{Of: &wire.FromStartd_Welcome{Welcome: &wire.SessionWelcome{Node: attackedNode}}})
		s.queue.Put(&wire.FromStartd{Of: &wire.FromStartd_Renewed{Renewed: &wire.LeasesRenewed{Word: 1 << 40}}})
		s.queue.Put(&wire.FromStartd{})
	}
	if attack.Is(attack.OversizedMessages) {
		s.queue.Put(&wire.FromStartd{Of: &wire.FromStartd_Exited{
			Exited: &wire.Exited{Attempt: &wire.AttemptRef{Job: 1, Attempt: 1}, Stdout: make([]byte, 65<<20)},
		}})
	}
}

// sendHostileReports says all that can be said of an attempt.
func sendHostileReports(s *scheddSession, a *wire.AttemptRef) {
	image := &wire.Image{Sequence: 1, Attempt: a.GetAttempt(), Size: 1 << 40, Server: "attacked:1"}
	for _, m := range []*wire.FromStartd{
		{Of: &wire.FromStartd_Started{Started: &wire.Started{Attempt: a, Pid: 1}}},
		{Of: &wire.FromStartd_Input{Input: &wire.InputReady{Attempt: a, Scratch: "/"}}},
		{Of: &wire.FromStartd_Taken{Taken: &wire.CheckpointTaken{Attempt: a, Image: image}}},
		{Of: &wire.FromStartd_Suspended{Suspended: &wire.Suspended{Attempt: a, Frozen: true, Reason: "attacked"}}},
		{Of: &wire.FromStartd_Health{Health: &wire.TaskHealth{Attempt: a, State: wire.HealthState_HEALTH_STATE_FAILING,
			Check: "attacked", Detail: "attacked"}}},
		{Of: &wire.FromStartd_Metric{Metric: &wire.TaskMetric{Attempt: a, Value: 1e300}}},
		{Of: &wire.FromStartd_Container{Container: &wire.ContainerProgress{Attempt: a, Bytes: -1, Total: 1 << 62,
			Waits: "attacked"}}},
		{Of: &wire.FromStartd_Usage{Usage: &wire.UsageReport{Attempts: []*wire.AttemptUsage{{Attempt: a,
			Usage: &wire.TaskUsage{Memory: 1 << 50, PeakMemory: 1 << 50}}}}}},
		{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{Attempt: a,
			Status: &wire.ExitStatus{Cause: wire.Cause_CAUSE_EXITED, Code: 66}, Stdout: []byte("attacked"),
			StdoutSize: 8}}},
	} {
		s.queue.Put(m)
	}
}

// sendHostileEnds tells the end of an attempt again, as another one, and then that of the
// next attempts.
func (l *machineLoop) sendHostileEnds(schedd string, x *wire.Exited) {
	for next := range uint32(3) {
		other := proto.CloneOf(x)
		other.Attempt.Attempt += next
		other.Status = &wire.ExitStatus{Cause: wire.Cause_CAUSE_EXITED, Code: 66}
		l.sendTo(schedd, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: other}})
	}
}
