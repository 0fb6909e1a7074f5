package fuzz

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/faults"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// PoolCase describes a pool, the actions of its users, and its faults.
type PoolCase struct {
	Seed      uint64 // of the delays and everything else that the pool draws
	Managers  int
	Schedds   int
	Members   int // of the cell's queue; 0: the cell has none
	Machines  []CaseMachine
	Jobs      []CaseJob
	Drains    []CaseDrain
	Faults    []faults.Fault
	FaultsEnd time.Duration // all faults are over, and all users have finished, but for removals of services
	RunEnd    time.Duration // end of the run

	// the cores do not check their invariants: broken state shows only where it violates
	// a guarantee
	NoSelfCheck bool
}

// CaseMachine is a machine of a case.
type CaseMachine struct {
	Number             int // part of its name, so the name stays the same if others are left out
	Cores              int
	Owner              DesktopPolicy // zero: no owner uses it
	UnrequestedOutputs int           // this many attempts end there with an output file that nobody requested
}

// DesktopPolicy is the owner policy of a machine with an owner. It is preset "desktop" of
// startd/desktop/policy with other times.
type DesktopPolicy struct {
	StartAfter  time.Duration // time after the owner has left until the machine accepts claims
	ResumeAfter time.Duration // time after the owner has left until suspended tasks resume
	VacateAfter time.Duration // time after which suspended tasks are vacated
}

// CaseJob is a job of a case, with the later actions of its user.
type CaseJob struct {
	Number int // part of its submit key, so the key stays the same if others are left out
	At     time.Duration
	Schedd int  // index from 0
	InCell bool // it goes into the cell's queue, from the node of its schedd
	User   int
	Tasks  int
	Cores  int
	Length time.Duration // run time of each task
	Code   int32         // exit code of each task
	Tries  int           // retries of a task that fails
	Lease  time.Duration
	// above 0: this long after the user saw the id, the same submission comes again with
	// the same key, as from a client that got no answer
	ResubmitAfter time.Duration
	Actions       []UserAction
	Service       *CaseService     // nil: its tasks end by themselves
	Schedule      *CaseSchedule    // nil: it has none
	Flow          *audit.FlowTerms // nil: it is none; otherwise each node runs such a job
	IsAlloc       bool             // its tasks are allocs, which hold what they have until they are removed
	// above 0: its tasks run inside the alloc set of that number, and anywhere else if
	// there is none in the case
	Inside   int
	Anywhere bool // in any alloc that has room, and not in that of the same index
}

// UserAction is an action of a user on a job. The user repeats it until it is answered.
type UserAction struct {
	Delay    time.Duration
	Verb     ActionVerb
	Revision int // Update: the revision that it becomes
	Cores    int // Resize: of each task from then on
	Memory   int // Resize: GiB of each task from then on
}

// ActionVerb is the kind of a user's action.
type ActionVerb uint8

// The kinds of user actions.
const (
	Hold ActionVerb = iota + 1
	Release
	Remove
	Update // of a service, as the next ones
	PauseUpdate
	ResumeUpdate
	UndoUpdate
	Resize
)

func (v ActionVerb) String() string {
	return [...]string{Hold: "hold", Release: "release", Remove: "remove", Update: "update",
		PauseUpdate: "pause the update of", ResumeUpdate: "resume the update of", UndoUpdate: "undo the update of",
		Resize: "resize"}[v]
}

// The prefixes of node names in package pool; a number from 0 follows.
const (
	scheddPrefix  = "schedd"
	machinePrefix = "machine"
	managerPrefix = "manager"
	memberPrefix  = "member"
)

func machineName(n int) string { return fmt.Sprint(machinePrefix, n) }

// key returns the submit key of the job.
func (j *CaseJob) key() string { return fmt.Sprintf("key%d", j.Number) }

// resources returns the resources of each task.
func (j *CaseJob) resources() roost.Resources {
	return roost.Resources{CPU: 1000 * roost.MilliCPU(j.Cores), Memory: roost.Bytes(j.Cores) * roost.GiB}
}

// resources returns the resources of the machine.
func (m *CaseMachine) resources() roost.Resources {
	return roost.Resources{CPU: 1000 * roost.MilliCPU(m.Cores), Memory: 2 * roost.Bytes(m.Cores) * roost.GiB,
		Disk: 100 * roost.GiB}
}

// ownerPolicy returns the owner policy of the machine; nil if it has no owner.
func (d DesktopPolicy) ownerPolicy() *policy.Policy {
	if d == (DesktopPolicy{}) {
		return nil
	}
	p, err := policy.NewPolicy(policy.PolicySettings{Preset: "desktop", StartAfter: d.StartAfter,
		ResumeAfter: d.ResumeAfter, LeaveAfter: d.VacateAfter, Vacate: maxVacate})
	if err != nil {
		panic(err) // a preset is always valid
	}
	return &p
}

// ownedMachines returns the names of the machines with owners.
func (c *PoolCase) ownedMachines() (names []string) {
	for i := range c.Machines {
		if c.Machines[i].Owner != (DesktopPolicy{}) {
			names = append(names, machineName(c.Machines[i].Number))
		}
	}
	return names
}

// Nodes returns the names of the case's nodes.
func (c *PoolCase) Nodes() (n faults.NodeNames) {
	for i := range c.Managers {
		n.Managers = append(n.Managers, fmt.Sprint(managerPrefix, i))
	}
	for i := range c.Schedds {
		n.Schedds = append(n.Schedds, fmt.Sprint(scheddPrefix, i))
	}
	for i := range c.Members { // a member that leads does what a schedd does
		n.Schedds = append(n.Schedds, fmt.Sprint(memberPrefix, i))
	}
	for i := range c.Machines {
		n.Machines = append(n.Machines, machineName(c.Machines[i].Number))
	}
	return n
}

// DrawLimits bounds what DrawCase draws.
type DrawLimits struct {
	// maximum of each; Members are those of the cell's queue, which not every case has
	Managers, Schedds, Machines, Jobs, Members int
	Faults                                     int // maximum of incidents
	FaultsEnd                                  time.Duration
	RunEnd                                     time.Duration
	Kinds                                      []faults.InjectionKind // empty: all
}

// DefaultSize returns the limits of ordinary runs. They are small enough for thousands of
// runs and large enough for all combinations.
func DefaultSize() DrawLimits {
	return DrawLimits{Managers: 3, Schedds: 2, Machines: 5, Jobs: 12, Members: 3, Faults: 24,
		FaultsEnd: 3 * time.Minute, RunEnd: time.Hour}
}

// Bounds on jobs. Leases are short, so that they expire within a run; the schedd renews
// them every quarter of a lease.
const (
	minTask  = 100 * time.Millisecond
	maxTask  = 90 * time.Second
	minLease = 20 * time.Second
	maxLease = 80 * time.Second
)

// ownerStream seeds a separate stream for machine owners. What else a seed draws is the
// same with and without them.
const ownerStream = 0x6465736b

// unrequestedOutputStream seeds a separate stream for machines that send unrequested
// outputs.
const unrequestedOutputStream = 0x6c696172

// Bounds on the times of owner policies. They are short, so that everything happens
// within a run. The longest is shorter than real policies may have, and longer than
// leases.
const (
	minOwnerTime = 2 * time.Second
	maxOwnerTime = 2 * time.Minute
	maxVacate    = 20 * time.Second // time that a vacated task has until it is killed
)

// DrawCase draws the case of a seed.
func DrawCase(seed uint64, s DrawLimits) *PoolCase {
	r := faults.NewRand(seed)
	c := &PoolCase{Seed: r.Uint64(), Managers: 1, Schedds: r.Between(1, s.Schedds), FaultsEnd: s.FaultsEnd,
		RunEnd: s.RunEnd}
	if s.Managers > 1 && !r.OneIn(4) {
		c.Managers = s.Managers
	}
	for i := range r.Between(1, s.Machines) {
		c.Machines = append(c.Machines, CaseMachine{Number: i, Cores: r.Between(1, 4)})
	}
	ownedMachines := faults.NewRand(seed ^ ownerStream)
	for i := range c.Machines {
		if ownedMachines.OneIn(3) {
			start := ownedMachines.SkewedDuration(minOwnerTime, maxOwnerTime)
			c.Machines[i].Owner = DesktopPolicy{StartAfter: start,
				ResumeAfter: ownedMachines.SkewedDuration(minOwnerTime/2, start),
				VacateAfter: ownedMachines.SkewedDuration(minOwnerTime, maxOwnerTime)}
		}
	}
	if liars := faults.NewRand(seed ^ unrequestedOutputStream); liars.OneIn(4) {
		// a single unrequested output does not drain the machine
		c.Machines[liars.Intn(len(c.Machines))].UnrequestedOutputs = 1
	}
	jobs := r.Split()
	for i := range jobs.Between(1, s.Jobs) {
		c.Jobs = append(c.Jobs, c.drawJob(jobs.Split(), i+1))
	}
	c.drawServices(faults.NewRand(seed ^ serviceStream))
	c.drawAllocs(faults.NewRand(seed ^ allocStream))
	c.drawDrains(faults.NewRand(seed ^ drainStream))
	cron := faults.NewRand(seed ^ scheduleStream)
	c.drawScheduled(cron)
	c.drawFlow(faults.NewRand(seed ^ flowStream))
	cell := faults.NewRand(seed ^ cellStream)
	c.drawCellQueue(cell, s.Members)
	w := faults.DrawLimits{Nodes: c.Nodes(), Failpoints: Failpoints, Kinds: s.drawableKinds(), From: 2 * time.Second,
		Until: s.FaultsEnd, MaxIncidents: s.Faults, OwnedMachines: c.ownedMachines()}
	if len(w.OwnedMachines) == 0 {
		w.Kinds = slices.DeleteFunc(slices.Clone(w.Kinds), func(k faults.InjectionKind) bool {
			return k == faults.OwnerComes || k == faults.GuardDies
		})
	}
	if draws := r.Split(); len(w.Kinds) > 0 {
		c.Faults = faults.DrawSchedule(draws, w)
	}
	c.adaptFaults(cell, w.Kinds)
	if slices.Contains(w.Kinds, faults.ClockStep) {
		c.swingClocks(cron)
	}
	c.dropDamagedFlow()
	return c
}

// drawJob draws a job that some machine can run.
func (c *PoolCase) drawJob(r *faults.SeededRand, number int) CaseJob {
	most := 0
	for i := range c.Machines {
		most = max(most, c.Machines[i].Cores)
	}
	j := CaseJob{
		Number: number, At: r.Duration(c.FaultsEnd / 2), Schedd: r.Intn(c.Schedds), User: r.Intn(3),
		Tasks: r.Skewed(1, 20), Cores: r.Between(1, most),
		Length: r.SkewedDuration(minTask, maxTask), Lease: r.SkewedDuration(minLease, maxLease).Truncate(time.Second),
	}
	if r.OneIn(2) { // long enough that faults and users affect them
		j.Length = r.SkewedDuration(maxTask/4, maxTask)
	}
	j.Tasks = min(j.Tasks, 1+int(time.Minute/j.Length))
	if r.OneIn(3) {
		j.At = r.Duration(5 * time.Second) // many jobs at once
	}
	if r.OneIn(6) {
		j.Code = int32(r.Between(1, 3))
		// a task that keeps failing on a machine is separated from it (package
		// negotiator/blackhole), and there may be no other machine
		if j.Tasks == 1 {
			j.Tries = r.Intn(2)
		}
	}
	if r.OneIn(4) {
		j.ResubmitAfter = r.SkewedDuration(10*time.Millisecond, c.FaultsEnd/2)
	}
	j.Actions = drawActions(r, c.FaultsEnd-j.At)
	if slices.ContainsFunc(j.Actions, func(a UserAction) bool { return a.Verb == Release }) {
		j.Tries = 0 // a release has failures counted anew
	}
	return j
}

// drawActions draws what a user does to a job within a time. A held job is always
// released in the end.
func drawActions(r *faults.SeededRand, most time.Duration) (all []UserAction) {
	for most > time.Second && r.OneIn(3) {
		after := r.SkewedDuration(10*time.Millisecond, most)
		if r.OneIn(4) {
			all = append(all, UserAction{Delay: after, Verb: Remove})
			continue
		}
		all = append(all, UserAction{Delay: after, Verb: Hold},
			UserAction{Delay: after + r.SkewedDuration(10*time.Millisecond, maxTask), Verb: Release})
	}
	if slices.ContainsFunc(all, func(a UserAction) bool { return a.Verb == Hold }) {
		all = append(all, UserAction{Delay: most + 10*time.Second, Verb: Release})
	}
	return all
}

// drawableKinds returns the kinds of faults that may be drawn.
func (s *DrawLimits) drawableKinds() []faults.InjectionKind {
	if len(s.Kinds) > 0 {
		return s.Kinds
	}
	return FaultKinds()
}
