package hrm

import "time"

// CostStep is a kind of step that takes processor time.
type CostStep uint8

// The steps.
const (
	// the leader handles its inbox, plans, signs the grants and writes the entry
	PlanCycle      CostStep = iota
	CheckProposals          // the same when schedds have proposed places
	ApplyEntry              // the leader applies a committed entry to the ledger
	SelfPlacement           // a schedd updates its copy of the cell and looks for places
	stepCount
)

func (s CostStep) String() string { return [...]string{"decide", "arbitrate", "apply", "propose"}[s] }

// StepCosts executes a step and returns how long it took. things returns afterwards how
// many items the step handled: messages and ads read, and containers placed.
type StepCosts interface {
	Of(s CostStep, do func(), things func() int) time.Duration
}

// StatedCosts is a fixed cost for each step and item. Runs with it are reproducible
// everywhere.
type StatedCosts [stepCount]struct{ Base, Each time.Duration }

// DefaultCosts returns rounded costs as measured on one core of an AMD EPYC in November
// 2026. They do not include what conflicts cost the leader.
func DefaultCosts() *StatedCosts {
	return &StatedCosts{
		PlanCycle:      {Base: 10 * time.Microsecond, Each: 10 * time.Microsecond},
		CheckProposals: {Base: 10 * time.Microsecond, Each: 4 * time.Microsecond},
		ApplyEntry:     {Base: 5 * time.Microsecond, Each: 200 * time.Nanosecond},
		SelfPlacement:  {Base: 5 * time.Microsecond, Each: 9 * time.Microsecond},
	}
}

// Of implements [StepCosts].
func (m *StatedCosts) Of(s CostStep, do func(), things func() int) time.Duration {
	do()
	return m[s].Base + time.Duration(things())*m[s].Each
}

// MeasuredCosts measures the processor time of the calls, and records it.
type MeasuredCosts struct {
	Clock func() time.Duration // processor time of this thread
	Taken []time.Duration
}

// Of implements [StepCosts].
func (m *MeasuredCosts) Of(_ CostStep, do func(), _ func() int) time.Duration {
	from := m.Clock()
	do()
	took := m.Clock() - from
	m.Taken = append(m.Taken, took)
	return took
}

// ReplayedCosts returns the costs that another run has measured, in order.
type ReplayedCosts struct{ Taken []time.Duration }

// Of implements [StepCosts]. A run with more steps than the recorded one is another run,
// as its digest shows.
func (a *ReplayedCosts) Of(_ CostStep, do func(), _ func() int) time.Duration {
	do()
	if len(a.Taken) == 0 {
		return 0
	}
	took := a.Taken[0]
	a.Taken = a.Taken[1:]
	return took
}
