package hrm

import "time"

// Step is something that takes processor time.
type Step uint8

// The steps.
const (
	Decide    Step = iota // the leader takes in what has come, makes a plan, signs the grants and writes the entry
	Arbitrate             // the same where schedds have come with proposals
	Apply                 // the leader applies a committed entry to the ledger
	Propose               // a schedd brings its copy of the cell up to date and looks for places
	steps
)

func (s Step) String() string { return [...]string{"decide", "arbitrate", "apply", "propose"}[s] }

// Costs makes a step and says how long it took. Things says afterwards how many it dealt with: messages and ads taken in, and containers given a place.
type Costs interface {
	Of(s Step, do func(), things func() int) time.Duration
}

// Model is costs as they are stated: so long for each step, and for each thing. Runs with them come out the same everywhere.
type Model [steps]struct{ Base, Each time.Duration }

// Stated are the costs of the steps in round numbers, as measured on one core of an AMD EPYC in November 2026. What conflicts cost the leader is not in them.
func Stated() *Model {
	return &Model{
		Decide:    {Base: 10 * time.Microsecond, Each: 10 * time.Microsecond},
		Arbitrate: {Base: 10 * time.Microsecond, Each: 4 * time.Microsecond},
		Apply:     {Base: 5 * time.Microsecond, Each: 200 * time.Nanosecond},
		Propose:   {Base: 5 * time.Microsecond, Each: 9 * time.Microsecond},
	}
}

// Of implements [Costs].
func (m *Model) Of(s Step, do func(), things func() int) time.Duration {
	do()
	return m[s].Base + time.Duration(things())*m[s].Each
}

// Measured is what the very calls take by a clock. It is kept.
type Measured struct {
	Clock func() time.Duration // of the processor time of this thread
	Taken []time.Duration
}

// Of implements [Costs].
func (m *Measured) Of(_ Step, do func(), _ func() int) time.Duration {
	from := m.Clock()
	do()
	took := m.Clock() - from
	m.Taken = append(m.Taken, took)
	return took
}

// Again is what another run has measured, in its order.
type Again struct{ Taken []time.Duration }

// Of implements [Costs]. A run that makes more steps than the other is not the same, as its digest will tell.
func (a *Again) Of(_ Step, do func(), _ func() int) time.Duration {
	do()
	if len(a.Taken) == 0 {
		return 0
	}
	took := a.Taken[0]
	a.Taken = a.Taken[1:]
	return took
}
