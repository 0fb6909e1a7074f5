package negotiator

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/match"
)

// chooseExplained marks the requests to be explained in this cycle. Requests that a user
// asks about come first. Each other one is explained at most once in an interval, the
// longest waiting first, and a cycle explains only a limited number.
func (c *leaderState) chooseExplained(now time.Time, asking []*cellstate.PendingRequest,
	requests map[*match.Request]*scheddRequest) {
	var due []*scheddRequest
	c.explainAt = time.Time{}
	for _, a := range asking {
		r := requests[&a.Request]
		r.Explain = false
		r.explanationWanted = r.explanationWanted || r.Now && !r.waitRefused // told at once why it cannot
		if next := r.explainedAt.Add(explainInterval); r.explanationWanted || r.explainedAt.IsZero() ||
			!now.Before(next) {
			due = append(due, r)
		} else if c.explainAt.IsZero() || next.Before(c.explainAt) {
			c.explainAt = next
		}
	}
	slices.SortStableFunc(due, func(a, b *scheddRequest) int {
		return cmp.Or(compareTrueFirst(a.explanationWanted, b.explanationWanted), a.explainedAt.Compare(b.explainedAt),
			a.Key.Compare(b.Key))
	})
	asked, most := explanationsPerCycle(len(c.machines))
	for i, r := range due {
		if r.explanationWanted {
			r.Explain = i < asked
		} else {
			r.Explain = i < most
		}
		if !r.Explain {
			c.explainAt = now.Add(explainInterval / 10)
			break
		}
	}
}

// compareTrueFirst orders true before false.
func compareTrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// explanationsPerCycle returns how many requests one cycle explains: those that users ask
// about, and others. An explanation looks at all machines, which takes about half a
// microsecond for each. So all of them take a few hundredths of a second at most, ten
// times a second, however large the cell is and however many requests wait, and half of
// that if no user asks.
func explanationsPerCycle(machines int) (asked, most int) {
	asked = min(max(60_000/max(machines, 1), 1), maxExplainedPerCycle)
	return asked, max(asked/2, 1)
}

// requestExplanation records that a user asks why a request waits.
func (c *leaderState) requestExplanation(s *scheddState, id uint64) {
	if r := s.requests[id]; r != nil {
		r.explanationWanted = true
		c.changed = true
	}
}

// sendExplanation sends an explanation, if it differs from the last one or a user has
// asked.
func (c *leaderState) sendExplanation(now time.Time, r *scheddRequest, e *match.WaitExplanation) {
	r.explainedAt, r.explainedReason = now, metrics.UnexplainedWait
	if len(e.Reasons) > 0 {
		r.explainedReason = metrics.WaitReason(e.Reasons[0].Kind.String())
	}
	m := &wire.Explanation{Machines: uint32(e.Machines), Summary: e.Summary, Advice: e.Advice,
		Ahead: uint32(e.UnitsAhead), Waiting: uint32(e.UnitsWaiting), Conflicts: e.Conflicts, Nearest: e.Nearest,
		Brief: e.Brief, Higher: uint32(e.HigherAhead), Own: uint32(e.OwnAhead), Certainty: e.Certainty.String(),
		Basis: e.Basis}
	if !e.Start.IsZero() {
		m.Start = e.Start.Unix()
	}
	for _, reason := range e.Reasons {
		m.Reasons = append(m.Reasons, &wire.Explanation_Reason{Text: reason.Text, Machines: uint32(reason.Machines),
			Kind: reason.Kind.String()})
	}
	for _, n := range e.Conditions {
		m.Conditions = append(m.Conditions, &wire.Explanation_Condition{
			Text: n.Text, Means: n.Expanded, Own: n.OfMachine, Pass: uint32(n.Pass), Fail: uint32(n.Fail),
			Undefined: uint32(n.Undefined), Error: uint32(n.Error),
			Alone: uint32(n.OnlyObstacle),
		})
	}
	c.sendTo(r, m)
}

// sendProblem tells a schedd that a request is invalid.
func (c *leaderState) sendProblem(r *scheddRequest) {
	c.sendTo(r, &wire.Explanation{Summary: "it cannot be matched: " + r.problem})
}

func (c *leaderState) sendTo(r *scheddRequest, m *wire.Explanation) {
	if text := m.String(); text != r.sentExplanation || r.explanationWanted {
		r.sentExplanation, r.explanationWanted = text, false
		c.schedds[r.Key.Schedd].sendQueue.putMessage(
			&wire.ToSchedd{Of: &wire.ToSchedd_Unplaced{Unplaced: &wire.Unplaced{Request: r.Key.ID, Explanation: m}}},
		)
	}
}
