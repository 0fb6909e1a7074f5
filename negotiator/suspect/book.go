package suspect

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
)

// Verdict says how an attempt ended.
type Verdict uint8

// The verdicts.
const (
	Good    Verdict = iota // the program ended well, or ran as long as it was to
	Failed                 // the program failed: the job's fault, or the machine's
	Spoiled                // the machine says that it was its own fault
)

// Submitter is who submitted a job: an owner at one submit node. No owner stands for all of that node.
type Submitter struct{ Node, Owner string }

// Outcome is the end of an attempt.
type Outcome struct {
	Machine string
	Task    string // "12[3].host"
	Job     string // "12.host"
	Submitter
	Verdict Verdict
	Ran     time.Duration
	Reason  string // of a failure, for people
}

func (o *Outcome) swallowed() bool { return o.Verdict != Good && o.Ran < Quick }

// Book is what is known. The zero value knows nothing. It is for one goroutine.
type Book struct {
	machines map[string]*machine
	jobs     map[job]*tally // of the outcomes that are remembered; so the next two
	users    map[Submitter]*tally
	all      tally
	avoided  map[aversion]*avoidance
	pairs    map[pair]*trouble
	news     map[string]bool // machines of which something has ended since they were last judged
	watched  map[string]bool // machines that are drained or on trial
	swept    time.Time
}

// job is a job as the node says that submitted it: no node speaks of the jobs of another.
type job struct{ node, id string }

func (o *Outcome) job() job { return job{o.Node, o.Job} }

// tally counts outcomes.
type tally struct{ good, bad, spoiled int } // spoiled are among the bad

func (t *tally) add(o *Outcome, by int) {
	switch {
	case !o.swallowed():
		t.good += by
		return
	case o.Verdict == Spoiled:
		t.spoiled += by
	}
	t.bad += by
}

func (t tally) less(o tally) tally {
	return tally{t.good - o.good, t.bad - o.bad, t.spoiled - o.spoiled}
}

// spoilt reports whether many of the outcomes were spoiled.
func (t tally) spoilt() bool { return 4*t.spoiled > t.good+t.bad }

// machine is one of which something has ended.
type machine struct {
	events  []event // oldest first
	state   state
	until   time.Time     // drained: when that is over
	last    time.Duration // for how long it was drained the last time
	reason  string
	onTrial tally // since the trial began
}

type event struct {
	at time.Time
	Outcome
}

type state uint8

const (
	trusted state = iota
	drained
	trial
)

// Ended takes in the end of an attempt. If the task is to be kept from that machine from now on, it says so.
func (b *Book) Ended(now time.Time, o Outcome) (apart Apart, ok bool) {
	b.open()
	b.news[o.Machine] = true
	m := b.machines[o.Machine]
	if m == nil {
		m = &machine{}
		b.machines[o.Machine] = m
	}
	b.makeRoom(m, &o)
	m.events = append(m.events, event{now, o})
	b.count(&o, 1)
	if m.state == trial {
		m.onTrial.add(&o, 1)
	}
	return b.pairUp(now, &o)
}

func (b *Book) open() {
	if b.machines == nil {
		b.machines, b.jobs, b.pairs, b.avoided = map[string]*machine{}, map[job]*tally{}, map[pair]*trouble{}, map[aversion]*avoidance{}
		b.users = map[Submitter]*tally{}
		b.news, b.watched = map[string]bool{}, map[string]bool{}
	}
}

// count takes an outcome into the sums, or out of them.
func (b *Book) count(o *Outcome, by int) {
	b.all.add(o, by)
	addTo(b.jobs, o.job(), o, by)
	addTo(b.users, o.Submitter, o, by)
}

// addTo counts an outcome in one of several sums, which are there only while there is something in them.
func addTo[K comparable](sums map[K]*tally, key K, o *Outcome, by int) {
	t := sums[key]
	if t == nil {
		t = &tally{}
		sums[key] = t
	}
	if t.add(o, by); *t == (tally{}) {
		delete(sums, key)
	}
}

// makeRoom forgets what one more outcome of a job has no room beside. Of one job only the last few count, and of a machine whose room is used up the oldest
// goes of whoever has most: neither an array of any length nor one owner's many jobs push out what befell the others.
func (b *Book) makeRoom(m *machine, o *Outcome) {
	alike, first := 0, -1
	for i := range m.events {
		if m.events[i].job() == o.job() && m.events[i].swallowed() == o.swallowed() {
			if alike++; first < 0 {
				first = i
			}
		}
	}
	switch {
	case alike >= perJob:
		b.drop(m, first, 1)
	case len(m.events) >= perMachine:
		b.drop(m, m.oldestOfMost(), 1)
	}
}

// oldestOfMost is the oldest outcome of the submitter of whom a machine has most.
func (m *machine) oldestOfMost() (at int) {
	type group struct{ first, size int }
	groups, most := map[Submitter]*group{}, 0
	for i := range m.events {
		g := groups[m.events[i].Submitter]
		if g == nil {
			g = &group{first: i}
			groups[m.events[i].Submitter] = g
		}
		g.size++
	}
	for _, g := range groups {
		if g.size > most || g.size == most && g.first < at {
			at, most = g.first, g.size
		}
	}
	return at
}

// drop forgets n outcomes of a machine.
func (b *Book) drop(m *machine, at, n int) {
	for i := range m.events[at : at+n] {
		b.count(&m.events[at+i].Outcome, -1)
	}
	m.events = slices.Delete(m.events, at, at+n)
}

// sweep forgets what is too old to count, at most once in a while.
func (b *Book) sweep(now time.Time) {
	if now.Sub(b.swept) < Window/20 && !now.Before(b.swept) {
		return
	}
	b.swept = now
	for name, m := range b.machines {
		old := 0
		for old < len(m.events) && now.Sub(m.events[old].at) >= Window {
			old++
		}
		b.drop(m, 0, old)
		if len(m.events) == 0 && m.state == trusted && now.Sub(m.until) > LongestDrain {
			delete(b.machines, name)
		}
	}
	for key, t := range b.pairs {
		if now.Sub(t.at) > roost.LongestApart {
			delete(b.pairs, key)
		}
	}
	for key, a := range b.avoided {
		if now.Sub(a.until) > roost.LongestApart {
			delete(b.avoided, key)
		}
	}
}

// check panics if the sums are not those of what is remembered.
func (b *Book) check() {
	var all tally
	jobs, users := map[job]*tally{}, map[Submitter]*tally{}
	for name, m := range b.machines {
		of := map[job]int{}
		for i := range m.events {
			o := &m.events[i].Outcome
			all.add(o, 1)
			addTo(jobs, o.job(), o, 1)
			addTo(users, o.Submitter, o, 1)
			if of[o.job()]++; of[o.job()] > 2*perJob || len(m.events) > perMachine {
				panic(fmt.Sprintf("suspect: of %s %d outcomes are remembered, %d of job %s", name, len(m.events), of[o.job()], o.Job))
			}
		}
	}
	equal := func(x, y *tally) bool { return *x == *y }
	if all != b.all || !maps.EqualFunc(jobs, b.jobs, equal) || !maps.EqualFunc(users, b.users, equal) {
		panic(fmt.Sprintf("suspect: %v, %v and %v are counted, and it is %v, %v and %v", b.all, b.jobs, b.users, all, jobs, users))
	}
}
