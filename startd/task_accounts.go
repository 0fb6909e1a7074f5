package startd

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
)

// lookUpCredential looks up as which user a request's tasks would run. This happens
// before the loop gets the request, because the loop must not wait for a user directory.
func (m *startdHost) lookUpCredential(schedd string, message *wire.ToStartd) accountDecision {
	r := message.GetClaim()
	if r == nil {
		return accountDecision{}
	}
	c := claim.Claimant{Node: schedd, UID: r.GetUid(), GID: r.GetGid(), GroupChosen: r.GetGroupChosen()}
	ofCell := schedd == m.node.CellQueueName()
	if ofCell || m.config.Accounts.Users == config.SlotUser {
		if ad, err := classad.Parse(r.GetAd()); err == nil {
			c.Domain, _ = ad.Str(roost.AttrFileSystemDomain)
			if origin, ok := ad.Str(roost.AttrSubmitHost); ok && ofCell {
				c.Node = origin // the node that vouched for the user
			}
		}
	}
	rights, err := m.accounts.Resolve(c)
	return accountDecision{rights, err}
}

// accountDecision is the answer of claim.Accounts.Resolve.
type accountDecision struct {
	rights claim.Credential
	err    error
}

// claimCredential chooses the slot user of a claim that is to have one.
func (l *machineLoop) claimCredential(schedd string, uid uint32, r claim.Credential) (userfiles.UserCredential, error) {
	if !r.SlotUserPending {
		return r.UserCredential, nil
	}
	return l.host.accounts.ChooseSlotUser(schedd, uid, func(slot uint32) bool {
		for _, h := range l.runners {
			if h.HasSlotUser(slot, schedd, uid) {
				return true
			}
		}
		return false
	})
}
