package match

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/spell"
)

// Condition is one conjunct of a request's Requirements, or of the machines' own, and for how many machines it holds.
type Condition struct {
	Text      string
	Means     string // with the request's own amounts in place of their names; empty if that is the same
	Own       bool   // it is the machines'
	Pass      int
	Fail      int
	Undefined int // an attribute that it needs is missing
	Error     int
	Alone     int // machines that would match but for this
}

const (
	maxConditions = 12
	maxNearest    = 3
)

// conditions lists the conjuncts, all of the request's and those of the machines' own that exclude some; none if no machine is excluded.
func (t *tally) conditions() []Condition {
	x := t.match
	if x.Most < 0 {
		return nil
	}
	var shown []int
	for i, c := range x.Conjuncts {
		if c.Side == classad.Left || c.Excludes() > 0 {
			shown = append(shown, i)
		}
	}
	if len(shown) > maxConditions {
		slices.SortStableFunc(shown, func(a, b int) int { return cmp.Compare(x.Conjuncts[b].Excludes(), x.Conjuncts[a].Excludes()) })
		shown = shown[:maxConditions]
		slices.Sort(shown)
	}
	var all []Condition
	for _, i := range shown {
		c := x.Conjuncts[i]
		n := Condition{
			Text: clip(c.Expr.String()), Own: c.Side == classad.Right, Pass: c.Pass, Fail: c.Fail, Undefined: c.Undefined, Error: c.Error, Alone: c.Alone,
		}
		if means := clip(c.Means.String()); means != n.Text {
			n.Means = means
		}
		all = append(all, n)
	}
	return all
}

// conflicts says which conjuncts of several no machine meets together.
func (t *tally) conflicts() []string {
	var all []string
	for _, c := range t.match.Conflicts {
		switch texts := t.quoted(c.Conjuncts); {
		case len(texts) < 2 || len(all) == maxAdvice:
		case c.Always:
			all = append(all, and(texts)+" contradict each other: no machine can ever meet both")
		case len(texts) == 2:
			all = append(all, fmt.Sprintf("some machines meet %s and some meet %s, but none meets both", texts[0], texts[1]))
		default:
			all = append(all, "no machine meets all of "+and(texts))
		}
	}
	return all
}

// quoted are the texts of conjuncts.
func (t *tally) quoted(conjuncts []int) []string {
	var texts []string
	for _, c := range conjuncts {
		texts = append(texts, clip(t.match.Conjuncts[c].Means.String()))
	}
	return texts
}

// and joins texts as a sentence does.
func and(texts []string) string {
	last := len(texts) - 1
	if last == 0 {
		return texts[0]
	}
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// nearest names the machines that miss least, and what they have instead.
func (t *tally) nearest(p *plan) []string {
	var all []string
	for _, near := range t.match.Nearest[:min(maxNearest, len(t.match.Nearest))] {
		m := p.byRow[near.Example]
		who, verb := m.Name, "misses"
		if near.Rows > 1 {
			who, verb = fmt.Sprintf("%s and %s", m.Name, plural(near.Rows-1, "other", "others")), "miss"
		}
		text := fmt.Sprintf("%s %s only %s", who, verb, and(t.quoted(near.Missing[:min(maxNearest, len(near.Missing))])))
		if rest := len(near.Missing) - maxNearest; rest > 0 {
			text = fmt.Sprintf("%s and %d more", text, rest)
		}
		has := t.has(p, m, near.Missing)
		if near.Rows > 1 {
			has = strings.ReplaceAll(has, " its ", " "+m.Name+"'s ")
		}
		all = append(all, clip(text+has))
	}
	return all
}

// has says what a machine has of what some conjuncts of the request ask for.
func (t *tally) has(p *plan, m *Machine, conjuncts []int) string {
	var parts []string
	for _, i := range conjuncts {
		c := &t.match.Conjuncts[i]
		if c.Side == classad.Right {
			continue
		}
		for _, name := range targets(c.Means) {
			part := fmt.Sprintf("%s is %s", name, plain(m.Ad.Eval(name, &p.env)))
			if !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": its " + strings.Join(parts, ", its ")
}

// plain is a value as people write it.
func plain(v classad.Value) string {
	if f, ok := v.Real(); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return v.String()
}

// targets are the machine's attributes that a conjunct of the request names.
func targets(e classad.Expr) []string {
	_, target, unscoped := classad.References(e)
	return append(target, unscoped...)
}

// missing says which attributes that the request asks for no machine has, and what may have been meant.
func (t *tally) missing(p *plan) []string {
	var all []string
	for i := range t.match.Conjuncts {
		c := &t.match.Conjuncts[i]
		if c.Side == classad.Right || c.Undefined < t.match.Rows || t.match.Rows == 0 {
			continue
		}
		for _, name := range targets(c.Means) {
			if slices.ContainsFunc(p.Machines, func(m *Machine) bool { _, ok := m.Ad.Lookup(name); return ok }) {
				continue
			}
			text := fmt.Sprintf("no machine has an attribute %s", name)
			if near := similar(name, p.Machines[0].Ad); near != "" {
				text += fmt.Sprintf("; did you mean %s?", near)
			}
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// similar is the attribute of an ad that was most likely meant, or "".
func similar(name string, ad *classad.Ad) string {
	best, least := "", 1+len(name)/3
	for _, n := range ad.Names() {
		if d := spell.Distance(strings.ToLower(name), strings.ToLower(n)); d < least {
			best, least = n, d
		}
	}
	return best
}
