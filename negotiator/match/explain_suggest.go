package match

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// summary says why the request waits, in one sentence.
func (t *waitExplainer) summary(reasons []WaitReason) string {
	ahead := ""
	if n := t.request.unitsAhead; n > 0 {
		ahead = fmt.Sprintf("; %s before it", pluralOf(n, "task goes", "tasks go"))
	}
	if w := t.request; w.Band == roost.BatchBand && w.submitter.OverQuota > 1 {
		ahead += fmt.Sprintf("; the unfinished jobs of %s ask for %.3g times the quota in batch, which lowers their "+
			"priority by as much", w.Submitter.Owner, w.submitter.OverQuota)
	}
	state := t.machineStates()
	switch {
	case t.machines == 0:
		return "there are no machines in the pool" + ahead
	case t.request.waitReason != "" && t.capable > 0:
		return t.request.waitReason + t.roomUnlessReserved() + ahead
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
	const shown = 3
	var parts []string
	for _, r := range reasons[:min(shown, len(reasons))] {
		parts = append(parts, fmt.Sprintf("%s (%d)", r.Text, r.Machines))
	}
	if len(reasons) > shown {
		parts = append(parts, "and others")
	}
	return fmt.Sprintf("none of the %d machines can run it: %s", t.machines, strings.Join(parts, ", "))
}

// machineStates says in what state the capable machines are.
func (t *waitExplainer) machineStates() string {
	reserved := t.reasonCounts[Reserved] + t.reasonCounts[ReservedForEarlier]
	switch t.capable {
	case t.reasonCounts[RecentlyRefused]:
		return "not tried again until something changes, after a refused claim"
	case t.reasonCounts[PortTaken]:
		return "without a port that it needs"
	case t.reasonCounts[AvoidedPair]:
		return "kept apart from its tasks, which keep failing there"
	}
	if reserved > 0 {
		return "busy or reserved for others"
	}
	return "busy"
}

// roomUnlessReserved says where a request could start if its limit did not exclude it.
func (t *waitExplainer) roomUnlessReserved() string {
	switch {
	case t.reservedNow == 0:
		return ", and no machine has room for it now"
	case t.machines == 1:
		return "; there would be room for it"
	}
	return fmt.Sprintf("; %d of %d machines would have room for it", t.reservedNow, t.machines)
}

func pluralOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// suggestion is a change of the request that would help.
type suggestion struct {
	text         string
	fractionLeft float64 // 0 to 1: how much of what was asked for would be left; more is better
}

// suggestions lists the smallest changes. If some machine could run the request, they are
// those with which it would start now; else those with which any machine could run it.
func (t *waitExplainer) suggestions(p *negotiationCycle) []string {
	var all []suggestion
	if t.capable > 0 && t.request.waitReason == "" {
		for d := range dimensions {
			if e := t.busyInOne[d]; e.machines > 0 && e.largest > 0 {
				all = append(all, t.suggestLess(d, e.largest, "it would start now"))
			}
		}
		if len(all) == 0 && t.shortOfTwoNow.fractionLeft > 0 {
			all = append(all, t.shortOfTwoNow.suggestion(t.request.Class, "it would start now"))
		}
	} else if t.capable == 0 {
		for d := range dimensions {
			if e := t.tooSmallInOne[d]; e.machines > 0 && e.largest > 0 {
				all = append(all, t.suggestLess(d, e.largest, "a machine could run it"))
			}
		}
		if len(all) == 0 && t.shortOfTwoEver.fractionLeft > 0 {
			all = append(all, t.shortOfTwoEver.suggestion(t.request.Class, "a machine could run it"))
		}
		for _, c := range slices.Sorted(maps.Keys(t.onlyConjunct)) {
			all = append(all, t.suggestWithout(c)...)
		}
		for _, text := range t.missingAttributes(p) {
			all = append(all, suggestion{text, 1})
		}
	}
	if advice := p.preemption().adviseMoves(t.request); advice != "" {
		all = append(all, suggestion{advice, 1})
	}
	all = append(all, t.suggestShorter()...)
	slices.SortStableFunc(all, func(a, b suggestion) int { return cmp.Compare(b.fractionLeft, a.fractionLeft) })
	var texts []string
	for _, c := range all[:min(maxAdvice, len(all))] {
		texts = append(texts, c.text)
	}
	return texts
}

// suggestWithout suggests a change of one conjunct that alone excludes some machines.
func (t *waitExplainer) suggestWithout(i int) []suggestion {
	c, n := &t.match.Conjuncts[i], t.onlyConjunct[i]
	if c.Side == classad.Right {
		return nil // only the machine's owner could change it
	}
	if !c.BestValue.IsUndefined() {
		return []suggestion{{fmt.Sprintf("if %s in its requirements accepted %s, %s run it",
			clipText(c.Substituted.String()), plainValue(c.BestValue),
			pluralOf(min(n, c.BestCount), "machine could", "machines could")), 0.5}}
	}
	return []suggestion{{fmt.Sprintf("without %s in its requirements %s run it", clipText(t.conjunctText(i)),
		pluralOf(n, "machine could", "machines could")), 0}}
}

func (t *waitExplainer) suggestLess(d resourceDimension, have int64, effect string) suggestion {
	asked := d.amountOf(t.request.Class.Resources)
	return suggestion{
		text: fmt.Sprintf("with %s instead of %s %s", d.amountText(have, true),
			d.amountText(asked, false), effect),
		fractionLeft: float64(have) / float64(asked),
	}
}
