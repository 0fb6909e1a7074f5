package slot

import (
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// ClaimRequest is a schedd's wish for a claim, with the facts that only the shell can
// find out.
type ClaimRequest struct {
	Session       uint64
	Schedd        string
	Grant         roost.GrantID
	Owner         string
	Info          ClaimInfo
	UID, GID      uint32
	Ad            *classad.Ad // the request's; without Requirements it takes any machine
	Resources     roost.Resources
	Class         gpu.AppClass
	CanQueue      bool             // a batch claim may be accepted without its resources
	Victims       PreemptionReason // who has to go for it; nobody does if it has room anyway
	GrantDeadline roost.BootTime   // when the grant ends, which takes licences; 0: it does not
	Lease         time.Duration
	Ports         PortNeeds
	Alloc         ClaimID // the claim inside which this one is to be; 0: it is a part of the machine

	TokenValid   bool             // the capability was made with this machine's key, for exactly this grant
	AccountError error            // why tasks of that user cannot run here; nil: they can
	Env          *classad.EvalEnv // for the Requirements

	adBytes int // bytes that the machine's ad may need for it, once it is admitted
}

// admission is the claim table as far as it decides on requests for claims.
type admission struct{ *ClaimTable }

func (c *ClaimTable) admission() admission { return admission{c} }

// DecideClaim carves a claim, or refuses. Either way the effects answer the schedd; the
// claim is returned for those who want to look at it. A wish on an old session gets no
// answer, and its error is roost.Stale.
func (c *ClaimTable) DecideClaim(now roost.BootTime, r ClaimRequest) (*Claim, error) {
	if !c.sessions.isCurrent(r.Schedd, r.Session) {
		return nil, fmt.Errorf("claim for %s: %w: its session has ended", r.Schedd, roost.Stale)
	}
	c.now = now
	if r.Alloc != 0 {
		return allocsOf(c).decideInside(&r)
	}
	// What stands in a queue holds nothing, and so the machine's ad says nothing of it:
	// nobody would know of its licences.
	r.CanQueue = r.CanQueue && r.Info.Limits == "" && !r.Info.Alone
	plan, err := c.admission().placeRequest(&r)
	var ports []roost.ClaimPort
	if err == nil {
		ports, err = c.admission().findPorts(r.Ports)
	}
	if err != nil {
		c.addEffect(RejectClaim{r.Session, r.Grant, err.Error()})
		return nil, err
	}
	c.usedGrants[r.Grant.ID] = true
	claim := &Claim{
		ID: c.ids.take(), Grant: r.Grant, Schedd: r.Schedd, Owner: r.Owner, Info: r.Info, UID: r.UID, GID: r.GID,
		Class: r.Class, CanQueue: r.CanQueue && !c.opt.Queue.isOff(),
		Resources: r.Resources, Placement: plan.placement, Lease: now + r.Lease, LeasePeriod: r.Lease,
		session: r.Session, queue: nowhere,
		adBytes: r.adBytes,
	}
	c.addClaim(claim)
	PortsOf(c).hold(claim, r.Ports.Job, ports)
	c.nextDeadline = min(c.nextDeadline, claim.Lease)
	c.addEffect(CreateClaim{claim})
	switch {
	case len(plan.victims) > 0:
		c.preemptions().evictVictims(claim, plan, r.Victims)
	case plan.waits:
		claim.PredictedWait = plan.wait
		c.nodeQueues().joinQueue(claim, plan.unit)
	default:
		c.takeResources(claim)
	}
	return claim, nil
}

func (r *ClaimRequest) request() gpu.DeviceRequest {
	return gpu.DeviceRequest{Resources: r.Resources, Class: r.Class, MayReclaim: !r.Info.Band.IsProd()}
}

// claimPlacement is where a claim goes: what it gets, or the unit in whose queue it
// waits.
type claimPlacement struct {
	placement gpu.Placement
	victims   []*Claim // who has to go for it
	waits     bool
	unit      int
	wait      time.Duration
}

// placeRequest says where the claim goes, or why nowhere. An epoch counts as seen only
// when its capability is good, or anybody could depose the negotiator.
func (c admission) placeRequest(r *ClaimRequest) (p claimPlacement, err error) {
	switch {
	case !r.TokenValid:
		return p, fmt.Errorf("%w: the grant was not made for this machine since its startd started, or not for "+
			"this schedd", roost.PermissionDenied)
	case r.Grant.Epoch < c.epoch:
		return p, fmt.Errorf("%w: the grant is of epoch %d, and the negotiator of epoch %d rules", roost.Stale,
			r.Grant.Epoch, c.epoch)
	case r.Grant.Epoch > c.epoch:
		c.epoch = r.Grant.Epoch
		clear(c.usedGrants)
	}
	switch {
	case r.GrantDeadline != 0 && c.now > r.GrantDeadline:
		c.version++ // the next ad says what time it is here
		return p, fmt.Errorf("%w: the grant ended %v ago, and its licences may be somebody else's by now", roost.Stale,
			(c.now - r.GrantDeadline).Round(time.Millisecond))
	case c.usedGrants[r.Grant.ID]:
		return p, fmt.Errorf("%w: the grant was used before", roost.Stale)
	case c.drainReason != "":
		return p, fmt.Errorf("%w: %s", roost.Unavailable, c.drainReason)
	case c.unavailableReason != "":
		return p, fmt.Errorf("%w: %s", roost.Unavailable, c.unavailableReason)
	case r.Lease <= 0 || r.Resources.IsNegative() || r.Resources == roost.Resources{}:
		return p, fmt.Errorf("%w: a claim of %v for %v", roost.Invalid, r.Resources, r.Lease)
	case r.AccountError != nil:
		return p, r.AccountError
	}
	if err := c.checkAdRoom(r); err != nil {
		return p, err
	}
	if r.Info.Alone {
		return c.admitExclusive(r)
	}
	if who := c.claims.exclusive(); who != nil && len(r.Victims.Claims) == 0 {
		return p, fmt.Errorf("%w: %s has the machine alone", roost.Exhausted, who.ownerLabel())
	}
	if r.Class == gpu.BatchClass {
		c.lastBatchRequest = r.request()
	}
	if p.placement, err = c.free.PlaceOrExplain(r.request()); err == nil {
		return p, c.matchRequirements(c.Ad(), r)
	}
	victims, wrong := c.preemptions().preemptibleVictims(r.Victims.Claims)
	if wrong != nil {
		return p, wrong
	}
	if len(victims) > 0 {
		return c.preemptions().planPreemption(r, victims)
	}
	return c.enqueue(r, err)
}

// enqueue finds a place in a node queue for a request that has no room now. The error
// says why there is none.
func (c admission) enqueue(r *ClaimRequest, err error) (p claimPlacement, _ error) {
	if p.unit, p.wait, p.waits = c.nodeQueues().findQueue(c.now, *r); !p.waits {
		if !c.opt.Queue.isOff() && r.CanQueue && r.Class == gpu.BatchClass {
			err = fmt.Errorf("%w, and no queue has room for it", err)
		}
		return p, err
	}
	// What falls free until then nobody knows; that it is enough, the queue sees to. So
	// its requirements are held against all that there is.
	return p, c.matchRequirements(c.adWriter().ad(c.free.EmptyClone()), r)
}

// matchRequirements evaluates both sides' Requirements as they are now: the negotiator
// decided on what it knew then. It notes how the machine ranks the request.
func (c admission) matchRequirements(machine *classad.Ad, r *ClaimRequest) error {
	job := r.Ad
	if job == nil {
		job = classad.New()
	}
	if _, ok := job.Lookup(roost.AttrRequirements); !ok {
		job = job.Copy()
		job.SetBool(roost.AttrRequirements, true)
	}
	m := classad.Match(machine, job, r.Env)
	switch {
	case m.Matched:
		if r.Info.Rank = m.LeftRank; math.IsNaN(m.LeftRank) || math.IsInf(m.LeftRank, 0) {
			r.Info.Rank = 0 // a file cannot say that
		}
		return nil
	case !m.Left.IsTrue():
		return fmt.Errorf("%w: the machine's Start is %v for this request", roost.Conflict, m.Left)
	default:
		return fmt.Errorf("%w: the request's Requirements are %v for this machine", roost.Conflict, m.Right)
	}
}
