package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/forecast"
)

// Explanation says why a request waits. Each machine is counted once: as drained, or not meeting the Requirements, or refusing by its own
// policy, or too small even when empty, or having refused lately, or reserved, or busy, or held for others, whichever comes first.
type Explanation struct {
	Machines   int
	Reasons    []Reason    // most machines first
	Summary    string      // one sentence
	Brief      string      // the same in a few words, for a list
	Advice     []string    // the smallest changes that would help, best first
	Ahead      int         // units that wait in front of it, as fair share has it now: see position.go
	Higher     int         // of those, the ones of higher bands
	Own        int         // and of its own submitter
	Waiting    int         // units that wait in all
	Conditions []Condition // what the request and the machines ask of each other, each for itself; none if all machines match
	Conflicts  []string    // conditions that no machine meets together
	Nearest    []string    // the machines that miss fewest conditions
	Estimate
}

// Reason is why so many machines do not do.
type Reason struct {
	Kind     Kind
	Text     string
	Machines int
}

// Kind is what sort of thing keeps a request from a machine.
type Kind uint8

// The kinds. From Small on the machine could run it at some time.
const (
	Other       Kind = iota // several kinds
	NoMatch                 // the machine does not meet the request's Requirements
	OwnPolicy               // the machine's own refuse the request
	OwnerActive             // likewise, for its owner uses it
	Drained
	Small   // it has too little even when it is empty
	Refused // it did so a moment ago
	Apart   // the request's tasks keep failing there
	Reserved
	Busy
	Held     // it has room, which is held for what comes before the request
	Rationed // it has room, and the request may have no more of something else than it has: licences, running tasks, a quota
	Whole    // it has room for a part of the request, which starts whole or not at all
)

var kindNames = [...]string{"other", "no match", "policy", "owner active", "drained", "too small", "refused", "kept apart", "reserved", "busy", "held", "limit", "gang"}

// String is a word for programs.
func (k Kind) String() string { return kindNames[k] }

// said is one reason.
type said struct {
	kind Kind
	text string
}

// Bounds on what is told.
const (
	maxReasons = 12
	maxText    = 200
	maxAdvice  = 3
)

// dimension is one of the resources.
type dimension int

const (
	cpus dimension = iota
	memory
	gpus
	gpuMemory // of each GPU, where shares are asked for
	disk
	dimensions
)

var dimensionNames = [dimensions]string{"cpus", "memory", "gpus", "gpu_memory", "disk"}

func (d dimension) of(r roost.Resources) int64 { return amountsOf(r)[d] }

func amountsOf(r roost.Resources) [dimensions]int64 {
	return [dimensions]int64{int64(r.CPU), int64(r.Memory), int64(r.GPUs), int64(r.GPUMemory), int64(r.Disk)}
}

// show writes an amount of the dimension with its name, or the number alone.
func (d dimension) show(n int64, named bool) string {
	text := fmt.Sprint(n)
	switch d {
	case cpus:
		text = roost.MilliCPU(n).String()
	case memory, disk, gpuMemory:
		text = roost.Bytes(n).String()
	}
	if !named {
		return text
	}
	name := dimensionNames[d]
	if text == "1" {
		name = strings.TrimSuffix(name, "s")
	}
	return text + " " + name
}

// tally counts machines by reason.
type tally struct {
	want     *want
	machines int
	match    *classad.Explanation
	conjunct map[int]int  // does not meet this conjunct of the Requirements, or its own policy's
	alone    map[int]int  // likewise, and is fine in everything else
	owned    int          // refuses by its own policy, for its owner uses it
	said     map[said]int // whatever else
	kinds    [len(kindNames)]int
	small    [dimensions]extreme
	busy     [dimensions]extreme
	nearly   [dimensions]extreme // busy in this dimension alone
	barely   [dimensions]extreme // too small in this dimension alone
	capable  int                 // could run it if they were empty
	able     []int               // those, by their numbers
	held     int                 // could run it now, but for what holds it
	now      pair                // the machine that lacks two things now, and least of them
	ever     pair                // likewise, even when it is empty
	briefly  forecast.Seconds    // it would start now if it took no longer
	units    int                 // of a gang, that would start now
}

// extreme counts machines and remembers the one that comes closest.
type extreme struct {
	machines int
	most     int64  // of what they have, or have free
	of       int64  // of what that machine has in all
	equal    bool   // all are the same
	where    string // the machine that has the most
}

func (e *extreme) add(have, of int64, where string) {
	if e.machines == 0 {
		e.most, e.of, e.equal, e.where = have, of, true, where
	} else {
		e.equal = e.equal && e.most == have && e.of == of
		if have > e.most {
			e.most, e.of, e.where = have, of, where
		}
	}
	e.machines++
}

func (p *plan) explain(w *want) *Explanation {
	t := tally{want: w, conjunct: map[int]int{}, alone: map[int]int{}, said: map[said]int{}, match: p.query(w.Class).Explain(&p.env)}
	for at := range p.Machines {
		t.kinds[t.count(p, at)]++
	}
	e := &Explanation{
		Machines: t.machines, Reasons: t.reasons(), Ahead: w.ahead, Higher: w.higher, Own: w.own, Waiting: p.waiting, Advice: t.advice(p), Conditions: t.conditions(),
	}
	if t.match.Matched == 0 {
		e.Conflicts, e.Nearest = t.conflicts(), t.nearest(p)
	}
	e.Estimate = p.estimate(&t)
	e.Summary = t.summary(e.Reasons) + p.preemptText(w) + p.outlook(w)
	if why := w.never(t.machines, t.capable); why != "" {
		e.Summary = why + ": " + e.Summary
	}
	e.Brief = t.brief(p, e)
	return e
}

// say counts a machine.
func (t *tally) say(k Kind, text string) Kind {
	t.said[said{k, text}]++
	return k
}

// count puts one machine where it belongs.
func (t *tally) count(p *plan, at int) Kind {
	m, c := p.Machines[at], t.want.Class
	t.machines++
	if m.drained {
		return t.say(Drained, "drained")
	}
	closed, by := p.closed(t.want, at)
	if closed == Drained {
		return t.say(closed, by)
	}
	if !p.within(t.want, at) {
		return t.say(Reserved, "not in reservation "+t.want.Reservation)
	}
	if failing, conjunct := t.match.Failing(m.row); failing > 0 {
		return t.mismatch(m, failing, conjunct, func() bool { s := p.shortageOf(c, at, true); return s.any() })
	}
	if small := p.shortageOf(c, at, true); small.why != "" {
		return t.say(Small, "too small: "+small.why)
	} else if small.n > 0 {
		d := small.first
		t.small[d].add(small.have[d], small.have[d], m.Name)
		if small.n == 1 && p.helps(c, at, d, small.have[d], true) {
			t.barely[d].add(small.have[d], small.have[d], m.Name)
		}
		t.ever.lacks(p, c, at, &small)
		return Small
	}
	t.capable++
	t.able = append(t.able, at)
	if why, avoid := t.want.Avoid[m.Name]; avoid && strings.HasPrefix(why, KeptApart) {
		return t.say(Apart, why)
	} else if avoid {
		return t.say(Refused, "refused the claim: "+why)
	}
	if closed == Reserved {
		return t.say(closed, by)
	}
	return t.countBusy(p, at)
}

// KeptApart is how the reason begins that a request is to avoid a machine on which its tasks keep failing.
const KeptApart = "kept apart: "

// mismatch is count for a machine that does not match.
func (t *tally) mismatch(m *Machine, failing, conjunct int, small func() bool) Kind {
	if failing == 1 && !small() {
		t.alone[conjunct]++
	}
	switch {
	case t.match.Conjuncts[conjunct].Side == classad.Left:
		t.conjunct[conjunct]++
		return NoMatch
	case m.paused:
		t.said[said{OwnerActive, "paused by its owner"}]++
		return OwnerActive
	case m.owned:
		t.owned++
		return OwnerActive
	}
	t.conjunct[conjunct]++
	return OwnPolicy
}

// countBusy is count for a machine that could run it if it were empty.
func (t *tally) countBusy(p *plan, at int) Kind {
	m, c := p.Machines[at], t.want.Class
	busy := p.shortageOf(c, at, false)
	switch d := busy.first; {
	case busy.why != "":
		return t.say(Busy, "busy: "+busy.why)
	case busy.n == 0 && p.futures[at] != nil && p.beside(t.want, at, 1) == 0:
		t.briefly = max(t.briefly, p.brieflyBeside(t.want, at))
		return t.say(p.keptFor(t.want, at))
	case busy.n == 0: // a plan that is complete has such a machine only where something else holds the request
		t.held++
		t.units += p.unitsNow(t.want, at)
		if t.want.held == "" {
			return t.say(Held, "room is left for others")
		}
		return t.say(t.want.heldBy, t.want.held)
	default:
		t.busy[d].add(busy.have[d], busy.of[d], m.Name)
		if busy.n == 1 && p.helps(c, at, d, busy.have[d], false) {
			t.nearly[d].add(busy.have[d], busy.of[d], m.Name)
		}
		t.now.lacks(p, c, at, &busy)
	}
	return Busy
}

func (t *tally) reasons() []Reason {
	var all []Reason
	add := func(k Kind, n int, format string, args ...any) {
		if n > 0 {
			all = append(all, Reason{k, clip(fmt.Sprintf(format, args...)), n})
		}
	}
	for c, n := range t.conjunct {
		if t.match.Conjuncts[c].Side == classad.Right {
			add(OwnPolicy, n, "machine's own policy refuses: %s", t.conjunctText(c))
			continue
		}
		add(NoMatch, n, "does not meet Requirements: %s", t.conjunctText(c))
	}
	add(OwnerActive, t.owned, "its owner uses it")
	for one, n := range t.said {
		add(one.kind, n, "%s", one.text)
	}
	for d := range dimensions {
		small, busy := &t.small[d], &t.busy[d]
		switch {
		case d == gpuMemory:
			add(Small, small.machines, "%s", t.cards(small, "", "the largest has %v, on %s", "the most that so many have is %v, on %s"))
			add(Busy, busy.machines, "%s", t.cards(busy, " free", "the largest free share is %v on %s", "the most that so many have free is %v, on %s"))
			continue
		case busy.equal:
			add(Busy, busy.machines, "busy: %s of %s free", d.show(busy.most, false), d.show(busy.of, true))
		default:
			add(Busy, busy.machines, "busy: at most %s free", d.show(busy.most, true))
		}
		add(Small, small.machines, "too small: has %s at most", d.show(small.most, true))
	}
	slices.SortFunc(all, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Machines, a.Machines), strings.Compare(a.Text, b.Text))
	})
	if len(all) > maxReasons {
		rest := Reason{Text: "other reasons"}
		for _, r := range all[maxReasons-1:] {
			rest.Machines += r.Machines
		}
		all = append(all[:maxReasons-1], rest)
	}
	return all
}

// cards says that no GPUs have the memory that is asked for.
func (t *tally) cards(e *extreme, free, one, many string) string {
	r, text := t.want.Class.Resources, one
	what := "GPU"
	if r.GPUs > 1 {
		what, text = fmt.Sprintf("%d GPUs", r.GPUs), many
	}
	return fmt.Sprintf("no %s with %v%s (%s)", what, r.GPUMemory, free, fmt.Sprintf(text, roost.Bytes(e.most), e.where))
}

func (t *tally) conjunctText(c int) string { return t.match.Conjuncts[c].Expr.String() }

func clip(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
