package hrm

import "time"

// CostStep is something that takes processor time.
type CostStep uint8

// The steps.
const (
	// the leader takes in what has come, makes a plan, signs the grants and writes the
	// entry
	PlanCycle      CostStep = iota
	CheckProposals          // the same where schedds have come with proposals
	ApplyEntry              // the leader applies a committed entry to the ledger
	SelfPlacement           // a schedd brings its copy of the cell up to date and looks for places
	stepCount
)

func (s CostStep) String() string { return [...]string{"decide", "arbitrate", "apply", "propose"}[s] }

// StepCosts makes a step and says how long it took. Things says afterwards how many it
// dealt with: messages and ads taken in, and containers given a place.
type StepCosts interface {
	Of(s CostStep, do func(), things func() int) time.Duration
}

// StatedCosts is costs as they are stated: so long for each step, and for each thing.
// Runs with them come out the same everywhere.
type StatedCosts [stepCount]struct{ Base, Each time.Duration }

// DefaultCosts are the costs of the steps in round numbers, as measured on one core of an
// AMD EPYC in November 2026. What conflicts cost the leader is not in them.
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

// MeasuredCosts is what the very calls take by a clock. It is kept.
type MeasuredCosts struct {
	Clock func() time.Duration // of the processor time of this thread
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

// ReplayedCosts is what another run has measured, in its order.
type ReplayedCosts struct{ Taken []time.Duration }

// Of implements [StepCosts]. A run that makes more steps than the other is not the same,
// as its digest will tell.
func (a *ReplayedCosts) Of(_ CostStep, do func(), _ func() int) time.Duration {
	do()
	if len(a.Taken) == 0 {
		return 0
	}
	took := a.Taken[0]
	a.Taken = a.Taken[1:]
	return took
}
