package suspect

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Verdict says how an attempt ended.
type Verdict uint8

// The verdicts.
const (
	Good    Verdict = iota // the program ended well, or ran as long as it was to
	Failed                 // the program failed: the job's fault, or the machine's
	Spoiled                // the machine says that it was its own fault
)

// Outcome is the end of an attempt.
type Outcome struct {
	Machine string
	Task    string // "12[3].host"
	Job     string // "12.host"
	Owner   string
	Verdict Verdict
	Ran     time.Duration
	Reason  string // of a failure, for people
}

func (o *Outcome) swallowed() bool { return o.Verdict != Good && o.Ran < Quick }

// Book is what is known. The zero value knows nothing. It is for one goroutine.
type Book struct {
	machines map[string]*machine
	jobs     map[string]*tally // of the outcomes that are remembered
	owners   map[string]int
	all      tally
	pairs    map[pair]*trouble
	news     map[string]bool // machines of which something has ended since they were last judged
	watched  map[string]bool // machines that are drained or on trial
	swept    time.Time
}

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
	if len(m.events) == perMachine {
		b.drop(m, 1)
	}
	m.events = append(m.events, event{now, o})
	b.count(&o, 1)
	if m.state == trial {
		m.onTrial.add(&o, 1)
	}
	return b.pairUp(now, &o)
}

func (b *Book) open() {
	if b.machines == nil {
		b.machines, b.jobs, b.owners, b.pairs = map[string]*machine{}, map[string]*tally{}, map[string]int{}, map[pair]*trouble{}
		b.news, b.watched = map[string]bool{}, map[string]bool{}
	}
}

// count takes an outcome into the sums, or out of them.
func (b *Book) count(o *Outcome, by int) {
	b.all.add(o, by)
	if b.owners[o.Owner] += by; b.owners[o.Owner] == 0 {
		delete(b.owners, o.Owner)
	}
	j := b.jobs[o.Job]
	if j == nil {
		j = &tally{}
		b.jobs[o.Job] = j
	}
	if j.add(o, by); *j == (tally{}) {
		delete(b.jobs, o.Job)
	}
}

// drop forgets the oldest outcomes of a machine.
func (b *Book) drop(m *machine, n int) {
	for i := range m.events[:n] {
		b.count(&m.events[i].Outcome, -1)
	}
	m.events = slices.Delete(m.events, 0, n)
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
		b.drop(m, old)
		if len(m.events) == 0 && m.state == trusted && now.Sub(m.until) > LongestDrain {
			delete(b.machines, name)
		}
	}
	for key, t := range b.pairs {
		if now.Sub(t.at) > LongestApart {
			delete(b.pairs, key)
		}
	}
}

// check panics if the sums are not those of what is remembered.
func (b *Book) check() {
	var all tally
	jobs, owners := map[string]*tally{}, map[string]int{}
	for _, m := range b.machines {
		for i := range m.events {
			o := &m.events[i].Outcome
			all.add(o, 1)
			owners[o.Owner]++
			if jobs[o.Job] == nil {
				jobs[o.Job] = &tally{}
			}
			jobs[o.Job].add(o, 1)
		}
	}
	if all != b.all || !maps.Equal(owners, b.owners) || !maps.EqualFunc(jobs, b.jobs, func(x, y *tally) bool { return *x == *y }) {
		panic(fmt.Sprintf("suspect: %v, %v and %v are counted, and it is %v, %v and %v", b.all, b.owners, b.jobs, all, owners, jobs))
	}
}
