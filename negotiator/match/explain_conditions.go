package match

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/suggest"
)

// RequirementCount counts the machines for which one conjunct holds, of the Requirements
// of a request or of machines.
type RequirementCount struct {
	Text         string
	Expanded     string // with the request's own values in place of their names; empty if that is the same
	OfMachine    bool   // the conjunct is of the machines, not of the request
	Pass         int
	Fail         int
	Undefined    int // machines that lack an attribute that it needs
	Error        int
	OnlyObstacle int // machines that would match without it
}

const (
	maxConditions = 12
	maxNearest    = 3
)

// conditions lists all conjuncts of the request, and those of the machines that exclude
// some. It returns none if no machine is excluded.
func (t *waitExplainer) conditions() []RequirementCount {
	x := t.match
	if x.MostExcluding < 0 {
		return nil
	}
	var shown []int
	for i, c := range x.Conjuncts {
		if c.Side == classad.Left || c.Excluded() > 0 {
			shown = append(shown, i)
		}
	}
	if len(shown) > maxConditions {
		slices.SortStableFunc(shown, func(a, b int) int {
			return cmp.Compare(x.Conjuncts[b].Excluded(), x.Conjuncts[a].Excluded())
		})
		shown = shown[:maxConditions]
		slices.Sort(shown)
	}
	var all []RequirementCount
	for _, i := range shown {
		c := x.Conjuncts[i]
		n := RequirementCount{
			Text: clipText(c.Expr.String()), OfMachine: c.Side == classad.Right, Pass: c.Pass, Fail: c.Fail,
			Undefined: c.Undefined, Error: c.Error, OnlyObstacle: c.OnlyObstacle,
		}
		if means := clipText(c.Substituted.String()); means != n.Text {
			n.Expanded = means
		}
		all = append(all, n)
	}
	return all
}

// conflicts says which conjuncts no machine meets together.
func (t *waitExplainer) conflicts() []string {
	var all []string
	for _, c := range t.match.Conflicts {
		switch texts := t.quoteConjuncts(c.Conjuncts); {
		case len(texts) < 2 || len(all) == maxAdvice:
		case c.Contradiction:
			all = append(all, joinWithAnd(texts)+" contradict each other: no machine can ever meet both")
		case len(texts) == 2:
			all = append(all, fmt.Sprintf("some machines meet %s and some meet %s, but none meets both",
				texts[0], texts[1]))
		default:
			all = append(all, "no machine meets all of "+joinWithAnd(texts))
		}
	}
	return all
}

// quoteConjuncts returns the texts of conjuncts.
func (t *waitExplainer) quoteConjuncts(conjuncts []int) []string {
	var texts []string
	for _, c := range conjuncts {
		texts = append(texts, clipText(t.match.Conjuncts[c].Substituted.String()))
	}
	return texts
}

// joinWithAnd joins texts with commas and "and".
func joinWithAnd(texts []string) string {
	last := len(texts) - 1
	if last == 0 {
		return texts[0]
	}
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// nearest names the machines that miss the fewest conditions, and their values.
func (t *waitExplainer) nearest(p *negotiationCycle) []string {
	var all []string
	for _, near := range t.match.Nearest[:min(maxNearest, len(t.match.Nearest))] {
		m := p.machineByRow[near.Example]
		who, verb := m.Name, "misses"
		if near.Rows > 1 {
			who, verb = fmt.Sprintf("%s and %s", m.Name, pluralOf(near.Rows-1, "other", "others")), "miss"
		}
		text := fmt.Sprintf("%s %s only %s", who, verb,
			joinWithAnd(t.quoteConjuncts(near.Missing[:min(maxNearest, len(near.Missing))])))
		if rest := len(near.Missing) - maxNearest; rest > 0 {
			text = fmt.Sprintf("%s and %d more", text, rest)
		}
		has := t.machineValues(p, m, near.Missing)
		if near.Rows > 1 {
			has = strings.ReplaceAll(has, " its ", " "+m.Name+"'s ")
		}
		all = append(all, clipText(text+has))
	}
	return all
}

// machineValues says what values a machine has of the attributes in some conjuncts of the
// request.
func (t *waitExplainer) machineValues(p *negotiationCycle, m *Machine, conjuncts []int) string {
	var parts []string
	for _, i := range conjuncts {
		c := &t.match.Conjuncts[i]
		if c.Side == classad.Right {
			continue
		}
		for _, name := range targetAttributes(c.Substituted) {
			part := fmt.Sprintf("%s is %s", name, plainValue(m.Ad.Eval(name, &p.env)))
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

// plainValue formats a value for messages.
func plainValue(v classad.Value) string {
	if f, ok := v.Real(); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return v.String()
}

// targetAttributes returns the machine attributes that a conjunct of the request names.
func targetAttributes(e classad.Expr) []string {
	_, target, unscoped := classad.References(e)
	return append(target, unscoped...)
}

// missingAttributes says which attributes that the request needs no machine has, and what
// may have been meant.
func (t *waitExplainer) missingAttributes(p *negotiationCycle) []string {
	var all []string
	for i := range t.match.Conjuncts {
		c := &t.match.Conjuncts[i]
		if c.Side == classad.Right || c.Undefined < t.match.Rows || t.match.Rows == 0 {
			continue
		}
		for _, name := range targetAttributes(c.Substituted) {
			if slices.ContainsFunc(p.Machines, func(m *Machine) bool { _, ok := m.Ad.Lookup(name); return ok }) {
				continue
			}
			text := fmt.Sprintf("no machine has an attribute %s", name)
			if near := similarAttribute(name, p.Machines[0].Ad); near != "" {
				text += fmt.Sprintf("; did you mean %s?", near)
			}
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// similarAttribute returns the attribute of an ad that was most likely meant, or "".
func similarAttribute(name string, ad *classad.Ad) string {
	best, least := "", 1+len(name)/3
	for _, n := range ad.Names() {
		if d := suggest.Distance(strings.ToLower(name), strings.ToLower(n)); d < least {
			best, least = n, d
		}
	}
	return best
}
