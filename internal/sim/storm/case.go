package storm

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/fault"
	"github.com/roost-batch/roost/startd/owner"
)

// Case is a pool, what its users do, and what happens to it.
type Case struct {
	Seed     uint64 // of delays, and of what else the pool draws
	Managers int
	Schedds  int
	Machines []Machine
	Jobs     []Job
	Faults   []fault.Fault
	Calm     time.Duration // all faults are over, and all users have gone
	Until    time.Duration // the run ends

	Unchecked bool // the cores do not check themselves: what is wrong with their books shows only where it breaks a promise
}

// Machine is one that runs tasks.
type Machine struct {
	Number int // its name is made of it, so that it keeps it when others are left out
	Cores  int
	Desk   Desk // zero: it has no owner who comes
	Lies   int  // so many attempts end there with an output that nobody has asked for
}

// Desk is when a machine is lent that has an owner: as preset "desktop" of startd/owner has it, with times of its own.
type Desk struct {
	Start  time.Duration // after he has left it is lent
	Resume time.Duration // what stood still goes on
	Leave  time.Duration // what has stood still for so long leaves
}

// Job is what a user submits, and what he does to it then.
type Job struct {
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
	Again  time.Duration // above 0: so long after he saw its id he submits it once more with the same key, as somebody does who has seen no answer
	Acts   []Act
}

// Act is what a user does to a job, from its submission on. He does it again until he has an answer.
type Act struct {
	After time.Duration
	Verb  Verb
}

// Verb is what users do.
type Verb uint8

// The verbs.
const (
	Hold Verb = iota + 1
	Release
	Remove
)

func (v Verb) String() string {
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
func (j *Job) key() string { return fmt.Sprintf("key%d", j.Number) }

// resources are those of each task.
func (j *Job) resources() roost.Resources {
	return roost.Resources{CPU: 1000 * roost.MilliCPU(j.Cores), Memory: roost.Bytes(j.Cores) * roost.GiB}
}

// resources are what a machine has.
func (m *Machine) resources() roost.Resources {
	return roost.Resources{CPU: 1000 * roost.MilliCPU(m.Cores), Memory: 2 * roost.Bytes(m.Cores) * roost.GiB, Disk: 100 * roost.GiB}
}

// policy is that of the machine's owner; nil: it has none.
func (d Desk) policy() *owner.Policy {
	if d == (Desk{}) {
		return nil
	}
	p, err := owner.Make(owner.Settings{Preset: "desktop", StartAfter: d.Start, ResumeAfter: d.Resume, LeaveAfter: d.Leave, Vacate: longestLeave})
	if err != nil {
		panic(err) // it is a preset
	}
	return &p
}

// desks are the names of machines that have owners.
func (c *Case) desks() (names []string) {
	for i := range c.Machines {
		if c.Machines[i].Desk != (Desk{}) {
			names = append(names, machineName(c.Machines[i].Number))
		}
	}
	return names
}

// Nodes are the names of a case's nodes.
func (c *Case) Nodes() (n fault.Nodes) {
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

// Size bounds what is drawn.
type Size struct {
	Managers, Schedds, Machines, Jobs int // at most
	Faults                            int // incidents at most
	Calm                              time.Duration
	Until                             time.Duration
	Kinds                             []fault.Kind // none: all
}

// DefaultSize is that of ordinary runs: small enough for thousands of them, and large enough for all that can meet.
func DefaultSize() Size {
	return Size{Managers: 3, Schedds: 2, Machines: 5, Jobs: 12, Faults: 24, Calm: 3 * time.Minute, Until: time.Hour}
}

// The bounds of what jobs are like. Leases are short, so that they end within a run; a quarter of one is between renewals.
const (
	shortestTask  = 100 * time.Millisecond
	longestTask   = 90 * time.Second
	shortestLease = 20 * time.Second
	longestLease  = 80 * time.Second
)

// ofDesks makes a source of its own for who has a desktop: what else a seed draws is the same whether there are some or not.
const ofDesks = 0x6465736b

// ofLiars is likewise for machines that lie about outputs.
const ofLiars = 0x6c696172

// The bounds of when machines are lent that have owners: what is to happen within a run happens soon. The longest is shorter than what a real one may have,
// and longer than leases.
const (
	shortestDesk = 2 * time.Second
	longestDesk  = 2 * time.Minute
	longestLeave = 20 * time.Second // from the word until what leaves is killed
)

// Draw draws a case of a seed.
func Draw(seed uint64, s Size) *Case {
	r := fault.NewRand(seed)
	c := &Case{Seed: r.Uint64(), Managers: 1, Schedds: r.Between(1, s.Schedds), Calm: s.Calm, Until: s.Until}
	if s.Managers > 1 && !r.One(4) {
		c.Managers = s.Managers
	}
	for i := range r.Between(1, s.Machines) {
		c.Machines = append(c.Machines, Machine{Number: i, Cores: r.Between(1, 4)})
	}
	desks := fault.NewRand(seed ^ ofDesks)
	for i := range c.Machines {
		if desks.One(3) {
			start := desks.Span(shortestDesk, longestDesk)
			c.Machines[i].Desk = Desk{Start: start, Resume: desks.Span(shortestDesk/2, start), Leave: desks.Span(shortestDesk, longestDesk)}
		}
	}
	if liars := fault.NewRand(seed ^ ofLiars); liars.One(4) {
		c.Machines[liars.Intn(len(c.Machines))].Lies = 1 // one lie does not have the machine drained
	}
	jobs := r.Split()
	for i := range jobs.Between(1, s.Jobs) {
		c.Jobs = append(c.Jobs, c.draw(jobs.Split(), i+1))
	}
	w := fault.Weather{Nodes: c.Nodes(), Points: Points, Kinds: s.kinds(), From: 2 * time.Second, Calm: s.Calm, Most: s.Faults, Desks: c.desks()}
	if len(w.Desks) == 0 {
		w.Kinds = slices.DeleteFunc(slices.Clone(w.Kinds), func(k fault.Kind) bool { return k == fault.OwnerComes || k == fault.GuardDies })
	}
	if faults := r.Split(); len(w.Kinds) > 0 {
		c.Faults = fault.Draw(faults, w)
	}
	return c
}

// draw draws a job, which some machine can run.
func (c *Case) draw(r *fault.Rand, number int) Job {
	most := 0
	for i := range c.Machines {
		most = max(most, c.Machines[i].Cores)
	}
	j := Job{
		Number: number, At: r.Time(c.Calm / 2), Schedd: r.Intn(c.Schedds), User: r.Intn(3), Tasks: r.Few(1, 20), Cores: r.Between(1, most),
		Length: r.Span(shortestTask, longestTask), Lease: r.Span(shortestLease, longestLease).Truncate(time.Second),
	}
	if r.One(2) { // long enough that something happens to them
		j.Length = r.Span(longestTask/4, longestTask)
	}
	j.Tasks = min(j.Tasks, 1+int(time.Minute/j.Length))
	if r.One(3) {
		j.At = r.Time(5 * time.Second) // many at once
	}
	if r.One(6) {
		j.Code = int32(r.Between(1, 3))
		if j.Tasks == 1 { // what keeps failing on a machine is kept from it (package negotiator/suspect), and there may be no other
			j.Tries = r.Intn(2)
		}
	}
	if r.One(4) {
		j.Again = r.Span(10*time.Millisecond, c.Calm/2)
	}
	j.Acts = acts(r, c.Calm-j.At)
	return j
}

// acts draws what a user does to a job in so long. Whom he holds he lets go in the end.
func acts(r *fault.Rand, most time.Duration) (all []Act) {
	for most > time.Second && r.One(3) {
		after := r.Span(10*time.Millisecond, most)
		if r.One(4) {
			all = append(all, Act{after, Remove})
			continue
		}
		all = append(all, Act{after, Hold}, Act{after + r.Span(10*time.Millisecond, longestTask), Release})
	}
	if slices.ContainsFunc(all, func(a Act) bool { return a.Verb == Hold }) {
		all = append(all, Act{most + 10*time.Second, Release})
	}
	return all
}

// kinds are those that may be drawn.
func (s *Size) kinds() []fault.Kind {
	if len(s.Kinds) > 0 {
		return s.Kinds
	}
	return Kinds()
}
