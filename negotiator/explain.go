package negotiator

import (
	"cmp"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
)

// chooseExplained marks the requests whose turn it is to be explained: those first that somebody asks about, then each at most once in a while, and only
// so many in one cycle, those first that have waited longest for it.
func (c *cell) chooseExplained(now time.Time, asking []*picture.Ask, requests map[*match.Request]*request) {
	var due []*request
	c.explain = time.Time{}
	for _, a := range asking {
		r := requests[&a.Request]
		r.Explain = false
		r.asked = r.asked || r.Now && !r.refusal // it is told at once why it cannot
		if next := r.explained.Add(explainEvery); r.asked || r.explained.IsZero() || !now.Before(next) {
			due = append(due, r)
		} else if c.explain.IsZero() || next.Before(c.explain) {
			c.explain = next
		}
	}
	slices.SortStableFunc(due, func(a, b *request) int {
		return cmp.Or(first(a.asked, b.asked), a.explained.Compare(b.explained), a.Key.Compare(b.Key))
	})
	asked, most := explainedAtOnce(len(c.machines))
	for i, r := range due {
		if r.asked {
			r.Explain = i < asked
		} else {
			r.Explain = i < most
		}
		if !r.Explain {
			c.explain = now.Add(explainEvery / 10)
			break
		}
	}
}

// first orders true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// explainedAtOnce is how many requests one cycle explains: of those that somebody asks about, and of others where nobody does. Each takes a look at all
// machines, about half a microsecond for one: so it is a few hundredths of a second at most, ten times a second, however large the cell is and
// however many wait, and half of that where nobody asks.
func explainedAtOnce(machines int) (asked, most int) {
	asked = min(max(60_000/max(machines, 1), 1), explainAtOnce)
	return asked, max(asked/2, 1)
}

// ask notes that somebody wants to know why a request waits.
func (c *cell) ask(s *schedd, id uint64) {
	if r := s.requests[id]; r != nil {
		r.asked = true
		c.changed = true
	}
}

// tell sends an explanation, if it says something else than the last one, or somebody has asked.
func (c *cell) tell(now time.Time, r *request, e *match.Explanation) {
	r.explained = now
	m := &wire.Explanation{Machines: uint32(e.Machines), Summary: e.Summary, Advice: e.Advice, Ahead: uint32(e.Ahead), Waiting: uint32(e.Waiting), Conflicts: e.Conflicts, Nearest: e.Nearest,
		Brief: e.Brief, Higher: uint32(e.Higher), Own: uint32(e.Own), Certainty: e.Certainty.String(), Basis: e.Basis}
	if !e.Start.IsZero() {
		m.Start = e.Start.Unix()
	}
	for _, reason := range e.Reasons {
		m.Reasons = append(m.Reasons, &wire.Explanation_Reason{Text: reason.Text, Machines: uint32(reason.Machines), Kind: reason.Kind.String()})
	}
	for _, n := range e.Conditions {
		m.Conditions = append(m.Conditions, &wire.Explanation_Condition{
			Text: n.Text, Means: n.Means, Own: n.Own, Pass: uint32(n.Pass), Fail: uint32(n.Fail), Undefined: uint32(n.Undefined), Error: uint32(n.Error),
			Alone: uint32(n.Alone),
		})
	}
	c.send(r, m)
}

// complain tells a schedd of a request that makes no sense.
func (c *cell) complain(r *request) {
	c.send(r, &wire.Explanation{Summary: "it cannot be matched: " + r.problem})
}

func (c *cell) send(r *request, m *wire.Explanation) {
	if text := m.String(); text != r.told || r.asked {
		r.told, r.asked = text, false
		c.schedds[r.Key.Schedd].mail.put(&wire.ToSchedd{Of: &wire.ToSchedd_Unplaced{Unplaced: &wire.Unplaced{Request: r.Key.ID, Explanation: m}}})
	}
}
