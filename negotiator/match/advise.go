package match

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost/classad"
)

// summary says it in one sentence.
func (t *tally) summary(reasons []Reason) string {
	ahead := ""
	if n := t.want.ahead; n > 0 {
		ahead = fmt.Sprintf("; %s before it", plural(n, "task goes", "tasks go"))
	}
	state := t.state()
	switch {
	case t.machines == 0:
		return "there are no machines in the pool" + ahead
	case t.want.held != "" && t.capable > 0:
		return t.want.held + t.roomFor() + ahead
	case t.capable == 1 && t.machines == 1:
		return "the pool's only machine is " + state + ahead
	case t.capable == 1:
		return fmt.Sprintf("the one machine of %d that can run it is %s%s", t.machines, state, ahead)
	case t.capable > 1 && t.capable == t.machines:
		return fmt.Sprintf("all %d machines are %s%s", t.machines, state, ahead)
	case t.capable > 1:
		return fmt.Sprintf("the %d machines of %d that can run it are %s%s", t.capable, t.machines, state, ahead)
	case t.machines == 1:
		return "the pool's only machine cannot run it: " + reasons[0].Text
	}
	const told = 3
	var parts []string
	for _, r := range reasons[:min(told, len(reasons))] {
		parts = append(parts, fmt.Sprintf("%s (%d)", r.Text, r.Machines))
	}
	if len(reasons) > told {
		parts = append(parts, "and others")
	}
	return fmt.Sprintf("none of the %d machines can run it: %s", t.machines, strings.Join(parts, ", "))
}

// state says how those machines are that could run it.
func (t *tally) state() string {
	kept := t.kinds[Reserved] + t.kinds[Held]
	switch t.capable {
	case t.kinds[Refused]:
		return "waiting to change after a refused claim"
	case t.kinds[Apart]:
		return "kept apart from its tasks, which keep failing there"
	}
	if kept > 0 {
		return "busy or kept for others"
	}
	return "busy"
}

// roomFor says where a request that something holds could start but for that.
func (t *tally) roomFor() string {
	switch {
	case t.held == 0:
		return ", and no machine has room for it now"
	case t.machines == 1:
		return "; there would be room for it"
	}
	return fmt.Sprintf("; %d of %d machines would have room for it", t.held, t.machines)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// change is a change of the request that would help.
type change struct {
	text string
	part float64 // how much of what was asked for would be left; more is better
}

// advice lists the smallest changes: if some machine could run it, what would start it now; else what would let any machine run it at all.
func (t *tally) advice(p *plan) []string {
	var all []change
	if t.capable > 0 && t.want.held == "" {
		for d := range dimensions {
			if e := t.nearly[d]; e.machines > 0 && e.most > 0 {
				all = append(all, t.less(d, e.most, "it would start now"))
			}
		}
		if len(all) == 0 && t.now.part > 0 {
			all = append(all, t.now.change(t.want.Class, "it would start now"))
		}
	} else if t.capable == 0 {
		for d := range dimensions {
			if e := t.barely[d]; e.machines > 0 && e.most > 0 {
				all = append(all, t.less(d, e.most, "a machine could run it"))
			}
		}
		if len(all) == 0 && t.ever.part > 0 {
			all = append(all, t.ever.change(t.want.Class, "a machine could run it"))
		}
		for _, c := range slices.Sorted(maps.Keys(t.alone)) {
			all = append(all, t.without(c)...)
		}
		for _, text := range t.missing(p) {
			all = append(all, change{text, 1})
		}
	}
	all = append(all, t.lessElse()...)
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(b.part, a.part) })
	var texts []string
	for _, c := range all[:min(maxAdvice, len(all))] {
		texts = append(texts, c.text)
	}
	return texts
}

// without is what a request could do about one of its conjuncts that alone keeps some machines from running it.
func (t *tally) without(i int) []change {
	c, n := &t.match.Conjuncts[i], t.alone[i]
	if c.Side == classad.Right {
		return nil // it is the machine's owner who would have to change something
	}
	if !c.Nearest.IsUndefined() {
		return []change{{fmt.Sprintf("if %s in its requirements accepted %s, %s run it", clip(c.Means.String()), plain(c.Nearest),
			plural(min(n, c.Admits), "machine could", "machines could")), 0.5}}
	}
	return []change{{fmt.Sprintf("without %s in its requirements %s run it", clip(t.conjunctText(i)), plural(n, "machine could", "machines could")), 0}}
}

func (t *tally) less(d dimension, have int64, effect string) change {
	asked := d.of(t.want.Class.Resources)
	return change{
		text: fmt.Sprintf("with %s instead of %s %s", d.show(have, true), d.show(asked, false), effect),
		part: float64(have) / float64(asked),
	}
}
