package match

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/share"
)

// Class is what a request asks for, made ready for matching. The matcher keeps its verdicts in it, so a class is made once for each
// ad of a request and handed in again with each snapshot. It belongs to one Matcher.
type Class struct {
	Ad        *classad.Ad
	Resources roost.Resources // of one unit

	requirements classad.Expr
	rank         classad.Expr
	conjuncts    []classad.Expr
	names        []string // every name that its expressions mention, in lower case, sorted
	volatile     bool     // a verdict holds for one cycle only

	table    int // the numbering of kinds that the following belong to
	set      int // number of names in the matcher's table of sets
	verdicts []verdict
}

// NewClass reads the ad of a request. Whose it is and what it takes come from the request itself and replace what the ad says about it, so
// that a machine's policy judges what would really run. The error wraps roost.Invalid.
func NewClass(text string, owner share.Submitter, band roost.Band, r roost.Resources) (*Class, error) {
	ad := classad.New()
	if strings.TrimSpace(text) != "" {
		parsed, err := classad.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("request: %w: %w", roost.Invalid, err)
		}
		ad = parsed
	}
	if r.Negative() || r == (roost.Resources{}) {
		return nil, fmt.Errorf("request: %w: it asks for %v", roost.Invalid, r)
	}
	ad.SetString(roost.AttrOwner, owner.Owner)
	if owner.Group != "" {
		ad.SetString(roost.AttrGroup, owner.Group)
	}
	ad.SetString(roost.AttrBand, band.String())
	setCores(ad, r.CPU)
	ad.SetInt(roost.AttrRequestMemory, int64((r.Memory+roost.MiB-1)/roost.MiB))
	ad.SetInt(roost.AttrRequestDisk, int64((r.Disk+roost.KiB-1)/roost.KiB))
	ad.SetInt(roost.AttrRequestGpus, int64(r.GPUs))

	c := &Class{Ad: ad, Resources: r, requirements: classad.BoolValue(true).Expr(), rank: classad.IntValue(0).Expr()}
	if e, ok := ad.Lookup(roost.AttrRequirements); ok {
		c.requirements = e
	}
	if e, ok := ad.Lookup(roost.AttrRank); ok {
		c.rank = e
	}
	c.conjuncts = classad.Conjuncts(c.requirements)
	names := map[string]bool{}
	for _, e := range ad.All() {
		mentions(e, names)
		c.volatile = c.volatile || volatile(e)
	}
	c.names = slices.Sorted(maps.Keys(names))
	return c, nil
}

// setCores sets RequestCpus, as an integer where it is one.
func setCores(ad *classad.Ad, cpu roost.MilliCPU) {
	if cpu%1000 == 0 {
		ad.SetInt(roost.AttrRequestCpus, int64(cpu/1000))
		return
	}
	ad.SetReal(roost.AttrRequestCpus, cpu.Cores())
}

// mentions adds to names every name that e mentions, in lower case.
func mentions(e classad.Expr, names map[string]bool) {
	if _, literal := e.Literal(); literal {
		return
	}
	my, target, unscoped := classad.References(e)
	for _, list := range [...][]string{my, target, unscoped} {
		for _, name := range list {
			names[strings.ToLower(name)] = true
		}
	}
}

// volatile reports whether e may depend on more than the attributes that it mentions: on the clock, on chance, or on names that are made
// while it is evaluated. It errs on the side of yes, which costs time and nothing else.
func volatile(e classad.Expr) bool {
	if _, literal := e.Literal(); literal {
		return false
	}
	text := strings.ToLower(e.String())
	for _, word := range [...]string{"time", "random", "eval", "unresolved", "debug", "user", "["} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
