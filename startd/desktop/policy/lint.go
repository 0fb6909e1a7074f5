package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/suggest"
)

// LintFinding is a mistake or a possible mistake in an expression of a policy.
type LintFinding struct {
	Word          string // the affected word of the expression; empty: the whole expression
	Cause         string
	Cure          string
	MaybeIntended bool // it may be intended
}

// LintExpression checks an expression as written in a file, under a setting: start,
// suspend, continue, preempt, kill or rank. Attributes are those that the node file adds
// to the machine's ad. An expression with a syntax error has no findings.
//
// An unknown name with MY is a mistake. With TARGET or without a scope it is only
// doubtful, as a schedd of another version may set it.
func LintExpression(setting, src string, attributes []string) []LintFinding {
	e, err := classad.ParseExpr(src)
	if err != nil {
		return nil
	}
	machine, job := slices.Concat(machineNames, attributes), runningNames
	if setting == "start" || setting == "rank" {
		job = requestNames
	}
	my, target, unscoped := classad.References(e)
	var found []LintFinding
	for _, name := range my {
		if !containsName(machine, name) && !strings.HasPrefix(name, "TotalTime") {
			found = append(found, LintFinding{name, fmt.Sprintf("the machine has no attribute %s", name),
				nearestName(name, machine) +
					"add it as attributes = { " + name + " = … }, or see roost-node(5) for those that there are",
				false})
		}
	}
	for _, name := range target {
		if !containsName(job, name) {
			found = append(found, LintFinding{name, fmt.Sprintf("a machine is told no %s of a job here", name),
				nearestName(name, job) +
					"it is undefined for every job; see roost-node(5) for what it is told", true})
		}
	}
	for _, name := range unscoped {
		if !containsName(machine, name) && !containsName(job, name) && !strings.HasPrefix(name, "TotalTime") {
			found = append(found, LintFinding{name,
				fmt.Sprintf("nothing is known of %s, neither of the machine nor, here, of a job", name),
				nearestName(name, slices.Concat(machine, job)) +
					"it is undefined for every job; see roost-node(5) for what there is", true})
		}
	}
	return append(found, unsatisfiable(setting, e)...)
}

// nearestName returns a question for the known name nearest to an unknown one.
func nearestName(name string, known []string) string {
	best, far := "", len(name)/2+1
	for _, k := range known {
		if d := suggest.Distance(strings.ToLower(name), strings.ToLower(k)); d < far {
			best, far = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s? Otherwise ", best)
}
