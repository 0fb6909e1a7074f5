// Package pilotweek simulates a week of a provisioner with several providers, as fast as
// the planner plans: queues that take hours, nodes on which no pilot ever joins, refused
// submits, and outer systems that do not answer.
//
// The planner is the real one, package plan, and its placement that of the pool. Only the
// outer systems, the pilots and the clock are simulated.
package pilotweek

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// RandomSource is a source of randomness, such as the generator of math/rand/v2.
type RandomSource interface {
	IntN(n int) int
	Float64() float64
}

// OuterSystem is a provider with what is not in its settings.
type OuterSystem struct {
	provider.Settings
	Price      float64       // of a node-hour
	MeanWait   time.Duration // in its queue
	MaxWait    time.Duration
	BlackHoles float64 // the part of allocations in which no pilot joins
	Refusals   float64 // the part of submits that are refused
	// it does not answer for so long, as often
	Outage, OutageEvery time.Duration
}

// Campaign is tasks of one job, which are submitted together.
type Campaign struct {
	At       time.Duration // since the begin
	Tasks    int
	Cores    int
	RunTime  time.Duration // of a task, on average
	Walltime time.Duration
}

// Report is the result of a simulated week.
type Report struct {
	Done, Waiting  int     // tasks
	Cost           float64 // of all node-hours
	Optimum        float64 // of the node-hours that the tasks have used, without any waste
	Submits        int
	Cancels        int
	Allocations    int // that ran
	BlackHoles     int // allocations in which no pilot joined
	MostSubmits    int // to one provider in 5 s
	MostStatus     int // status queries of one provider in 60 s
	StatusFailures int
	LastStop       time.Duration // when the last allocation ended
	Reversals      int           // cancels of allocations that were submitted while tasks waited
}

// The times of the simulation.
const (
	tick        = 5 * time.Second
	roundEvery  = 30 * time.Second
	statusEvery = time.Minute
	joinAfter   = 20 * time.Second
)

// simTask is a task that runs on a pilot.
type simTask struct {
	cores int
	end   time.Time
}

// simJob is an allocation as the outer system and the pool have it.
type simJob struct {
	key, id        string
	of             *OuterSystem
	nodes          int
	start, end     time.Time // start is when it will start, while it is later
	isBlackHole    bool
	ended          bool
	running        [][]simTask // by node
	idleSince      []time.Time // by node
	gone           []bool      // by node: its pilot has ended
	hasRun, joined bool
}

// waitingTasks is what is left of a campaign.
type waitingTasks struct {
	Campaign
	name  string
	left  int
	class *match.RequestClass
}

// Week is a simulated week.
type Week struct {
	systems   []*OuterSystem
	campaigns []Campaign
	random    RandomSource
	begin     time.Time
	now       time.Time
	state     *plan.Provisioning
	queue     []*waitingTasks
	jobs      map[string]*simJob // by key
	serial    int
	asked     map[string]time.Time
	submitted map[string]time.Time
	report    Report
}

// New prepares a week.
func New(begin time.Time, systems []*OuterSystem, campaigns []Campaign, random RandomSource) *Week {
	w := &Week{systems: systems, campaigns: campaigns, random: random, begin: begin, now: begin,
		state: plan.NewProvisioning(), jobs: map[string]*simJob{}, asked: map[string]time.Time{},
		submitted: map[string]time.Time{}}
	var settings []provider.Settings
	for _, s := range systems {
		s.Settings = s.WithDefaults()
		settings = append(settings, s.Settings)
	}
	w.state.SetProviders(settings)
	return w
}

// Run simulates for so long, and then until all has ended.
func (w *Week) Run(d time.Duration) Report {
	var next time.Time
	for w.now.Before(w.begin.Add(d)) || w.hasJobs() || len(w.queue) > 0 {
		changed := w.step()
		busy := len(w.queue) > 0 || w.hasJobs()
		if changed || busy && !w.now.Before(next) {
			next = w.plan()
		}
		w.now = w.now.Add(tick)
		if w.now.Sub(w.begin) > 2*d { // something never ends
			break
		}
	}
	for _, q := range w.queue {
		w.report.Waiting += q.left
	}
	return w.report
}

func (w *Week) hasJobs() bool {
	for _, j := range w.jobs {
		if !j.ended {
			return true
		}
	}
	return false
}

func (w *Week) keys() []string { return slices.Sorted(maps.Keys(w.jobs)) }

// step lets campaigns come, jobs start and end, and tasks begin and end. It reports
// whether the planner has to look at once.
func (w *Week) step() (changed bool) {
	for len(w.campaigns) > 0 && !w.begin.Add(w.campaigns[0].At).After(w.now) {
		c := w.campaigns[0]
		w.campaigns, w.serial = w.campaigns[1:], w.serial+1
		class, err := match.NewClass("", owner, roost.BatchBand, roost.Resources{CPU: roost.MilliCPU(1000 * c.Cores),
			Memory: roost.GiB})
		if err != nil {
			panic(err)
		}
		w.queue = append(w.queue, &waitingTasks{c, fmt.Sprintf("%d.h", w.serial), c.Tasks, class})
		changed = true
	}
	for _, key := range w.keys() {
		if j := w.jobs[key]; !j.ended {
			changed = w.stepJob(j) || changed
		}
	}
	return changed
}

var owner = fairshare.Submitter{Owner: "ada"}

func (w *Week) stepJob(j *simJob) (changed bool) {
	if w.now.Before(j.start) {
		return false
	}
	if !j.hasRun {
		j.hasRun = true
		w.report.Allocations++
	}
	if !w.now.Before(j.start.Add(j.of.Walltime)) {
		w.endJob(j)
		return true
	}
	if j.isBlackHole || w.now.Before(j.start.Add(joinAfter)) {
		return false
	}
	changed = !j.joined
	j.joined = true
	alive := false
	for n := range j.running {
		if !j.gone[n] {
			w.stepPilot(j, n)
			alive = alive || !j.gone[n]
		}
	}
	if !alive {
		w.endJob(j)
		changed = true
	}
	return changed
}

// until is when the pilots of a job end.
func (j *simJob) until() time.Time { return j.start.Add(j.of.Walltime - j.of.Margin) }

func (j *simJob) freeCores(n int) int {
	free := int(j.of.Node.Resources.CPU / 1000)
	for _, t := range j.running[n] {
		free -= t.cores
	}
	return free
}

// stepPilot ends tasks that are done, starts others, and ends a pilot that is idle.
func (w *Week) stepPilot(j *simJob, n int) {
	before := len(j.running[n])
	j.running[n] = slices.DeleteFunc(j.running[n], func(t simTask) bool { return !t.end.After(w.now) })
	w.report.Done += before - len(j.running[n])
	for _, q := range w.queue {
		for q.left > 0 && q.Cores <= j.freeCores(n) && !w.now.Add(q.Walltime).After(j.until()) {
			run := time.Duration(float64(q.RunTime) * (0.7 + 0.6*w.random.Float64()))
			q.left--
			j.running[n] = append(j.running[n], simTask{q.Cores, w.now.Add(run)})
			w.report.Optimum += run.Hours() * float64(q.Cores) / float64(j.of.Node.Resources.CPU/1000) * j.of.Price
		}
	}
	w.queue = slices.DeleteFunc(w.queue, func(q *waitingTasks) bool { return q.left == 0 })
	switch {
	case len(j.running[n]) > 0:
		j.idleSince[n] = time.Time{}
	case j.idleSince[n].IsZero():
		j.idleSince[n] = w.now
	case w.now.Sub(j.idleSince[n]) >= j.of.Idle:
		j.gone[n] = true
	}
	if !w.now.Before(j.until()) {
		j.gone[n] = true
	}
}

// endJob ends a job of an outer system, and charges for it.
func (w *Week) endJob(j *simJob) {
	j.ended, j.end = true, w.now
	if j.hasRun {
		w.report.Cost += w.now.Sub(j.start).Hours() * float64(j.nodes) * j.of.Price
		w.report.LastStop = w.now.Sub(w.begin)
		if !j.joined {
			w.report.BlackHoles++
		}
	}
}

// pilots are those in the pool, and of them those that have room.
func (w *Week) pilots() (all, roomy []plan.Pilot) {
	for _, key := range w.keys() {
		j := w.jobs[key]
		if j.ended || !j.joined {
			continue
		}
		for n := range j.running {
			if j.gone[n] {
				continue
			}
			name := fmt.Sprintf("%s-%d", key, n)
			p := plan.Pilot{Name: name, Key: key, Host: name, Until: j.until(), Ad: w.pilotAd(j, n, name)}
			all = append(all, p)
			if j.freeCores(n) > 0 {
				roomy = append(roomy, p)
			}
		}
	}
	return all, roomy
}

func (w *Week) pilotAd(j *simJob, n int, name string) *classad.Ad {
	ad := classad.New()
	ad.SetString(roost.AttrName, name)
	cores := int64(j.of.Node.Resources.CPU / 1000)
	ad.SetInt(roost.AttrTotalCpus, cores)
	ad.SetInt(roost.AttrCpus, int64(j.freeCores(n)))
	for _, attr := range []string{roost.AttrMemory, roost.AttrTotalMemory} {
		ad.SetInt(attr, cores*4096)
	}
	for _, attr := range []string{roost.AttrDisk, roost.AttrTotalDisk} {
		ad.SetInt(attr, 1<<30)
	}
	return ad
}
