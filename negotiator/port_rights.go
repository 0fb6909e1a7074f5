package negotiator

import (
	"context"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// portRights returns which of the capabilities that a request needs for its ports its
// owner has. The machine reads them in the grant, and refuses what they do not allow.
func (c *leaderState) portRights(r *scheddRequest) (rights []string) {
	if len(r.Class.PortCapabilities) == 0 {
		return nil
	}
	owner := r.Submitter.Owner + "@" + c.submitHost(r)
	c.ledgerStore.view(func(l *ledger.Ledger) {
		for _, needed := range r.Class.PortCapabilities {
			if l.CheckCapability(owner, needed) == nil {
				rights = append(rights, needed)
			}
		}
	})
	return rights
}

// submitHost returns the submit node of a request's owner, to whom capabilities are
// given. That is the schedd's own node. The queue of the cell has jobs of all submit
// nodes and names them in the ads of requests. No other schedd is believed in that: its
// users would have the rights of users of the same name elsewhere.
func (c *leaderState) submitHost(r *scheddRequest) string {
	if s := c.schedds[r.Key.Schedd]; s != nil && s.namesSubmitHosts && r.Class.SubmitHost != "" {
		return r.Class.SubmitHost
	}
	return r.Key.Schedd
}

// mayNameSubmitHosts reports whether the caller may say at which submit nodes the jobs of
// a schedd were submitted. A member of the queue of the cell may, as schedd of that queue
// only. Daemons of this host may speak for any node.
func mayNameSubmitHosts(ctx context.Context, schedd string) bool {
	p, ok := peer.FromContext(ctx)
	return ok && (p.Local || p.CellQueue != "" && p.CellQueue == schedd)
}
