package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// AdminRights contains the capabilities of a user who is not root on a central manager.
type AdminRights struct {
	User         string   `json:"who"` // "ann@node", or "ann" for a user of that name on any node of the pool
	Capabilities []string `json:"capabilities"`
}

// AdminCapability is a right that administrators can grant.
type AdminCapability struct {
	Name        string       `json:"name"`
	Kinds       []ObjectKind `json:"kinds,omitempty"` // the objects that it permits to set and remove
	Description string       `json:"what"`            // for people, beginning with a verb
}

// The capabilities that belong to no kind of object.
const (
	CapabilityAll     = "all"
	CapabilityJobs    = "jobs"    // acting on the jobs of all users
	CapabilityMembers = "members" // adding and removing replicas of the negotiator
	// changing rates, budgets and statements, which the accountant has
	CapabilityAccounts = "accounts"
)

// Capabilities returns the table of all capabilities. An operation that is not in the
// table requires root on a central manager. Reading requires no capability.
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
		{CapabilityAccounts, nil, "set rates and budgets, adjust statements, close months, and read everybody's usage"},
		{roost.CapabilityStaticPorts, nil, "have ports on all addresses of a machine (host = \"*\")"},
		{roost.CapabilityPrivilegedPorts, nil, "have ports with numbers below 1024"},
		{roost.CapabilityServices, nil, "have services and alloc sets, where the setting restricted names them"},
		{roost.AnyDeviceCapability, nil, "use the device X, which is gpu or the name of a limit, where the setting " +
			"restricted names it"},
		{roost.AnySecretUseCapability, nil, "have jobs with the secrets of the group X"},
		{roost.AnySecretSetCapability, nil, "set and remove the secrets of the group X, and have jobs with them"},
		{CapabilityAll, Kinds(), "do everything"},
	}
}

// CapabilityFor names the capability, other than all, that permits changing objects of a
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
	return nil // the users of other nodes are not known here
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
	for i, c := range a.Capabilities {
		if err := checkCapability(c, CapabilityNames()); err != nil {
			return err
		}
		if slices.Contains(a.Capabilities[:i], c) {
			return fmt.Errorf("%s is listed twice", c)
		}
	}
	return nil
}

// checkCapability returns what is wrong with the name of a capability. That of a device
// contains the name of the device, and that of secrets the name of a group.
func checkCapability(name string, known []string) error {
	if group, ok := roost.CapabilitySecretGroup(name); ok && slices.Contains(known, roost.AnySecretUseCapability) {
		return checkPlainName("a group", group)
	}
	if device, ok := roost.CapabilityDevice(name); ok {
		if err := checkPlainName("a device", device); err != nil {
			return err
		}
		if device != strings.ToLower(device) {
			return fmt.Errorf("%q has capital letters: write %s", name, roost.DeviceCapability(device))
		}
		return nil
	}
	if !slices.Contains(known, name) {
		return fmt.Errorf("there is no capability %q%s: use %s", name, suggestName(name, known),
			strings.Join(known, ", "))
	}
	return nil
}

// Restricted lists the capabilities without which users may not have certain jobs, by the
// setting of that name.
func (l *Ledger) Restricted() []string { return capabilityList(l.SettingText(SettingRestricted)) }

// capabilityList reads names with commas or spaces between them.
func capabilityList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// checkRestricted returns what is wrong with a value of the setting restricted.
func checkRestricted(text string) error {
	list, known := capabilityList(text), []string{roost.CapabilityServices, roost.AnyDeviceCapability}
	for i, name := range list {
		if err := checkCapability(name, known); err != nil {
			return err
		}
		if slices.Contains(list[:i], name) {
			return fmt.Errorf("%s is listed twice", name)
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

// Admins lists the rights of all administrators by name.
func (l *Ledger) Admins() []AdminRights {
	return slices.Collect(objectValues[AdminRights](l, KindAdmin))
}

// JobAdmins lists the users who may act on the jobs of all users. They have the
// capability for jobs or for everything, or are PBS operators, who have those for queues
// and drains.
func (l *Ledger) JobAdmins() (names []string) {
	for _, a := range l.Admins() {
		has := func(capability string) bool { return slices.Contains(a.Capabilities, capability) }
		if has(CapabilityAll) || has(CapabilityJobs) || has(CapabilityFor(KindQueue)) && has(CapabilityFor(KindDrain)) {
			names = append(names, a.User)
		}
	}
	return names
}

// Holders lists the users who have a capability, or that for everything.
func (l *Ledger) Holders(capability string) (names []string) {
	for _, a := range l.Admins() {
		if slices.Contains(a.Capabilities, capability) || slices.Contains(a.Capabilities, CapabilityAll) {
			names = append(names, a.User)
		}
	}
	return names
}

// CheckCapability returns roost.PermissionDenied if a user, as "ann@node", lacks a
// capability.
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
