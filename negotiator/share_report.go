package negotiator

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// poolStatus is the status of the pool, for queries.
type poolStatus struct {
	ledger.PoolUse
	machineExists func(name string) bool // reports whether a machine of that name exists
}

// checkMachineExists refuses a command about an unknown machine.
func (p *poolStatus) checkMachineExists(l *ledger.Ledger, c *ledger.AdminCommand) error {
	for _, name := range l.Nodes(c) {
		if !p.machineExists(name) {
			return fmt.Errorf("%s: %w: no node of that name is in the pool; roost nodes lists them, and --force sets "+
				"it nevertheless", name, roost.NotFound)
		}
	}
	return nil
}
