package ledger

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/roost-batch/roost/negotiator/fairshare"
)

// AccountingGroup is a group of submitters with a share of the pool (HTCondor:
// GROUP_NAMES, GROUP_QUOTA_x, GROUP_QUOTA_DYNAMIC_x, GROUP_ACCEPT_SURPLUS_x). Group
// "sci.chem" is a subgroup of "sci", which must exist.
type AccountingGroup struct {
	Name  string     `json:"name"`
	Cores *CoreCount `json:"cores,omitempty"` // a static quota
	// a dynamic quota: the fraction of the parent's quota, or of the pool; 0 to 1
	Fraction      *float64 `json:"fraction,omitempty"`
	AcceptSurplus bool     `json:"accept_surplus,omitempty"` // the group may use what others leave unused
}

// PeerGroupPrefix begins the names of the groups of guests. Their quota is a bound on
// what they have, and takes nothing from the others.
const PeerGroupPrefix = fairshare.GuestGroupPrefix

func isGuestGroup(g AccountingGroup) bool { return strings.HasPrefix(g.Name, PeerGroupPrefix) }

func (g AccountingGroup) name() string     { return g.Name }
func (g AccountingGroup) users() []string  { return nil }
func (g AccountingGroup) groups() []string { return groupOrNone(g.Parent()) }

// Parent returns the name of the parent group, or "" for a top-level group.
func (g AccountingGroup) Parent() string {
	i := strings.LastIndexByte(g.Name, '.')
	return g.Name[:max(i, 0)]
}

func (g AccountingGroup) check(l *Ledger) error {
	if err := checkDottedName("a group", strings.TrimPrefix(g.Name, PeerGroupPrefix)); err != nil {
		return err
	}
	switch {
	case g.Cores != nil && g.Fraction != nil:
		return exclusiveFieldsError("cores", "a fraction")
	case g.Cores != nil && (*g.Cores < 0 || int64(*g.Cores) > maxAmount):
		return fmt.Errorf("a quota of %v cores: it must be between 0 and %v", float64(*g.Cores)/1000,
			float64(maxAmount/1000))
	case g.Fraction != nil && !(*g.Fraction >= 0 && *g.Fraction <= 1):
		return fmt.Errorf("a fraction of %v: it must be between 0 and 1", *g.Fraction)
	}
	if err := g.checkParentQuota(l, g.Parent()); err != nil {
		return err
	}
	return g.checkParentQuota(l, g.Name)
}

// checkParentQuota refuses g if its parent's subgroups would be promised more than the
// parent's quota.
func (g AccountingGroup) checkParentQuota(l *Ledger, parent string) error {
	above, ok := objectNamed[AccountingGroup](l, KindGroup, parent)
	if parent == g.Name {
		above, ok = g, true
	}
	var cores CoreCount
	var parts []string
	fraction := 0.0
	add := func(c AccountingGroup) {
		switch {
		case c.Parent() != parent || isGuestGroup(c):
		case c.Cores != nil:
			cores += *c.Cores
			parts = append(parts, fmt.Sprintf("%s %v", c.Name, float64(*c.Cores)/1000))
		case c.Fraction != nil:
			fraction += *c.Fraction
		}
	}
	for c := range objectValues[AccountingGroup](l, KindGroup) {
		if c.Name != g.Name {
			add(c)
		}
	}
	add(g)
	where := "the pool"
	if parent != "" {
		where = "group " + parent
	}
	if ok && above.Cores != nil && cores > *above.Cores {
		return fmt.Errorf("%s has a quota of %v cores, and the groups in it are promised %v (%s): lower one of "+
			"these, or raise that of %s first",
			where, float64(*above.Cores)/1000, float64(cores)/1000, listText(parts), parent)
	}
	if fraction > 1+1e-9 {
		return fmt.Errorf("the fractions of the groups in %s add up to %v, and there is no more than 1: lower one of "+
			"them first", where, math.Round(fraction*1e6)/1e6)
	}
	return nil
}

// Groups lists the groups of this pool by name, so that each follows its parent.
func (l *Ledger) Groups() []AccountingGroup {
	return slices.DeleteFunc(slices.Collect(objectValues[AccountingGroup](l, KindGroup)), isGuestGroup)
}

// GuestGroups lists the groups of guests whose share is bounded.
func (l *Ledger) GuestGroups() []AccountingGroup {
	return slices.DeleteFunc(slices.Collect(objectValues[AccountingGroup](l, KindGroup)),
		func(g AccountingGroup) bool { return !isGuestGroup(g) })
}

// Group returns the group with that name.
func (l *Ledger) Group(name string) (AccountingGroup, bool) {
	return objectNamed[AccountingGroup](l, KindGroup, name)
}
