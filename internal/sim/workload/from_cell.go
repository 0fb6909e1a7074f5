package workload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/internal/sim/whatif"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// checkpointCell converts a checkpoint into a simulated pool.
type checkpointCell struct {
	from          *cellstate.CellCheckpoint
	simulation    *whatif.Simulation
	config        pool.SimulationConfig
	machine       map[string]int       // by name: index of the machine
	schedd        map[string]int       // by name: index of the schedd
	runningJob    map[taskSequence]int // by sequence: index of the job in the config
	jobs          map[match.RequestKey][]cellstate.JobRow
	request       map[string]uint64        // by job id: its request
	tasks         map[match.RequestKey]int // by request: tasks that are simulated
	notes         []string
	unboundedRuns int // tasks that run too long to be simulated to their end
}

// taskSequence identifies running tasks that become one job.
type taskSequence struct {
	job       string
	key       match.RequestKey
	resources string // what the task takes, if its request is unknown
}

// FromCell returns a simulated pool that resumes from a checkpoint of a cell. It has the
// machines with their running tasks, which run on for the rest of their predicted time;
// the waiting requests; and the ledger with all cell policy and usage. What is pending
// has happened: see [whatif.NewSimulation]. Each note is a sentence about what of the
// cell is not simulated. The error is of kind roost.Invalid.
func FromCell(from *cellstate.CellCheckpoint, seed uint64) (c pool.SimulationConfig, notes []string, err error) {
	if err := checkTimes(from); err != nil {
		return c, nil, err
	}
	play, err := whatif.NewSimulation(from, whatif.ByPrediction)
	if err != nil {
		return c, nil, err
	}
	ledgerCopy, err := ledger.Load(from.Ledger.Save())
	if err != nil {
		return c, nil, err
	}
	ledgerCopy.DropPendingGrants()
	x := &checkpointCell{
		from: from, simulation: play, machine: map[string]int{}, schedd: map[string]int{},
		runningJob: map[taskSequence]int{}, jobs: map[match.RequestKey][]cellstate.JobRow{},
		tasks:   map[match.RequestKey]int{},
		request: map[string]uint64{},
		config:  pool.SimulationConfig{Seed: seed, Managers: 1, StartTime: from.Now, Ledger: ledgerCopy.Save()},
	}
	if err := x.addMachines(); err != nil {
		return c, nil, err
	}
	x.addSchedds()
	if err := x.addRunningJobs(); err != nil {
		return c, nil, err
	}
	if err := x.addWaitingJobs(); err != nil {
		return c, nil, err
	}
	x.noteSkipped(x.unboundedRuns, "task is said to run for more than ten years: it is taken to run for ever",
		"tasks are said to run for more than ten years: they are taken to run for ever")
	x.noteUnseen()
	return x.config, x.notes, nil
}

// noteSkipped adds a note about n things that are not simulated, if n is not 0.
func (x *checkpointCell) noteSkipped(n int, one, many string) {
	switch {
	case n == 1:
		x.notes = append(x.notes, "1 "+one)
	case n > 1:
		x.notes = append(x.notes, fmt.Sprintf("%d %s", n, many))
	}
}

// addMachines adds the machines of the cell, without claims.
func (x *checkpointCell) addMachines() error {
	var unclear, closed, queues, lends int
	domains := map[string]bool{}
	for _, m := range x.simulation.Machines {
		if m.ClaimsUnknown != nil {
			unclear++
			continue
		}
		f, err := gpu.ReadAd(m.Ad)
		if err != nil {
			return fmt.Errorf("machine %s: %w", m.Name, err)
		}
		ad := m.Ad.Copy()
		domain, _ := ad.Str(roost.AttrFileSystemDomain)
		domains[domain] = true
		if state, _ := ad.Str(roost.AttrState); takesNothing(ad, state) {
			closed++
			ad.SetBool(roost.AttrStart, false)
			ad.SetBool(roost.AttrRequirements, false)
		}
		if f.IsReclaiming() {
			lends++
		}
		for _, name := range []string{
			roost.AttrState, roost.AttrOwnerBusyReason, roost.AttrPaused, roost.AttrReclaim, roost.AttrReclaimedCpus,
			roost.AttrReclaimedMemory, roost.AttrExclusive,
		} {
			ad.Delete(name)
		}
		queued := false
		for i := range f.Len() {
			q := f.Queue(i)
			queued = queued || q.RunLimit > 0 || q.FreePlaces > 0
		}
		if queued {
			queues++
		}
		x.machine[m.Name] = len(x.config.Machines)
		x.config.Machines = append(x.config.Machines,
			pool.MachineConfig{Name: m.Name, Resources: f.Total(), Units: f.Units(), Ad: ad})
	}
	x.noteSkipped(unclear, "machine is left out: nobody knows whose claims are on it",
		"machines are left out: nobody knows whose claims are on them")
	x.noteSkipped(closed, "machine takes nothing new, as its owner uses it or it is drained or paused: nobody knows "+
		"until when", "machines take nothing new, as their owners use them or they are drained or paused: nobody "+
		"knows until when")
	x.noteSkipped(queues, "machine has a queue or a limit of its own on what runs at once: it is played without",
		"machines have queues or limits of their own on what runs at once: they are played without")
	x.noteSkipped(lends, "machine lends what its tasks leave: it is played without",
		"machines lend what their tasks leave: they are played without")
	if len(domains) > 1 {
		x.notes = append(x.notes, fmt.Sprintf(
			"the machines are in %d file system domains: they are taken to see the same files", len(domains),
		))
	}
	if len(x.config.Machines) == 0 {
		return fmt.Errorf("%w: there is no machine in the cell", roost.Invalid)
	}
	return nil
}

// takesNothing reports whether a machine accepts no claims for reasons outside the
// ledger.
func takesNothing(ad *classad.Ad, state string) bool {
	_, busy := ad.Lookup(roost.AttrOwnerBusyReason)
	paused, _ := ad.Bool(roost.AttrPaused)
	return busy || paused || strings.EqualFold(state, "Owner") || strings.EqualFold(state, "Drained")
}

// addSchedds numbers the schedds by name, and sorts the jobs of each request as schedds
// do.
func (x *checkpointCell) addSchedds() {
	names := map[string]bool{}
	for _, a := range x.simulation.Requests {
		names[a.Key.Schedd] = true
	}
	for i := range x.from.Jobs {
		_, host, _ := strings.Cut(x.from.Jobs[i].ID, ".")
		names[host] = true
		key := match.RequestKey{Schedd: host, ID: x.from.Jobs[i].Request}
		x.jobs[key] = append(x.jobs[key], x.from.Jobs[i])
		x.request[x.from.Jobs[i].ID] = key.ID
	}
	for _, t := range x.simulation.Tasks() {
		if _, host, ok := strings.Cut(t.Claim.JobName(), "."); ok {
			names[host] = true
		}
	}
	for i, name := range slices.Sorted(maps.Keys(names)) {
		x.schedd[name] = i
	}
	x.config.Schedds = max(len(names), 1)
	for _, list := range x.jobs {
		slices.SortStableFunc(list, func(a, b cellstate.JobRow) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Submitted, b.Submitted),
				cmp.Compare(a.ID, b.ID))
		})
	}
}
