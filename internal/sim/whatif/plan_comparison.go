package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// CellChange is a change of a cell.
type CellChange struct {
	AdminCommands []ledger.AdminCommand // in order
	Remove        []string              // machines to remove with everything that runs there
	Add           []MachineAddition
	Alter         []RequestChange
}

// MachineAddition is a number of empty machines that are like an existing one.
type MachineAddition struct {
	Like  string
	Count int
}

// maxAdded bounds the number of added machines.
const maxAdded = 100_000

// PlanComparison compares a cell with a changed copy of it.
type PlanComparison struct {
	Before, After Trajectory
	Evictions     []ClaimEviction // evictions that the change causes at once, beyond those without it
	StartChanges  []StartChange   // requests that start earlier or later, the largest difference first
	Drained       []DrainResult   // nodes that the change drains
	Quotas        []QuotaCheck    // quotas that the change sets, with the demand on them
	// jobs that quotas had refused and that could be released after the change
	AdmittedJobs []string
	Until        time.Time // end of both simulations
	Digest       uint64    // digest of both simulations
}

// Trajectory is the course of a simulation.
type Trajectory struct {
	Waiting       int          // tasks that wait after those that start at once
	Started       int          // tasks that started by the end
	StartedInHour int          // tasks that started within an hour
	Evicted       int          // number of evicted claims, at once and later
	MeanWait      float64      // mean wait of all tasks in seconds from now on; unstarted ones count to the end
	LastStart     time.Time    // start of the last task; zero: not by the end
	EndUnknown    int          // tasks, running or started later, whose end is unknown
	Samples       []CellSample // one after each change, in order
}

// StartChange is a request that starts at another time.
type StartChange struct {
	Key           match.RequestKey
	Submitter     fairshare.Submitter
	Jobs          []string
	Tasks         int
	Before, After time.Time // start of its last task; zero: not by the end
}

// DrainResult is the outcome for a drained node.
type DrainResult struct {
	Node       string
	Running    int       // running tasks
	EndUnknown int       // running tasks whose end is unknown
	LastEnd    time.Time // end of the last other task
}

// QuotaCheck is a quota with the demand of the jobs that are not over.
type QuotaCheck struct {
	Subject  string
	Band     string
	Demand   string // demand in the bounded dimensions, as text
	Limit    string // limit as text; "": unlimited
	Exceeded bool   // new jobs are refused until the demand falls
}

// CompareChange simulates a cell with and without a change. length is the simulated time.
// The error says why the change is not possible.
func CompareChange(of *cellstate.CellCheckpoint, change CellChange, lengths RuntimeModel,
	length time.Duration) (*PlanComparison, error) {
	before, err := NewSimulation(of, lengths)
	if err != nil {
		return nil, err
	}
	after, err := change.startSimulation(of, lengths)
	if err != nil {
		return nil, err
	}
	until := before.now + int64(length/time.Second)
	c := &PlanComparison{Until: time.Unix(until, 0), Drained: change.drainResults(before),
		Quotas: change.quotaChecks(of, after.Ledger)}
	c.AdmittedJobs = slices.DeleteFunc(admittableJobs(of, after.Ledger), func(id string) bool {
		return slices.Contains(admittableJobs(of, before.Ledger), id)
	})
	gone := len(after.Evictions)
	firstBefore, err := c.Before.runSimulation(before, until)
	if err != nil {
		return nil, err
	}
	firstAfter, err := c.After.runSimulation(after, until)
	if err != nil {
		return nil, err
	}
	c.Evictions = slices.Clone(after.Evictions[:max(firstAfter, gone)])
	for _, e := range before.Evictions[:firstBefore] {
		c.Evictions = slices.DeleteFunc(c.Evictions, func(o ClaimEviction) bool {
			return o.Machine == e.Machine && o.Claim.ID == e.Claim.ID
		})
	}
	c.compareStarts(before, after)
	c.Digest = before.Digest()*31 + after.Digest()
	return c, nil
}

// startSimulation starts a simulation of the changed cell.
func (c *CellChange) startSimulation(of *cellstate.CellCheckpoint, lengths RuntimeModel) (*Simulation, error) {
	changed, err := cloneCell(of)
	if err != nil {
		return nil, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(changed.Machines, func(m *match.Machine) bool { return m.Name == name })
	}
	for _, add := range c.Add {
		if err := addMachines(changed, add); err != nil {
			return nil, err
		}
	}
	own := ledgerDrains(changed.Ledger)
	for _, command := range c.AdminCommands {
		command.Trusted = true
		for _, node := range changed.Ledger.Nodes(&command) {
			if !has(node) {
				return nil, fmt.Errorf("%s: %w: there is no node of that name", node, roost.NotFound)
			}
		}
		if err := applyCommand(changed, command); err != nil {
			return nil, err
		}
	}
	changed.Drains = slices.DeleteFunc(changed.Drains, func(d match.MachineDrain) bool {
		return slices.Contains(own, d.Node)
	})
	for _, d := range cellstate.NewPolicy(changed.Ledger).Drains {
		if has(d.Node) {
			changed.Drains = append(changed.Drains, d)
		}
	}
	slices.SortFunc(changed.Drains, func(a, b match.MachineDrain) int { return strings.Compare(a.Node, b.Node) })
	for _, name := range c.Remove {
		if !has(name) {
			return nil, fmt.Errorf("%s: %w: there is no node of that name", name, roost.NotFound)
		}
	}
	for i := range c.Alter {
		if err := c.Alter[i].apply(changed); err != nil {
			return nil, err
		}
	}
	p, err := NewSimulation(changed, lengths)
	if err != nil {
		return nil, err
	}
	p.removeMachines(c.Remove)
	return p, nil
}

func ledgerDrains(l *ledger.Ledger) (nodes []string) {
	for _, d := range l.Drains() {
		nodes = append(nodes, d.Node)
	}
	return nodes
}

// applyCommand applies an admin command to the cell's ledger, as the leader would.
func applyCommand(c *cellstate.CellCheckpoint, command ledger.AdminCommand) error {
	command.Trusted = true
	epoch, _ := c.Ledger.Epoch()
	result := c.Ledger.Apply(&ledger.LogEntry{At: c.Now.UnixNano(), Epoch: epoch,
		Commands: []ledger.AdminCommand{command}})
	if result.Err != nil {
		return result.Err
	}
	return result.Commands[0]
}

// addMachines adds machines to a cell.
func addMachines(c *cellstate.CellCheckpoint, add MachineAddition) error {
	i := slices.IndexFunc(c.Machines, func(m *match.Machine) bool { return m.Name == add.Like })
	if i < 0 {
		return fmt.Errorf("%s: %w: there is no node of that name to be like", add.Like, roost.NotFound)
	}
	if add.Count < 1 || add.Count > maxAdded {
		return fmt.Errorf("%d nodes like %s: %w: 1 to %d can be added", add.Count, add.Like, roost.Invalid, maxAdded)
	}
	like := c.Machines[i].Emptied()
	for n := range add.Count {
		name := fmt.Sprintf("%s+%d", add.Like, n+1)
		ad := like.Ad.Copy()
		for _, attr := range []string{roost.AttrName, "Machine"} {
			if _, ok := ad.Lookup(attr); ok {
				ad.SetString(attr, name)
			}
		}
		c.Machines = append(c.Machines, match.NewMachine(name, like.Started, like.Sequence, ad))
	}
	slices.SortFunc(c.Machines, func(a, b *match.Machine) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// removeMachines removes machines. Their tasks wait again.
func (p *Simulation) removeMachines(names []string) {
	for _, name := range names {
		m := p.Machines[p.machineByName[name]]
		for i := range m.Claims {
			p.removeEvicted(name, &m.Claims[i], nil)
		}
		p.total = p.total.Sub(m.Total)
	}
	p.Machines = slices.DeleteFunc(p.Machines, func(m *match.Machine) bool { return slices.Contains(names, m.Name) })
	for i, m := range p.Machines {
		p.machineByName[m.Name] = i
	}
}

// runSimulation runs to the end, and returns the number of evictions that happen at once.
func (c *Trajectory) runSimulation(p *Simulation, until int64) (first int, err error) {
	waited, now := p.WaitingUnits(), p.now
	see := func() bool {
		c.addSample(p, now)
		return false
	}
	if err := p.Run(now, see); err != nil {
		return 0, err
	}
	first, c.Waiting = len(p.Evictions), p.WaitingUnits()
	if err := p.Run(until, see); err != nil {
		return 0, err
	}
	c.addSample(p, now)
	c.EndUnknown = p.EndUnknown
	sum := 0.0
	for _, s := range p.Starts {
		sum += float64(s.Units) * float64(s.At-now)
		c.Started += s.Units
		if s.At-now <= 3600 {
			c.StartedInHour += s.Units
		}
	}
	rest := p.WaitingUnits()
	sum += float64(rest) * float64(until-now)
	if n := max(waited, c.Started+rest); n > 0 {
		c.MeanWait = sum / float64(n)
	}
	if c.Evicted = len(p.Evictions); rest == 0 && len(p.Starts) > 0 {
		c.LastStart = time.Unix(p.Starts[len(p.Starts)-1].At, 0)
	}
	return first, nil
}

// compareStarts computes which requests start at another time.
func (c *PlanComparison) compareStarts(before, after *Simulation) {
	last := func(p *Simulation) map[match.RequestKey]int64 {
		all := map[match.RequestKey]int64{}
		for _, s := range p.Starts {
			all[s.Key] = s.At
		}
		for _, a := range p.Requests {
			if a.OwnWanted > 0 {
				delete(all, a.Key)
			}
		}
		return all
	}
	was, is := last(before), last(after)
	for _, a := range before.Requests {
		was, is := was[a.Key], is[a.Key]
		if was == is {
			continue
		}
		m := StartChange{Key: a.Key, Submitter: a.Submitter, Tasks: max(before.startedByRequest[a.Key]+a.OwnWanted,
			after.startedByRequest[a.Key]+after.byKey[a.Key].OwnWanted)}
		if was > 0 {
			m.Before = time.Unix(was, 0)
		}
		if is > 0 {
			m.After = time.Unix(is, 0)
		}
		for i := range before.Jobs {
			if j := &before.Jobs[i]; j.Request == a.Key.ID && strings.HasSuffix(j.ID, "."+a.Key.Schedd) {
				m.Jobs = append(m.Jobs, j.ID)
			}
		}
		c.StartChanges = append(c.StartChanges, m)
	}
	end := c.Until
	shift := func(m *StartChange) time.Duration {
		from, to := m.Before, m.After
		if from.IsZero() {
			from = end
		}
		if to.IsZero() {
			to = end
		}
		return to.Sub(from).Abs()
	}
	slices.SortStableFunc(c.StartChanges, func(a, b StartChange) int {
		return cmp.Or(cmp.Compare(shift(&b), shift(&a)), a.Key.Compare(b.Key))
	})
}

// drainResults returns how the nodes empty that the change drains.
func (c *CellChange) drainResults(p *Simulation) (all []DrainResult) {
	for _, command := range c.AdminCommands {
		if command.Kind != ledger.KindDrain || command.Verb != ledger.VerbSet {
			continue
		}
		node, err := ledger.NameOf(ledger.KindDrain, command.Object)
		i, known := p.machineByName[node]
		if err != nil || !known {
			continue
		}
		e := DrainResult{Node: node}
		for k := range p.Machines[i].Claims {
			h := p.claims[match.ClaimKey{Machine: node, ID: p.Machines[i].Claims[k].ID}]
			if e.Running++; h == nil || h.endTime == 0 {
				e.EndUnknown++
			} else {
				e.LastEnd = latestEnd(e.LastEnd, time.Unix(h.endTime, 0))
			}
		}
		all = append(all, e)
	}
	return all
}

func latestEnd(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
