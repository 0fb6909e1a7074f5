package submit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/roost-batch/roost"
)

// Bounds on what a job may wish for; the negotiator has them too.
const (
	maxPrefer   = 16
	maxPackages = 64
	maxWish     = 4096 // bytes of one of them
)

// readWishes reads which licences a job takes, and what it would like of machines without needing it.
func (b *builder) readWishes() {
	b.readLicences()
	if s, at, ok := b.sameText("spread", spreadCure); ok {
		if attributeName.fits(s) {
			b.ad.SetString(roost.AttrSpread, s)
		} else {
			b.fail(at, fmt.Sprintf("%q is not the name of an attribute", shorten(s)), spreadCure)
		}
	}
	if list, at, ok := b.sameTexts("packages"); ok && b.wishes(list, at, "packages", maxPackages) {
		b.ad.SetStrings(roost.AttrPackages, list)
	}
	b.readPrefer()
}

const spreadCure = "Write the attribute of machines over whose values the tasks are to be spread, as in spread = \"Rack\"."

// sameTexts reads a list of texts that is the same for all tasks.
func (b *builder) sameTexts(name string) ([]string, hcl.Range, bool) {
	v, at, ok := b.same(name)
	if !ok {
		return nil, at, false
	}
	list, ok := b.listOf(v, at, name)
	return list, at, ok
}

// readLicences reads limits = ["matlab", "ansys:2"].
func (b *builder) readLicences() {
	list, at, ok := b.sameTexts("limits")
	if !ok || len(list) == 0 {
		return
	}
	all, err := roost.ParseLicences(strings.Join(list, ","))
	if err != nil {
		why := strings.Replace(err.Error(), roost.Invalid.Error()+": ", "", 1)
		b.fail(at, "limits cannot be taken", sentence(errors.New(why))+". Write the names of licences, and after a colon how many each task takes: limits = [\"matlab\", \"ansys:2\"].")
		return
	}
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.String()
	}
	b.ad.SetString(roost.AttrLimits, strings.Join(names, ", "))
}

// wishes checks the bounds of a list.
func (b *builder) wishes(list []string, at hcl.Range, name string, most int) bool {
	if len(list) > most {
		b.fail(at, fmt.Sprintf("%s has %d elements", name, len(list)), fmt.Sprintf("It may have %d.", most))
		return false
	}
	for _, s := range list {
		if s == "" || len(s) > maxWish {
			b.fail(at, "an element of "+name+" is empty or too long", fmt.Sprintf("It has %d bytes, and can have from 1 to %d.", len(s), maxWish))
			return false
		}
	}
	return len(list) > 0
}

// readPrefer reads a list of conditions, each as in requirements.
func (b *builder) readPrefer() {
	a, ok := b.attr("prefer", "machine")
	if !ok {
		return
	}
	tuple, ok := a.Expr.(*hclsyntax.TupleConsExpr)
	if !ok {
		b.fail(a.Expr.Range(), "prefer has to be a list of conditions", "Write them in brackets: prefer = [machine.has_ssd, machine.memory >= \"64GiB\"]. A machine is better the more of them it meets.")
		return
	}
	var list []string
	for _, e := range tuple.Exprs {
		s, ok := b.condition(e, b.p.root, "an element of prefer")
		if !ok {
			return
		}
		list = append(list, s)
	}
	if b.wishes(list, a.Expr.Range(), "prefer", maxPrefer) {
		b.ad.SetStrings(roost.AttrPrefer, list)
	}
}
