package startd

import (
	"cmp"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
)

// lookUpCredential looks up as which user a request's tasks would run. This happens
// before the loop gets the request, because the loop must not wait for a user directory.
func (m *startdHost) lookUpCredential(s *scheddSession, message *wire.ToStartd) accountDecision {
	r := message.GetClaim()
	if r == nil {
		return accountDecision{}
	}
	schedd := s.schedd
	if p := m.config.Pilot; p != nil {
		return pilotAccount(p, schedd, r)
	}
	if s.guest.pool != "" {
		rights, err := m.accounts.ResolveGuest(s.guest.pool)
		return accountDecision{rights, cmp.Or(s.guest.refusal(r), err)}
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

// pilotAccount decides on a claim of a pilot: tasks of its owner run as this process, and
// no others do. What may not end before the pilot does not begin.
func pilotAccount(p *config.PilotSettings, schedd string, r *wire.ClaimRequest) accountDecision {
	if !p.Owner.Admits(r.GetOwner(), schedd) {
		return accountDecision{err: fmt.Errorf("%w: this is a pilot of %s, and the tasks are of %s at %s",
			roost.PermissionDenied, p.Owner, r.GetOwner(), schedd)}
	}
	if !p.Until.IsZero() {
		left, walltime := time.Until(p.Until), time.Duration(0)
		if ad, err := classad.Parse(r.GetAd()); err == nil {
			seconds, _ := ad.Int(roost.AttrWalltime)
			walltime = time.Duration(seconds) * time.Second
		}
		if walltime <= 0 || walltime > left {
			return accountDecision{err: fmt.Errorf("%w: the allocation of this pilot ends in %v, and the tasks may "+
				"take longer", roost.Exhausted, left.Round(time.Second))}
		}
	}
	return accountDecision{rights: claim.Credential{UserCredential: claim.OwnCredential()}}
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
