package submit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// Bounds on the soft constraints of a job; the negotiator has them, too.
const (
	maxPrefer      = 16
	maxPackages    = 64
	maxPreferBytes = 4096 // bytes of one of them
)

// readSoftConstraints reads the concurrency limits of a job, and its preferences for
// machines.
func (b constraintReader) readSoftConstraints() {
	b.readConcurrencyLimits()
	if s, at, ok := b.constantText("spread", spreadHint); ok {
		if attributeName.matches(s) {
			b.ad.SetString(roost.AttrSpread, s)
		} else {
			b.reportProblem(at, fmt.Sprintf("%q is not the name of an attribute", truncateText(s)), spreadHint)
		}
	}
	if list, at, ok := b.constantTextList("packages"); ok && b.checkListBounds(list, at, "packages", maxPackages) {
		b.ad.SetStrings(roost.AttrPackages, list)
	}
	b.readPrefer()
}

const spreadHint = "Write the attribute of machines over whose values the tasks are to be spread, as in spread " +
	"= \"Rack\"."

// constantTextList reads a list of texts that is equal for all tasks.
func (b constraintReader) constantTextList(name string) ([]string, hcl.Range, bool) {
	v, at, ok := b.constantValue(name)
	if !ok {
		return nil, at, false
	}
	list, ok := b.taskReader().listElements(v, at, name)
	return list, at, ok
}

// readConcurrencyLimits reads a list such as limits = ["matlab", "ansys:2"].
func (b constraintReader) readConcurrencyLimits() {
	list, at, ok := b.constantTextList("limits")
	if !ok || len(list) == 0 {
		return
	}
	all, err := roost.ParseLimitRequests(strings.Join(list, ","))
	if err != nil {
		why := strings.Replace(err.Error(), roost.Invalid.Error()+": ", "", 1)
		b.reportProblem(at, "limits cannot be taken", capitalized(errors.New(why))+
			". Write the names of licences, and after a colon how many each task takes: limits = [\"matlab\", "+
			"\"ansys:2\"].")
		return
	}
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.String()
	}
	b.ad.SetString(roost.AttrLimits, strings.Join(names, ", "))
}

// checkListBounds checks the bounds of a list.
func (b constraintReader) checkListBounds(list []string, at hcl.Range, name string, most int) bool {
	if len(list) > most {
		b.reportProblem(at, fmt.Sprintf("%s has %d elements", name, len(list)), fmt.Sprintf("It may have %d.", most))
		return false
	}
	for _, s := range list {
		if s == "" || len(s) > maxPreferBytes {
			b.reportProblem(at, "an element of "+name+" is empty or too long",
				fmt.Sprintf("It has %d bytes, and can have from 1 to %d.", len(s), maxPreferBytes))
			return false
		}
	}
	return len(list) > 0
}

// readPrefer reads a list of conditions, each as in requirements.
func (b constraintReader) readPrefer() {
	a, ok := b.attribute("prefer", "machine")
	if !ok {
		return
	}
	tuple, ok := a.Expr.(*hclsyntax.TupleConsExpr)
	if !ok {
		b.reportProblem(a.Expr.Range(), "prefer has to be a list of conditions",
			"Write them in brackets: prefer = [machine.has_ssd, machine.memory >= \"64GiB\"]. A machine is better "+
				"the more of them it meets.")
		return
	}
	var list []string
	for _, e := range tuple.Exprs {
		s, ok := b.condition(e, b.parser.root, "an element of prefer")
		if !ok {
			return
		}
		list = append(list, s)
	}
	if b.checkListBounds(list, a.Expr.Range(), "prefer", maxPrefer) {
		b.ad.SetStrings(roost.AttrPrefer, list)
	}
}
