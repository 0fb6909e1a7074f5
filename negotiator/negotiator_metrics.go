package negotiator

import (
	"context"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// loopMetrics makes the snapshots of a negotiator's metrics, in its loop.
type loopMetrics struct {
	*metrics.Negotiator
	loop *decisionLoop
}

// refresh publishes a snapshot if somebody reads them.
func (m loopMetrics) refresh(now time.Time) {
	m.Snapshots.Refresh(now, func() metrics.NegotiatorSnapshot { return m.snapshot(now) })
}

// wakeLoop has the loop make a snapshot soon, unless it has too much to do.
func (m loopMetrics) wakeLoop() {
	select {
	case m.loop.inbox <- m.refresh:
	default:
	}
}

func (m loopMetrics) snapshot(now time.Time) (s metrics.NegotiatorSnapshot) {
	l := m.loop
	p, _ := l.leadership.currentState()
	s.IsLeader, s.Epoch, s.Machines = l.cell != nil, p.epoch, len(l.inventory.sorted)
	drained := map[string]bool{}
	if l.cell != nil {
		for _, d := range l.cell.drains {
			if d.From.IsZero() || !now.Before(d.From) {
				drained[d.Node] = true
			}
		}
	}
	for _, machine := range l.inventory.sorted {
		state, _ := machine.Ad.Str(roost.AttrState)
		switch {
		case drained[machine.Name] || drained[machine.Host]:
			state = "Drained"
		case machine.Total.CPU == 0:
			continue
		}
		metrics.AddAmounts(&s.Cores, state, machine.Total.CPU.Cores(), machine.Free.CPU.Cores())
		metrics.AddAmounts(&s.GPUs, state, float64(machine.Total.GPUs), float64(machine.Free.GPUs))
	}
	if l.cell != nil {
		m.addRequests(&s)
	}
	return s
}

// addRequests adds what only the leader knows.
func (m loopMetrics) addRequests(s *metrics.NegotiatorSnapshot) {
	c := m.loop.cell
	s.GuestCores, s.GuestRequests, s.GuestRefusals = map[string]float64{}, map[string]float64{}, map[string]float64{}
	for _, schedd := range c.schedds {
		if schedd.sendQueue == nil {
			continue
		}
		s.Schedds++
		addGuest(s, schedd)
		for _, r := range schedd.requests {
			if c.planCount > 0 && r.lastWaitedPlan == c.planCount {
				s.Unplaced[r.waitReason()]++
			}
		}
	}
	m.loop.ledgerStore.view(func(l *ledger.Ledger) {
		for _, o := range ledger.Secrets(l) {
			if o.Group == "" {
				s.Secrets[0]++
			} else {
				s.Secrets[1]++
			}
		}
	})
	s.GroupCores = map[string]float64{}
	for who, cores := range c.chargedCores {
		s.GroupCores[groupLabel(who.Group)] += cores
		if pool, ok := strings.CutPrefix(who.Group, fairshare.GuestGroupPrefix); ok {
			s.GuestCores[pool] += cores
		}
	}
}

// addGuest adds the session of a guest, if it is one.
func addGuest(s *metrics.NegotiatorSnapshot, of *scheddState) {
	pool := of.sendQueue.guestOf
	if pool == "" {
		return
	}
	s.GuestSchedds++
	s.GuestRequests[pool] += float64(len(of.requests))
	for _, r := range of.requests {
		if r.problem != "" {
			s.GuestRefusals[pool]++
		}
	}
}

// groupLabel returns the name of a group in the metrics. Users without a group are in one
// of that name.
func groupLabel(group string) string {
	if group == "" {
		return "none"
	}
	return strings.ToLower(group)
}

// waitReason returns the index of the reason why a request waits, as it was explained
// last.
func (r *scheddRequest) waitReason() int {
	if r.explainedAt.IsZero() {
		return metrics.UnexplainedWait
	}
	return r.explainedReason
}

// replicaSurveyPeriod is how often the replicas are asked while somebody reads metrics.
const replicaSurveyPeriod = 5 * time.Second

// surveyReplicas publishes how the replicas are until ctx ends, while somebody reads it.
func (m loopMetrics) surveyReplicas(ctx context.Context, r *replica.Replica) {
	m.Replicas.Run(ctx, replicaSurveyPeriod, func() metrics.ReplicaSnapshot {
		if !r.Status().IsLeader {
			return metrics.ReplicaSnapshot{}
		}
		return replicaSnapshot(r.SurveyIndexes(ctx))
	})
}

// maxEntriesBehind is how many entries a replica may lack and still lead at once.
const maxEntriesBehind = 1000

func replicaSnapshot(s replica.CellStatus) metrics.ReplicaSnapshot {
	out := metrics.ReplicaSnapshot{Behind: map[string]float64{}}
	for _, member := range s.Members {
		behind := float64(max(s.LastIndex, member.LastIndex) - member.LastIndex)
		if member.Reachable {
			out.Behind[member.Name] = behind
		}
		switch {
		case !member.IsVoter:
		case !member.Reachable:
			out.States[metrics.ReplicaSilent]++
		case behind > maxEntriesBehind:
			out.States[metrics.ReplicaBehind]++
		default:
			out.States[metrics.ReplicaCurrent]++
		}
	}
	return out
}
