package live

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
)

// mostFit is how many of a job are tried, tasks or gangs' tasks.
const mostFit = 1_000_000

// Room is how many tasks of a job start at once in a cell.
type Room struct {
	Tasks       int                // that find room
	Preempting  int                // beyond that, if others make room
	Evicted     int                // claims that have to for it
	Machines    []OnMachine        // where they go, most first
	Explanation *match.Explanation // why no more
	Digest      uint64
}

// OnMachine is how many tasks go to a machine.
type OnMachine struct {
	Machine    string
	Tasks      int // that find room
	Preempting int // beyond that, if others make room
}

// Where is what of a cell is there for a job.
type Where uint8

// The cells.
const (
	Now    Where = iota // what is free
	Behind              // what is left when all that waits and comes before it has started
	Empty               // all machines, with nothing on them
)

// Fit says how many tasks of a job would start now, how often it was submitted: where there are several kinds of tasks in it, of the first.
func Fit(of *picture.Checkpoint, job *picture.Ask, where Where) (*Room, error) {
	p, err := NewPlay(of, Asked)
	if err != nil {
		return nil, err
	}
	a, err := enter(of, job)
	if err != nil {
		return nil, err
	}
	a.Lead, a.Own, a.Explain = 0, mostFit, true
	if a.Gang > 1 {
		a.Own = mostFit / a.Gang * a.Gang
	}
	if where != Behind {
		for _, other := range p.Asks {
			other.Own = 0
		}
	}
	if where == Empty {
		p.vacate()
	}
	p.Asks = append(p.Asks, a)
	p.byKey[a.Key] = a
	if err := p.charge(); err != nil {
		return nil, err
	}
	s := p.Plan()
	if len(s.Requests) == 0 || !slices.Contains(s.Requests, &a.Request) {
		policy := picture.NewPolicy(p.Ledger)
		return nil, fmt.Errorf("%w: %s", roost.Conflict, policy.Stopped(a.Queue))
	}
	plan := p.matcher.Plan(s)
	room := &Room{}
	on := map[string]*OnMachine{}
	for _, g := range plan.Grants {
		p.note('g', g.Machine.Name, uint64(g.Units))
		if g.Request != &a.Request || g.Waiting {
			continue
		}
		there := on[g.Machine.Name]
		if there == nil {
			there = &OnMachine{Machine: g.Machine.Name}
			on[g.Machine.Name] = there
		}
		if len(g.Victims) > 0 {
			room.Preempting += g.Units
			room.Evicted += len(g.Victims)
			there.Preempting += g.Units
			continue
		}
		room.Tasks += g.Units
		there.Tasks += g.Units
	}
	for _, m := range p.Machines {
		if there := on[m.Name]; there != nil {
			room.Machines = append(room.Machines, *there)
		}
	}
	slices.SortStableFunc(room.Machines, func(x, y OnMachine) int { return y.Tasks - x.Tasks })
	for _, u := range plan.Unplaced {
		if u.Request == &a.Request {
			room.Explanation = u.Explanation
		}
	}
	room.Digest = p.Digest()
	return room, nil
}

// vacate takes everybody off the machines.
func (p *Play) vacate() {
	for i, m := range p.Machines {
		p.Machines[i] = m.Vacated()
	}
	for _, a := range p.Asks {
		a.Claims, a.Counts = 0, 0
	}
	p.Holds, p.Licences, p.Ran = map[share.Submitter]roost.Resources{}, map[string]int{}, nil
}
