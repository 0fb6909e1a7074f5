package negotiator

import (
	"github.com/roost-batch/roost/negotiator/ledger"
)

// portRights returns which of the capabilities that a request needs for its ports its
// owner has. The machine reads them in the grant, and refuses what they do not allow.
func (c *leaderState) portRights(r *scheddRequest) (rights []string) {
	if len(r.Class.PortCapabilities) == 0 {
		return nil
	}
	c.ledgerStore.view(func(l *ledger.Ledger) {
		for _, needed := range r.Class.PortCapabilities {
			if l.CheckCapability(r.Submitter.Owner+"@"+r.Key.Schedd, needed) == nil {
				rights = append(rights, needed)
			}
		}
	})
	return rights
}
