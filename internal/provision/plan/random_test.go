package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/provision/provider"
)

// outerJob is a job of the random outer system.
type outerJob struct {
	key, id, provider string
	nodes             int
	walltime          time.Duration
	start, end        time.Time // zero: not yet
	isBlackHole       bool
}

// randomSystem plays outer systems in which everything may go wrong.
type randomSystem struct {
	*outerSystem
	rng     *rand.Rand
	jobs    map[string]*outerJob // by key
	unasked map[string]int       // blips in a row, by provider
	calm    bool                 // nothing goes wrong, and nothing starts
	actions int
}

func newRandomSystem(t testing.TB, seed uint64) *randomSystem {
	rng := rand.New(rand.NewPCG(seed, 7))
	var settings []provider.Settings
	for i := range 1 + rng.IntN(3) {
		s := cluster(fmt.Sprint("p", i), 1+rng.IntN(8))
		s.Walltime = time.Duration(1+rng.IntN(12)) * time.Hour
		s.MaxPilots, s.MaxQueued = 1+rng.IntN(12), 1+rng.IntN(4)
		s.NodesEach = 1 + rng.IntN(s.MaxPilots)
		if rng.IntN(2) == 0 {
			s.MaxNodeHours = s.Walltime.Hours() * (1 + 3*rng.Float64())
		}
		if rng.IntN(3) == 0 {
			s.Node = provider.NodeShape{}
		}
		settings = append(settings, s)
	}
	return &randomSystem{outerSystem: newOuterSystem(t, settings...), rng: rng, jobs: map[string]*outerJob{},
		unasked: map[string]int{}}
}

func (r *randomSystem) chance(percent int) bool { return r.rng.IntN(100) < percent }

// changeDemand replaces what waits.
func (r *randomSystem) changeDemand() {
	r.demand = nil
	for i := range r.rng.IntN(4) {
		d := tasks(fmt.Sprint(i, ".h"), 1+r.rng.IntN(30), 1+r.rng.IntN(9), time.Duration(r.rng.IntN(600))*time.Minute)
		if r.chance(25) {
			d = d.inGangs(2 + r.rng.IntN(4))
			d.Units = d.Gang * (1 + r.rng.IntN(3))
		}
		r.demand = append(r.demand, d.since(r.now))
	}
}

// play lets jobs start and end, and pilots join and leave.
func (r *randomSystem) play() {
	for _, key := range slices.Sorted(maps.Keys(r.jobs)) {
		j := r.jobs[key]
		switch {
		case !j.end.IsZero():
		case j.start.IsZero():
			if !r.calm && r.chance(10) {
				j.start = r.now
			}
		case r.now.Sub(j.start) >= j.walltime, !r.calm && r.chance(3):
			j.end = r.now
			if limit := j.start.Add(j.walltime); j.end.After(limit) {
				j.end = limit
			}
			r.leave(key, j.nodes)
		case !j.isBlackHole && r.chance(40) && r.v.Allocations[key].Joins < j.nodes &&
			r.v.Allocations[key].State != Ended:
			r.join(key, fmt.Sprint("h", r.rng.IntN(50)), float64(1+r.rng.IntN(8)))
		}
	}
}

// ask queries the status of a provider, which may fail or give an answer without jobs.
func (r *randomSystem) ask(p *Provider) {
	if !r.calm && r.chance(30) {
		before := r.v.Plan(r.now, r.demand, r.pilots)
		r.v.StatusFailed(p.Name, "connection refused", r.now)
		if after := r.v.Plan(r.now, r.demand, r.pilots); len(after.Submits()) != len(before.Submits()) {
			r.t.Fatalf("I7: %d submits after a status error, %d before", len(after.Submits()), len(before.Submits()))
		}
		return
	}
	var asked []string
	answers := map[string]OuterStatus{}
	isBlip := !r.calm && r.chance(20) && r.unasked[p.Name] < missingAnswers-1
	for _, a := range r.v.Living(p.Name) {
		if a.OuterID == "" {
			continue
		}
		asked = append(asked, a.Key)
		j := r.jobs[a.Key]
		s := OuterStatus{ID: j.id, State: OuterQueued, Started: j.start}
		switch {
		case !j.end.IsZero():
			s.State = OuterEnded
		case !j.start.IsZero():
			s.State = OuterRunning
		}
		if !isBlip {
			answers[j.id] = s
		}
	}
	if r.unasked[p.Name]++; !isBlip {
		r.unasked[p.Name] = 0
	}
	r.v.StatusAnswered(p.Name, asked, answers, r.now)
}

// act does what the plan says. A submit may be refused, or not be answered.
func (r *randomSystem) act() {
	r.v.SeePilots(r.pilots, r.now)
	r.last = r.v.Plan(r.now, r.demand, r.pilots)
	r.v.NoteSurplus(r.last.Surplus, r.now)
	for _, d := range r.last.Decisions {
		switch d.Action {
		case Submit:
			r.actions++
			r.submit(d)
		case Cancel:
			r.actions++
			r.v.CancelOrdered(d, r.now)
			j := r.jobs[d.Key]
			if j == nil {
				r.v.NotFound(d.Key, d.Reason, r.now)
			} else if j.end.IsZero() && (r.calm || r.chance(80)) {
				j.end = r.now
				r.leave(d.Key, j.nodes)
			}
		}
	}
}

func (r *randomSystem) submit(d Decision) {
	r.serial++
	key := fmt.Sprintf("k%05d", r.serial)
	r.v.Begin(key, d, r.now)
	if !r.calm && r.chance(5) {
		r.v.SubmitRefused(key, "no", r.now)
		return
	}
	j := &outerJob{key: key, id: "id-" + key, provider: d.Provider, nodes: d.Nodes, walltime: d.Walltime,
		isBlackHole: r.chance(5)}
	if r.jobs[key] != nil {
		r.t.Fatalf("I8: two allocations have the key %s", key)
	}
	r.jobs[key] = j
	if r.calm || r.chance(80) { // else there is no answer; it is found by its key
		r.v.SubmitTaken(key, j.id, r.now)
		return
	}
	r.v.SubmitUnanswered(key, "timed out", r.now)
}

// crash loses what is not in the journal, finds jobs by their keys, and goes on.
func (r *randomSystem) crash() {
	next := NewProvisioning()
	var settings []provider.Settings
	for _, p := range r.v.Providers {
		settings = append(settings, p.Settings)
	}
	next.SetProviders(settings)
	for i, p := range r.v.Providers {
		text, _ := json.Marshal(p.History)
		json.Unmarshal(text, &next.Providers[i].History)
	}
	for key, a := range r.v.Allocations {
		text, err := json.Marshal(a)
		if err != nil {
			r.t.Fatal(err)
		}
		next.Allocations[key] = &Allocation{}
		json.Unmarshal(text, next.Allocations[key])
		if a := next.Allocations[key]; a.State != Ended && a.OuterID == "" && r.jobs[key] != nil {
			next.SubmitTaken(key, r.jobs[key].id, r.now)
		}
	}
	r.v = next
}

// violation returns which invariant does not hold; "" if all do.
func (r *randomSystem) violation() string {
	if err := r.v.Check(); err != nil {
		return err.Error()
	}
	queued, nodes := map[string]int{}, map[string]int{}
	hours := map[string]float64{}
	for key, j := range r.jobs {
		if begin := maxTime(j.start, r.now.Add(-costWindow)); !j.start.IsZero() {
			end := j.end
			if end.IsZero() {
				end = r.now
			}
			hours[j.provider] += max(end.Sub(begin).Hours(), 0) * float64(j.nodes)
		}
		if !j.end.IsZero() {
			continue
		}
		if a := r.v.Allocations[key]; a == nil || a.State == Ended {
			return fmt.Sprintf("I8: allocation %s is there, and forgotten", key)
		}
		nodes[j.provider] += j.nodes
		if j.start.IsZero() {
			queued[j.provider]++
		}
	}
	for _, p := range r.v.Providers {
		switch {
		case queued[p.Name] > p.MaxQueued:
			return fmt.Sprintf("R1: %d allocations of %s are queued", queued[p.Name], p.Name)
		case nodes[p.Name] > p.MaxPilots:
			return fmt.Sprintf("R2: %s has %d nodes", p.Name, nodes[p.Name])
		case p.MaxNodeHours > 0 && hours[p.Name] > p.MaxNodeHours*(1+1e-9):
			return fmt.Sprintf("I3: %s took %.2f node-hours of %.2f", p.Name, hours[p.Name], p.MaxNodeHours)
		}
	}
	return ""
}

// playRandom plays a random schedule, and then a calm time. In that the demand and all
// else remain as they are.
func playRandom(t testing.TB, seed uint64) string {
	r := newRandomSystem(t, seed)
	for range 200 {
		if r.chance(5) {
			r.changeDemand()
		}
		r.play()
		for _, p := range r.v.Providers {
			if r.chance(40) {
				r.ask(p)
			}
			if p.History.Stopped && r.chance(2) {
				r.v.Resume(p.Name)
			}
		}
		r.act()
		if r.chance(5) {
			r.crash()
		}
		r.v.Forget(r.now)
		if broken := r.violation(); broken != "" {
			return broken
		}
		r.now = r.now.Add(time.Duration(5+r.rng.IntN(300)) * time.Second)
	}
	return r.playCalm()
}

// playCalm checks I6: the submits converge, so that at last nothing is done.
func (r *randomSystem) playCalm() string {
	r.calm, r.pilots = true, nil
	r.crash()
	for _, j := range r.jobs {
		if !j.start.IsZero() && j.end.IsZero() {
			j.end = r.now
		}
	}
	for i := range 480 {
		if i == 280 {
			r.actions = 0
		}
		for _, p := range r.v.Providers {
			r.ask(p)
		}
		r.act()
		if broken := r.violation(); broken != "" {
			return broken
		}
		r.now = r.now.Add(30 * time.Second)
	}
	if r.actions > 0 {
		return fmt.Sprintf("I6: %d submits and cancels while nothing changed: %+v", r.actions, r.last)
	}
	return ""
}

// TestRandomSchedules checks I3, I6, I7 and I8 in random schedules of all that can go
// wrong.
func TestRandomSchedules(t *testing.T) {
	for seed := range uint64(12) {
		if broken := playRandom(t, seed); broken != "" {
			t.Errorf("seed %d: %s", seed, broken)
		}
	}
}
