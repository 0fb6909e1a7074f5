package pbsframe

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// newPoolInventory is what a command can ask the pool about the names that a job uses.
// Each question is asked once.
func newPoolInventory(c *frame.Invocation) *qsub.PoolInventory {
	var names []string
	asked := false
	machines := func() (_ []string, err error) {
		if !asked {
			if names, err = admin.MachineNames(c); err == nil && len(names) == 0 {
				err = frame.KindErrorf(roost.Unavailable, "no machine advertises itself")
			}
			asked = err == nil
		}
		return names, err
	}
	known := map[string]bool{}
	return &qsub.PoolInventory{Machines: machines, IsDeclared: func(resource string) (is bool, err error) {
		if is, ok := known[resource]; ok {
			return is, nil
		}
		if _, err = machines(); err == nil {
			is, err = isResourceDeclared(c, resource)
		}
		if err == nil {
			known[resource] = is
		}
		return is, err
	}}
}

// isResourceDeclared reports whether an administrator has made a resource, or a machine
// has an attribute of its name.
func isResourceDeclared(c *frame.Invocation, resource string) (bool, error) {
	var made []admin.AttributedObject[ledger.CustomResource]
	if err := admin.CellObjects(c, string(ledger.KindResource), &made); err != nil {
		return false, err
	}
	if slices.ContainsFunc(made, func(r admin.AttributedObject[ledger.CustomResource]) bool {
		return strings.EqualFold(r.Object.Name, resource)
	}) {
		return true, nil
	}
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Machine", Constraint: resource + " isnt undefined",
		Projection: []string{roost.AttrName, resource}, Limit: 1})
	if err != nil {
		return false, err
	}
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			return false, err
		}
		if _, has := ad.Lookup(resource); has {
			return true, nil
		}
	}
	return false, nil
}
