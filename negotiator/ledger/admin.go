package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// Admin is what somebody may do who is not root on a central manager.
type Admin struct {
	Who          string   `json:"who"` // "ann@node", or "ann" for a user of that name on any node of the pool
	Capabilities []string `json:"capabilities"`
}

// Capability is a right that can be given.
type Capability struct {
	Name  string `json:"name"`
	Kinds []Kind `json:"kinds,omitempty"` // the objects that it allows to set and remove
	What  string `json:"what"`            // for people, beginning with a verb
}

// The capabilities that are no kind's.
const (
	CapabilityAll     = "all"
	CapabilityJobs    = "jobs"    // acting on everybody's jobs
	CapabilityMembers = "members" // adding and removing replicas of the negotiator
)

// Capabilities is the one table of who may do what: what is not in it only root on a central manager may. Reading needs no capability.
func Capabilities() []Capability {
	return []Capability{
		{"shares", []Kind{KindSubmitter}, "set factors, floors and ceilings of submitters, and reset what they have used"},
		{"groups", []Kind{KindGroup}, "set the groups and their part of the pool"},
		{"quotas", []Kind{KindQuota}, "set quotas"},
		{"limits", []Kind{KindLimit, KindResource}, "set concurrency limits, and say what resources there are"},
		{"queues", []Kind{KindQueue, KindPool}, "set queues, and what holds for the jobs of all"},
		{"reservations", []Kind{KindReservation}, "reserve parts of the pool"},
		{"drains", []Kind{KindDrain, KindComment}, "drain nodes, and say something about them"},
		{"settings", []Kind{KindSetting}, "change the settings of the cell"},
		{"admins", []Kind{KindAdmin}, "give and take capabilities, and so all of them"},
		{CapabilityJobs, nil, "hold, release, remove, run again and change the jobs of all users, at all submit nodes"},
		{CapabilityMembers, nil, "add and remove central managers"},
		{CapabilityAll, Kinds(), "do everything"},
	}
}

// Allowing names the capability, other than all, that allows to change objects of a kind.
func Allowing(kind Kind) string {
	for _, c := range Capabilities() {
		if slices.Contains(c.Kinds, kind) {
			return c.Name
		}
	}
	return CapabilityAll
}

func (a Admin) name() string     { return a.Who }
func (a Admin) groups() []string { return nil }

func (a Admin) users() []string {
	if user, _, remote := strings.Cut(a.Who, "@"); !remote {
		return []string{user}
	}
	return nil // of another node nobody here knows the users
}

func (a Admin) check(*Ledger) error {
	user, node, remote := strings.Cut(a.Who, "@")
	if err := account("a user", user); err != nil {
		return err
	}
	if remote {
		if err := account("a node", node); err != nil {
			return err
		}
		if strings.Contains(node, "@") {
			return fmt.Errorf("%q is no user of a node: write it as ann@n1", a.Who)
		}
	}
	if len(a.Capabilities) == 0 {
		return errors.New("it gives no capability: remove it instead, if that is what you mean")
	}
	names := CapabilityNames()
	for i, c := range a.Capabilities {
		if !slices.Contains(names, c) {
			return fmt.Errorf("there is no capability %q%s: use %s", c, suggest(c, names), strings.Join(names, ", "))
		}
		if slices.Contains(a.Capabilities[:i], c) {
			return fmt.Errorf("%s stands there twice", c)
		}
	}
	return nil
}

// CapabilityNames lists the capabilities in the order of the table.
func CapabilityNames() []string {
	var names []string
	for _, c := range Capabilities() {
		names = append(names, c.Name)
	}
	return names
}

// Admins lists who may do what, by name.
func (l *Ledger) Admins() []Admin { return slices.Collect(things[Admin](l, KindAdmin)) }

// JobAdmins lists who may act on everybody's jobs: who has the capability for that or for everything, and operators of PBS, who have those for queues and drains.
func (l *Ledger) JobAdmins() (names []string) {
	for _, a := range l.Admins() {
		has := func(capability string) bool { return slices.Contains(a.Capabilities, capability) }
		if has(CapabilityAll) || has(CapabilityJobs) || has(Allowing(KindQueue)) && has(Allowing(KindDrain)) {
			names = append(names, a.Who)
		}
	}
	return names
}

// May refuses with roost.PermissionDenied what a user, as "ann@node", has no capability for.
func (l *Ledger) May(who, capability string) error {
	user, _, _ := strings.Cut(who, "@")
	for _, name := range []string{who, user} {
		a, ok := one[Admin](l, KindAdmin, name)
		if ok && (slices.Contains(a.Capabilities, capability) || slices.Contains(a.Capabilities, CapabilityAll)) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s lacks the capability %q; root on a central manager gives it with: roost admin give %s %s",
		roost.PermissionDenied, who, capability, who, capability)
}
