package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// AdminRights is what somebody may do who is not root on a central manager.
type AdminRights struct {
	User         string   `json:"who"` // "ann@node", or "ann" for a user of that name on any node of the pool
	Capabilities []string `json:"capabilities"`
}

// AdminCapability is a right that can be given.
type AdminCapability struct {
	Name        string       `json:"name"`
	Kinds       []ObjectKind `json:"kinds,omitempty"` // the objects that it allows to set and remove
	Description string       `json:"what"`            // for people, beginning with a verb
}

// The capabilities that are no kind's.
const (
	CapabilityAll     = "all"
	CapabilityJobs    = "jobs"    // acting on everybody's jobs
	CapabilityMembers = "members" // adding and removing replicas of the negotiator
)

// Capabilities is the one table of who may do what: what is not in it only root on a
// central manager may. Reading needs no capability.
func Capabilities() []AdminCapability {
	return []AdminCapability{
		{"shares", []ObjectKind{KindSubmitter},
			"set factors, floors and ceilings of submitters, and reset what they have used"},
		{"groups", []ObjectKind{KindGroup}, "set the groups and their part of the pool"},
		{"quotas", []ObjectKind{KindQuota}, "set quotas"},
		{"limits", []ObjectKind{KindLimit, KindResource}, "set concurrency limits, and say what resources there are"},
		{"queues", []ObjectKind{KindQueue, KindPool}, "set queues, and what holds for the jobs of all"},
		{"reservations", []ObjectKind{KindReservation}, "reserve parts of the pool"},
		{"drains", []ObjectKind{KindDrain, KindComment}, "drain nodes, and say something about them"},
		{"settings", []ObjectKind{KindSetting}, "change the settings of the cell"},
		{"admins", []ObjectKind{KindAdmin}, "give and take capabilities, and so all of them"},
		{CapabilityJobs, nil, "hold, release, remove, run again and change the jobs of all users, at all submit nodes"},
		{CapabilityMembers, nil, "add and remove central managers"},
		{CapabilityAll, Kinds(), "do everything"},
	}
}

// CapabilityFor names the capability, other than all, that allows to change objects of a
// kind.
func CapabilityFor(kind ObjectKind) string {
	for _, c := range Capabilities() {
		if slices.Contains(c.Kinds, kind) {
			return c.Name
		}
	}
	return CapabilityAll
}

func (a AdminRights) name() string     { return a.User }
func (a AdminRights) groups() []string { return nil }

func (a AdminRights) users() []string {
	if user, _, remote := strings.Cut(a.User, "@"); !remote {
		return []string{user}
	}
	return nil // of another node nobody here knows the users
}

func (a AdminRights) check(*Ledger) error {
	user, node, remote := strings.Cut(a.User, "@")
	if err := checkAccountName("a user", user); err != nil {
		return err
	}
	if remote {
		if err := checkAccountName("a node", node); err != nil {
			return err
		}
		if strings.Contains(node, "@") {
			return fmt.Errorf("%q is no user of a node: write it as ann@n1", a.User)
		}
	}
	if len(a.Capabilities) == 0 {
		return errors.New("it gives no capability: remove it instead, if that is what you mean")
	}
	names := CapabilityNames()
	for i, c := range a.Capabilities {
		if !slices.Contains(names, c) {
			return fmt.Errorf("there is no capability %q%s: use %s", c, suggestName(c, names),
				strings.Join(names, ", "))
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
func (l *Ledger) Admins() []AdminRights {
	return slices.Collect(objectValues[AdminRights](l, KindAdmin))
}

// JobAdmins lists who may act on everybody's jobs: who has the capability for that or for
// everything, and operators of PBS, who have those for queues and drains.
func (l *Ledger) JobAdmins() (names []string) {
	for _, a := range l.Admins() {
		has := func(capability string) bool { return slices.Contains(a.Capabilities, capability) }
		if has(CapabilityAll) || has(CapabilityJobs) || has(CapabilityFor(KindQueue)) && has(CapabilityFor(KindDrain)) {
			names = append(names, a.User)
		}
	}
	return names
}

// CheckCapability refuses with roost.PermissionDenied what a user, as "ann@node", has no
// capability for.
func (l *Ledger) CheckCapability(who, capability string) error {
	user, _, _ := strings.Cut(who, "@")
	for _, name := range []string{who, user} {
		a, ok := objectNamed[AdminRights](l, KindAdmin, name)
		if ok && (slices.Contains(a.Capabilities, capability) || slices.Contains(a.Capabilities, CapabilityAll)) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s lacks the capability %q; root on a central manager gives it with: roost admin give %s %s",
		roost.PermissionDenied, who, capability, who, capability)
}
