package pbs

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/pbs/qmgr"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// PBS's managers are who may do everything, and its operators who may work on queues and
// nodes; Roost gives capabilities one by one. So a manager has the capability all, and an
// operator those of [operating]. Who has some others is neither, and qmgr leaves him
// alone.

// operatorCapabilities are the capabilities of an operator.
func operatorCapabilities() []string { return []string{"queues", "drains"} }

// people reads who are managers and operators.
func (s *qmgrSession) people(o *qmgr.Object) error {
	var admins []admin.AttributedObject[ledger.AdminRights]
	if err := admin.CellObjects(s.Invocation, string(ledger.KindAdmin), &admins); err != nil {
		return err
	}
	for _, a := range admins {
		switch {
		case slices.Contains(a.Object.Capabilities, ledger.CapabilityAll):
			o.Managers = append(o.Managers, pbsPerson(a.Object.User))
		case containsAll(a.Object.Capabilities, operatorCapabilities()):
			o.Operators = append(o.Operators, pbsPerson(a.Object.User))
		}
	}
	return nil
}

// containsAll reports whether all of some words are in a list.
func containsAll(list, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(list, w) })
}

// pbsPerson is how PBS writes a user, of any node or of one.
func pbsPerson(who string) string {
	if !strings.Contains(who, "@") {
		return who + "@*"
	}
	return who
}

// changePeople gives and takes capabilities, so that managers and operators are who they
// are to be.
func (s *qmgrSession) changePeople(before, after *qmgr.Object) error {
	if slices.Equal(before.Managers, after.Managers) && slices.Equal(before.Operators, after.Operators) {
		return nil
	}
	var admins []admin.AttributedObject[ledger.AdminRights]
	if err := admin.CellObjects(s.Invocation, string(ledger.KindAdmin), &admins); err != nil {
		return err
	}
	has := map[string][]string{}
	for _, a := range admins {
		has[a.Object.User] = a.Object.Capabilities
	}
	were := slices.Concat(before.Managers, before.Operators)
	are := slices.Concat(after.Managers, after.Operators)
	for _, p := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(were, are)))) {
		who := strings.TrimSuffix(p, "@*")
		now := capabilitiesOf(has[who], slices.Contains(after.Managers, p), slices.Contains(after.Operators, p),
			slices.Contains(were, p))
		var err error
		switch {
		case slices.Equal(now, has[who]):
		case len(now) == 0:
			err = admin.RemoveObject(s.Invocation, ledger.VerbRemove, ledger.KindAdmin, who)
		default:
			err = s.setObject(ledger.KindAdmin, map[string]any{"who": who, "capabilities": now})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// capabilitiesOf is what a user has who becomes a manager, an operator or neither, and
// was one before. What else he has stays.
func capabilitiesOf(has []string, manager, operator, was bool) []string {
	now := slices.Clone(has)
	if was {
		now = slices.DeleteFunc(now, func(c string) bool {
			return c == ledger.CapabilityAll || !manager && slices.Contains(operatorCapabilities(), c)
		})
	}
	if manager {
		now = append(now, ledger.CapabilityAll)
	}
	if operator {
		for _, c := range operatorCapabilities() {
			if !slices.Contains(now, c) {
				now = append(now, c)
			}
		}
	}
	return now
}
