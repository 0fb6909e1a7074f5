package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/suggest"
)

// LintFinding is something in an expression of a policy that is not meant, or may not be.
type LintFinding struct {
	Word          string // of the expression, that it is about; empty: all of it
	Cause         string
	Cure          string
	MaybeIntended bool // it may be meant
}

// LintExpression looks at an expression as it stands in a file, under a setting: start,
// suspend, continue, preempt, kill or rank. Attributes are what the node file adds to the
// machine's ad. An expression that is not in the language has no findings.
//
// A name that nothing is known of is a mistake behind MY. Behind TARGET and without a
// scope it is in doubt: another version's schedd may say it.
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

// nearestName asks for the known name that is nearest to one that is not.
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
