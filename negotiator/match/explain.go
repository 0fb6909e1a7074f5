package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Explanation says why a request waits. Each machine is counted once: as drained, or not meeting the Requirements, or refusing by its own
// policy, or too small even when empty, or having refused lately, or busy, whichever comes first.
type Explanation struct {
	Machines   int
	Reasons    []Reason    // most machines first
	Summary    string      // one sentence
	Advice     []string    // the smallest changes that would help, best first
	Ahead      int         // units that wait in front of it: of higher bands, and of the submitter's own
	Conditions []Condition // what the request and the machines ask of each other, each for itself; none if all machines match
	Conflicts  []string    // conditions that no machine meets together
	Nearest    []string    // the machines that miss fewest conditions
}

// Reason is why so many machines do not do.
type Reason struct {
	Text     string
	Machines int
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
	disk
	dimensions
)

var dimensionNames = [dimensions]string{"cpus", "memory", "gpus", "disk"}

func (d dimension) of(r roost.Resources) int64 {
	return [dimensions]int64{int64(r.CPU), int64(r.Memory), int64(r.GPUs), int64(r.Disk)}[d]
}

// show writes an amount of the dimension with its name, or the number alone.
func (d dimension) show(n int64, named bool) string {
	text := fmt.Sprint(n)
	switch d {
	case cpus:
		text = roost.MilliCPU(n).String()
	case memory, disk:
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

// lacking lists the dimensions in which r does not fit into have.
func lacking(r, have roost.Resources) (short [dimensions]bool, n int, first dimension) {
	first = dimensions
	for d := range dimensions {
		if d.of(r) > d.of(have) {
			short[d] = true
			n++
			first = min(first, d)
		}
	}
	return short, n, first
}

// tally counts machines by reason.
type tally struct {
	want     *want
	machines int
	drained  int
	match    *classad.Explanation
	conjunct map[int]int // does not meet this conjunct of the Requirements, or its own policy's
	alone    map[int]int // likewise, and is fine in everything else
	small    [dimensions]extreme
	avoided  map[string]int
	busy     [dimensions]extreme
	nearly   [dimensions]extreme // busy in this dimension alone
	barely   [dimensions]extreme // too small in this dimension alone
	capable  int                 // could run it if they were empty
}

// extreme counts machines and remembers the one that comes closest.
type extreme struct {
	machines int
	most     int64 // of what they have, or have free
	of       int64 // of what that machine has in all
	equal    bool  // all are the same
}

func (e *extreme) add(have, of int64) {
	if e.machines == 0 {
		e.most, e.of, e.equal = have, of, true
	} else {
		e.equal = e.equal && e.most == have && e.of == of
		if have > e.most {
			e.most, e.of = have, of
		}
	}
	e.machines++
}

func (p *plan) explain(w *want) *Explanation {
	t := tally{want: w, conjunct: map[int]int{}, alone: map[int]int{}, avoided: map[string]int{}, match: p.query(w.Class).Explain(&p.env)}
	for at := range p.Machines {
		t.count(p, at)
	}
	e := &Explanation{Machines: t.machines, Reasons: t.reasons(), Ahead: w.ahead, Advice: t.advice(p), Conditions: t.conditions()}
	if t.match.Matched == 0 {
		e.Conflicts, e.Nearest = t.conflicts(), t.nearest(p)
	}
	e.Summary = t.summary(e.Reasons)
	return e
}

// count puts one machine where it belongs.
func (t *tally) count(p *plan, at int) {
	m, r := p.Machines[at], t.want.Class.Resources
	t.machines++
	if m.drained {
		t.drained++
		return
	}
	_, tooSmall, smallest := lacking(r, m.Total)
	failing, conjunct := t.match.Failing(m.row)
	why, avoid := t.want.Avoid[m.Name]
	short, busy, first := lacking(r, p.free[at])
	switch {
	case failing > 0:
		t.conjunct[conjunct]++
		if failing == 1 && tooSmall == 0 {
			t.alone[conjunct]++
		}
	case tooSmall > 0:
		t.small[smallest].add(smallest.of(m.Total), smallest.of(m.Total))
		if tooSmall == 1 {
			t.barely[smallest].add(smallest.of(m.Total), smallest.of(m.Total))
		}
	case avoid:
		t.capable++
		t.avoided[why]++
	default:
		t.capable++
		if busy == 0 {
			return // would fit, but is no longer wanted; a plan that is complete has no such machine
		}
		t.busy[first].add(first.of(p.free[at]), first.of(m.Total))
		if busy == 1 && short[first] {
			t.nearly[first].add(first.of(p.free[at]), first.of(m.Total))
		}
	}
}

func (t *tally) reasons() []Reason {
	var all []Reason
	add := func(n int, format string, args ...any) {
		if n > 0 {
			all = append(all, Reason{clip(fmt.Sprintf(format, args...)), n})
		}
	}
	for c, n := range t.conjunct {
		if t.match.Conjuncts[c].Side == classad.Right {
			add(n, "machine's own policy refuses: %s", t.conjunctText(c))
			continue
		}
		add(n, "does not meet Requirements: %s", t.conjunctText(c))
	}
	add(t.drained, "drained")
	for why, n := range t.avoided {
		add(n, "refused the claim: %s", why)
	}
	for d := range dimensions {
		e := t.small[d]
		add(e.machines, "too small: has %s at most", d.show(e.most, true))
		if e = t.busy[d]; e.equal {
			add(e.machines, "busy: %s of %s free", d.show(e.most, false), d.show(e.of, true))
		} else {
			add(e.machines, "busy: at most %s free", d.show(e.most, true))
		}
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

func (t *tally) conjunctText(c int) string { return t.match.Conjuncts[c].Expr.String() }

func clip(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
