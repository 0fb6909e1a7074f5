package match

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// FairShare lets batch displace batch: of a submitter whose effective priority is worse, after a while, where the administrator's expression allows
// it. It is evaluated as HTCondor evaluates PREEMPTION_REQUIREMENTS: MY is the machine as the claim has it, TARGET the request; if it is not true, for
// whatever cause, it denies. MY has, beside the machine's attributes,
//
//	RemoteOwner, RemoteGroup, RemoteUserPrio (effective), RemoteJobId         of the claim
//	SubmitterGroup, SubmitterUserPrio (effective)                             of who wants its place
//	TotalJobRunTime (seconds), LostWork (seconds), JobCheckpoint (can be saved)  of its task
type FairShare struct {
	Allows     classad.Expr
	MinRuntime time.Duration // a task runs at least so long
}

// margin is by how much the effective priority of who displaces has to be better, whatever the expression says: HTCondor's usual 1.2. With less, two
// submitters of about the same priority would displace each other in turn.
const margin = 1.2

// fairer reports whether fair share lets a want displace a claim of its own band. What is not run again nobody loses for that.
func (p *plan) fairer(w *want, m *Machine, c *Claim) bool {
	f := p.Preemption.Fair
	if f == nil || c.ruined() || c.Submitter == w.Submitter || c.Since == 0 || p.now-c.Since < int64(f.MinRuntime/time.Second) {
		return false
	}
	mine, theirs := w.account.effective(), p.account(c.Submitter).effective()
	if theirs < margin*mine {
		return false
	}
	ad := m.Ad.Copy()
	ad.SetString("RemoteOwner", c.Submitter.Owner)
	ad.SetString("RemoteGroup", c.Submitter.Group)
	ad.SetReal("RemoteUserPrio", theirs)
	ad.SetString("RemoteJobId", c.Job)
	ad.SetString("SubmitterGroup", w.Submitter.Group)
	ad.SetReal("SubmitterUserPrio", mine)
	ad.SetInt("TotalJobRunTime", p.now-c.Since)
	ad.SetInt("LostWork", c.lost(p.now))
	ad.SetBool("JobCheckpoint", c.Checkpoint)
	ok, isBool := classad.Eval(f.Allows, ad, w.Class.Ad, &p.env).Truth()
	return ok && isBool
}

// preemptText says in a few words why a want that waits does not displace anybody; empty where that goes without saying.
func (p *plan) preemptText(w *want) string {
	h := &w.hunt
	switch {
	case h.awaits > 0 && h.awaits == w.left:
		return "; room is being made for it"
	case h.awaits > 0:
		return fmt.Sprintf("; room is being made for %d of %d", h.awaits, w.left)
	case !h.failed:
		return ""
	case p.exhausted():
		return fmt.Sprintf("; as many tasks as may be in an hour have been displaced for others (%d in this round)", p.evicted)
	case w.Band.Prod() && p.anyProd():
		return "; nobody below production has what it needs, and production is not displaced"
	}
	return ""
}

// anyProd reports whether some machine has a claim of prod.
func (p *plan) anyProd() bool {
	for _, m := range p.Machines {
		for i := range m.Claims {
			if m.Claims[i].Band >= roost.Production {
				return true
			}
		}
	}
	return false
}
