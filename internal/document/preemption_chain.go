package document

import (
	"time"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// PreemptionChain is who displaced a task, what that cost, and where it went on. It also
// lists whom the task displaced itself.
type PreemptionChain struct {
	Version   int            `json:"v"`
	ID        string         `json:"id"`
	Lost      float64        `json:"lost_seconds"` // by all evictions
	Evictions []Eviction     `json:"evictions"`    // oldest first
	Displaced []Displacement `json:"displaced"`    // oldest first
	Partial   bool           `json:"partial,omitempty"`
}

// PreemptionParty is a job that displaced another, or that was displaced.
type PreemptionParty struct {
	Job   string `json:"job,omitempty"` // empty: its node did not know it
	Owner string `json:"owner"`
	Band  string `json:"band"`
}

// Eviction is an attempt that was ended for others, or by its node, and what came of it.
type Eviction struct {
	Attempt   uint32           `json:"attempt"`
	Node      string           `json:"node,omitempty"`
	Time      string           `json:"time"`
	Cause     string           `json:"cause"` // preempted, vacated, lease, machine, restore or lost
	Reason    string           `json:"reason,omitempty"`
	Preemptor *PreemptionParty `json:"preemptor,omitempty"`
	Wall      float64          `json:"wall_seconds"`
	Lost      float64          `json:"lost_seconds"` // of Wall, since its newest checkpoint
	// where it went on; 0 and empty: it has not been placed again
	NextAttempt uint32 `json:"next_attempt,omitempty"`
	NextNode    string `json:"next_node,omitempty"`
	NextTime    string `json:"next_time,omitempty"` // empty: it has not been started there
}

// Displacement is a job that was displaced for an attempt of the task.
type Displacement struct {
	PreemptionParty
	Attempt uint32 `json:"attempt"` // for which it was displaced
	Time    string `json:"time"`    // when that attempt was started
}

// IsEmpty reports whether the task was never evicted and displaced nobody.
func (c PreemptionChain) IsEmpty() bool { return len(c.Evictions) == 0 && len(c.Displaced) == 0 }

// PartyOf returns the document of a party to a preemption; nil for none.
func PartyOf(p *scheddapi.PreemptionParty) *PreemptionParty {
	if p == nil {
		return nil
	}
	return &PreemptionParty{Job: p.GetJob(), Owner: p.GetOwner(), Band: p.GetBand()}
}

// PreemptionChainOf returns the chain of a task from its events and its timeline. The
// events are in their order, and the timeline says what each attempt lost. Evictions of
// the chunks of a gang behind the first are left out.
func PreemptionChainOf(t *CheckpointTimeline, events []*scheddapi.JobEvent) PreemptionChain {
	c := PreemptionChain{Version: Version, ID: t.ID, Evictions: []Eviction{}, Displaced: []Displacement{},
		Partial: t.Partial}
	nodes := map[uint32]string{}
	for _, e := range events {
		if e.GetAttempt() == 0 {
			continue
		}
		c.addDisplaced(e)
		if e.GetChunk() > 0 {
			continue
		}
		if e.GetNode() != "" {
			nodes[e.GetAttempt()] = e.GetNode()
		}
		if begin := startOf(e); begin != 0 || e.GetWhat() == "assigned" {
			c.addStart(e.GetAttempt(), nodes[e.GetAttempt()], begin)
		}
		if cause := evictionCause(e); cause != "" {
			c.addEviction(t, e, cause, nodes[e.GetAttempt()])
		}
	}
	return c
}

// evictionCause returns why an event ended an attempt that was to go on; empty if it is
// no such event.
func evictionCause(e *scheddapi.JobEvent) string {
	if e.GetWhat() == "lost" {
		return "lost"
	}
	if e.GetExit() == nil {
		return ""
	}
	switch cause := e.GetExit().GetCause(); cause {
	case scheddapi.Cause_CAUSE_PREEMPTED, scheddapi.Cause_CAUSE_VACATED, scheddapi.Cause_CAUSE_LEASE,
		scheddapi.Cause_CAUSE_MACHINE, scheddapi.Cause_CAUSE_RESTORE:
		return causeName(cause)
	}
	return ""
}

func (c *PreemptionChain) addEviction(t *CheckpointTimeline, e *scheddapi.JobEvent, cause, node string) {
	one := Eviction{Attempt: e.GetAttempt(), Node: node, Time: Timestamp(e.GetTime()), Cause: cause,
		Reason: e.GetText(), Preemptor: PartyOf(e.GetExit().GetPreemptor())}
	if x := e.GetExit(); x != nil {
		one.Reason = EndText(x)
	}
	if at, known := t.byNumber[e.GetAttempt()]; known {
		one.Wall, one.Lost = t.Attempts[at].Wall, t.Attempts[at].Lost
	}
	c.Lost += one.Lost
	c.Evictions = append(c.Evictions, one)
}

// addStart notes where the task went on after its evictions, and when. The time is 0 of
// an attempt that is only assigned. An attempt that never began, because its claim was
// refused or its checkpoint could not be restored, gives way to the one after it.
func (c *PreemptionChain) addStart(attempt uint32, node string, begin int64) {
	for i := range c.Evictions {
		e := &c.Evictions[i]
		if e.NextTime != "" || attempt <= e.Attempt || attempt < e.NextAttempt {
			continue
		}
		e.NextAttempt, e.NextNode = attempt, node
		if begin != 0 {
			e.NextTime = Timestamp(begin)
		}
	}
}

// startOf returns when an attempt began, in unix nanoseconds; 0 if the event does not say
// it. The end of a short attempt may come without a start before it.
func startOf(e *scheddapi.JobEvent) int64 {
	if e.GetWhat() == "started" {
		return e.GetTime()
	}
	if x := e.GetExit(); x.GetWall() > 0 && x.GetCause() != scheddapi.Cause_CAUSE_RESTORE {
		return e.GetTime() - x.GetWall()
	}
	return 0
}

func (c *PreemptionChain) addDisplaced(e *scheddapi.JobEvent) {
	for _, p := range e.GetDisplaced() {
		c.Displaced = append(c.Displaced, Displacement{*PartyOf(p), e.GetAttempt(), Timestamp(e.GetTime())})
	}
}

// CostText says what an eviction cost.
func (e Eviction) CostText() string {
	lost := time.Duration(e.Lost * float64(time.Second))
	switch {
	case lost < time.Second/2:
		return "nothing"
	case e.Lost < e.Wall-0.5:
		return SpanText(lost) + " since its last checkpoint"
	}
	return SpanText(lost) + ", all that it ran"
}

// NextText says where the task went on after an eviction.
func (e Eviction) NextText() string {
	switch {
	case e.NextAttempt == 0:
		return "not yet"
	case e.NextTime == "":
		return "on " + e.NextNode + ", not started there yet"
	}
	return "on " + e.NextNode + " at " + e.NextTime
}
