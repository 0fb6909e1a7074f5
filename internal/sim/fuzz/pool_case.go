package fuzz

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/faults"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// PoolCase is a pool, what its users do, and what happens to it.
type PoolCase struct {
	Seed      uint64 // of delays, and of what else the pool draws
	Managers  int
	Schedds   int
	Machines  []CaseMachine
	Jobs      []CaseJob
	Faults    []faults.Fault
	FaultsEnd time.Duration // all faults are over, and all users have gone
	RunEnd    time.Duration // the run ends

	// the cores do not check themselves: what is wrong with their books shows only where
	// it breaks a promise
	NoSelfCheck bool
}

// CaseMachine is one that runs tasks.
type CaseMachine struct {
	Number             int // its name is made of it, so that it keeps it when others are left out
	Cores              int
	Owner              DesktopPolicy // zero: it has no owner who comes
	UnrequestedOutputs int           // so many attempts end there with an output that nobody has asked for
}

// DesktopPolicy is when a machine is lent that has an owner: as preset "desktop" of
// startd/desktop/policy has it, with times of its own.
type DesktopPolicy struct {
	StartAfter  time.Duration // after he has left it is lent
	ResumeAfter time.Duration // what stood still goes on
	VacateAfter time.Duration // what has stood still for so long leaves
}

// CaseJob is what a user submits, and what he does to it then.
type CaseJob struct {
	Number int // likewise, of its key
	At     time.Duration
	Schedd int // from 0
	User   int
	Tasks  int
	Cores  int
	Length time.Duration // of each task
	Code   int32         // with which they end
	Tries  int           // of a task that fails
	Lease  time.Duration
	// above 0: so long after he saw its id he submits it once more with the same key, as
	// somebody does who has seen no answer
	ResubmitAfter time.Duration
	Actions       []UserAction
}

// UserAction is what a user does to a job, from its submission on. He does it again until
// he has an answer.
type UserAction struct {
	Delay time.Duration
	Verb  ActionVerb
}

// ActionVerb is what users do.
type ActionVerb uint8

// The verbs.
const (
	Hold ActionVerb = iota + 1
	Release
	Remove
)

func (v ActionVerb) String() string {
	return [...]string{Hold: "hold", Release: "release", Remove: "remove"}[v]
}

// The names of nodes, as package pool makes them: before a number that counts from 0.
const (
	scheddPrefix  = "schedd"
	machinePrefix = "machine"
	managerPrefix = "manager"
)

func machineName(n int) string { return fmt.Sprint(machinePrefix, n) }

// key is the submit key of a job.
func (j *CaseJob) key() string { return fmt.Sprintf("key%d", j.Number) }

// resources are those of each task.
func (j *CaseJob) resources() roost.Resources {
	return roost.Resources{CPU: 1000 * roost.MilliCPU(j.Cores), Memory: roost.Bytes(j.Cores) * roost.GiB}
}

// resources are what a machine has.
func (m *CaseMachine) resources() roost.Resources {
	return roost.Resources{CPU: 1000 * roost.MilliCPU(m.Cores), Memory: 2 * roost.Bytes(m.Cores) * roost.GiB,
		Disk: 100 * roost.GiB}
}

// ownerPolicy is that of the machine's owner; nil: it has none.
func (d DesktopPolicy) ownerPolicy() *policy.Policy {
	if d == (DesktopPolicy{}) {
		return nil
	}
	p, err := policy.NewPolicy(policy.PolicySettings{Preset: "desktop", StartAfter: d.StartAfter,
		ResumeAfter: d.ResumeAfter, LeaveAfter: d.VacateAfter, Vacate: maxVacate})
	if err != nil {
		panic(err) // it is a preset
	}
	return &p
}

// ownedMachines are the names of machines that have owners.
func (c *PoolCase) ownedMachines() (names []string) {
	for i := range c.Machines {
		if c.Machines[i].Owner != (DesktopPolicy{}) {
			names = append(names, machineName(c.Machines[i].Number))
		}
	}
	return names
}

// Nodes are the names of a case's nodes.
func (c *PoolCase) Nodes() (n faults.NodeNames) {
	for i := range c.Managers {
		n.Managers = append(n.Managers, fmt.Sprint(managerPrefix, i))
	}
	for i := range c.Schedds {
		n.Schedds = append(n.Schedds, fmt.Sprint(scheddPrefix, i))
	}
	for i := range c.Machines {
		n.Machines = append(n.Machines, machineName(c.Machines[i].Number))
	}
	return n
}

// DrawLimits bounds what is drawn.
type DrawLimits struct {
	Managers, Schedds, Machines, Jobs int // at most
	Faults                            int // incidents at most
	FaultsEnd                         time.Duration
	RunEnd                            time.Duration
	Kinds                             []faults.InjectionKind // none: all
}

// DefaultSize is that of ordinary runs: small enough for thousands of them, and large
// enough for all that can meet.
func DefaultSize() DrawLimits {
	return DrawLimits{Managers: 3, Schedds: 2, Machines: 5, Jobs: 12, Faults: 24, FaultsEnd: 3 * time.Minute,
		RunEnd: time.Hour}
}

// The bounds of what jobs are like. Leases are short, so that they end within a run; a
// quarter of one is between renewals.
const (
	minTask  = 100 * time.Millisecond
	maxTask  = 90 * time.Second
	minLease = 20 * time.Second
	maxLease = 80 * time.Second
)

// ownerStream makes a source of its own for who has a desktop: what else a seed draws is
// the same whether there are some or not.
const ownerStream = 0x6465736b

// unrequestedOutputStream is likewise for machines that lie about outputs.
const unrequestedOutputStream = 0x6c696172

// The bounds of when machines are lent that have owners: what is to happen within a run
// happens soon. The longest is shorter than what a real one may have, and longer than
// leases.
const (
	minOwnerTime = 2 * time.Second
	maxOwnerTime = 2 * time.Minute
	maxVacate    = 20 * time.Second // from the word until what leaves is killed
)

// DrawCase draws a case of a seed.
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
		c.Machines[liars.Intn(len(c.Machines))].UnrequestedOutputs = 1 // one lie does not have the machine drained
	}
	jobs := r.Split()
	for i := range jobs.Between(1, s.Jobs) {
		c.Jobs = append(c.Jobs, c.drawJob(jobs.Split(), i+1))
	}
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
	return c
}

// drawJob draws a job, which some machine can run.
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
	if r.OneIn(2) { // long enough that something happens to them
		j.Length = r.SkewedDuration(maxTask/4, maxTask)
	}
	j.Tasks = min(j.Tasks, 1+int(time.Minute/j.Length))
	if r.OneIn(3) {
		j.At = r.Duration(5 * time.Second) // many at once
	}
	if r.OneIn(6) {
		j.Code = int32(r.Between(1, 3))
		// what keeps failing on a machine is kept from it (package negotiator/blackhole),
		// and there may be no other
		if j.Tasks == 1 {
			j.Tries = r.Intn(2)
		}
	}
	if r.OneIn(4) {
		j.ResubmitAfter = r.SkewedDuration(10*time.Millisecond, c.FaultsEnd/2)
	}
	j.Actions = drawActions(r, c.FaultsEnd-j.At)
	return j
}

// drawActions draws what a user does to a job in so long. Whom he holds he lets go in the
// end.
func drawActions(r *faults.SeededRand, most time.Duration) (all []UserAction) {
	for most > time.Second && r.OneIn(3) {
		after := r.SkewedDuration(10*time.Millisecond, most)
		if r.OneIn(4) {
			all = append(all, UserAction{after, Remove})
			continue
		}
		all = append(all, UserAction{after, Hold},
			UserAction{after + r.SkewedDuration(10*time.Millisecond, maxTask), Release})
	}
	if slices.ContainsFunc(all, func(a UserAction) bool { return a.Verb == Hold }) {
		all = append(all, UserAction{most + 10*time.Second, Release})
	}
	return all
}

// drawableKinds are those that may be drawn.
func (s *DrawLimits) drawableKinds() []faults.InjectionKind {
	if len(s.Kinds) > 0 {
		return s.Kinds
	}
	return FaultKinds()
}
