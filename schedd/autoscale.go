package schedd

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/api"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/queue"
)

// noteUse takes in what attempts use, where their services are scaled by that or their
// users have conditions. A node
// speaks of its own attempts only.
func noteUse(s *Schedd, p *nodeConn, report *wire.UsageReport) {
	for _, u := range report.GetAttempts() {
		a, m := codec.AttemptID(s.node.Name, u.GetAttempt()), u.GetUsage()
		if m == nil || s.queue.NodeOf(a) != p.Name {
			continue
		}
		m = api.SanitizeUsage(m)
		s.queue.NotePolicyUse(a, time.Duration(m.GetUserCpu()+m.GetSystemCpu()), roost.Bytes(m.GetMemory()))
		s.queue.NoteUse(s.clock.now, a, time.Duration(m.GetUserCpu()+m.GetSystemCpu()), time.Duration(m.GetWall()),
			roost.Bytes(m.GetMemory()))
	}
}

// noteMetric takes in the metric of an attempt, which its service is scaled by.
func noteMetric(s *Schedd, p *nodeConn, m *wire.TaskMetric) {
	a := codec.AttemptID(s.node.Name, m.GetAttempt())
	switch {
	case s.queue.NodeOf(a) != p.Name:
	case m.GetProblem() != "":
		s.queue.NoteMetricProblem(a, api.SanitizeSentence(m.GetProblem()))
	default:
		s.queue.NoteMetric(s.clock.now, a, m.GetValue())
	}
}

// scaleServices gives services another number of tasks, as their load asks for. Where
// administrators have set quotas the leader is asked first whether a service may grow;
// while there is no leader nothing grows beyond what it has.
func scaleServices(s *Schedd, now time.Time) {
	for _, e := range s.queue.DecideScaling(now) {
		switch {
		case !e.Submission.DeferredAdmission:
			s.commitEvents(e)
		case !s.leader.IsConnected():
			s.commitEvents(s.queue.QuotaAnswered(now, e, "no negotiator can be asked")...)
		case s.leader.ChecksQuotas():
			askQuota(s, e)
		default:
			e.Submission.DeferredAdmission = false
			s.commitEvents(e)
		}
	}
}

// askQuota asks the leader whether the quota of a service allows a growth.
func askQuota(s *Schedd, e queue.JobEvent) {
	s.queue.AskQuota(&e)
	finish, answer := s.leader.RequestQuota(s.queue.AlterationDemand(e))
	go func() {
		err := negotiation.AwaitAdmission(s.daemonContext, answer)
		s.postEvent(s.daemonContext, loopCall(func(now time.Time) {
			refusal := ""
			if err != nil {
				refusal = err.Error()
				if s.metrics.IsOn() {
					s.metrics.countScaling(e.Type == queue.Revised, queue.ScaleRefused)
				}
			}
			s.commitEvents(s.queue.QuotaAnswered(now, e, refusal)...)
			finish()
		}))
	}()
}
