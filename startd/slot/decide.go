package slot

import (
	"fmt"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// ClaimRequest is a schedd's wish for a claim, with the facts that only the shell can find out.
type ClaimRequest struct {
	Session   uint64
	Schedd    string
	Grant     GrantID
	Owner     string
	About     About
	UID, GID  uint32
	Ad        *classad.Ad // the request's; without Requirements it takes any machine
	Resources roost.Resources
	Class     gpu.Class
	MayWait   bool    // a batch claim may be accepted without its resources
	Evicted   Evicted // who has to go for it; nobody does if it has room anyway
	By        Instant // when the grant ends, which takes licences; 0: it does not
	Lease     time.Duration

	Capable bool         // the capability was made with this machine's key, for exactly this grant
	Account error        // why tasks of that user cannot run here; nil: they can
	Env     *classad.Env // for the Requirements

	text int // bytes that the machine's ad may need for it, once it is admitted
}

// Decide carves a claim, or refuses. Either way the effects answer the schedd; the claim is returned for those who want to look at it. A wish on
// an old session gets no answer, and its error is roost.Stale.
func (c *Core) Decide(now Instant, r ClaimRequest) (*Claim, error) {
	if !c.current(r.Schedd, r.Session) {
		return nil, fmt.Errorf("claim for %s: %w: its session has ended", r.Schedd, roost.Stale)
	}
	c.now = now
	// What stands in a queue holds nothing, and so the machine's ad says nothing of it: nobody would know of its licences.
	r.MayWait = r.MayWait && r.About.Limits == "" && !r.About.Alone
	plan, err := c.admit(&r)
	if err != nil {
		c.emit(Refuse{r.Session, r.Grant, err.Error()})
		return nil, err
	}
	c.used[r.Grant.ID] = true
	claim := &Claim{
		ID: c.nextID, Grant: r.Grant, Schedd: r.Schedd, Owner: r.Owner, About: r.About, UID: r.UID, GID: r.GID, Class: r.Class, MayWait: r.MayWait && !c.opt.Queue.off(),
		Resources: r.Resources, Placement: plan.placement, Lease: now + r.Lease, Period: r.Lease, session: r.Session, queue: nowhere,
		text: r.text,
	}
	c.nextID++
	c.enter(claim)
	c.wake = min(c.wake, claim.Lease)
	c.emit(Make{claim})
	switch {
	case len(plan.victims) > 0:
		c.evict(claim, plan, r.Evicted)
	case plan.waits:
		claim.Predicted = plan.wait
		c.join(claim, plan.unit)
	default:
		c.take(claim)
	}
	return claim, nil
}

func (r *ClaimRequest) request() gpu.Request {
	return gpu.Request{Resources: r.Resources, Class: r.Class, MayReclaim: !r.About.Band.Prod()}
}

// plan is where a claim goes: what it gets, or the unit in whose queue it waits.
type plan struct {
	placement gpu.Placement
	victims   []*Claim // who has to go for it
	waits     bool
	unit      int
	wait      time.Duration
}

// admit says where the claim goes, or why nowhere. An epoch counts as seen only when its capability is good, or anybody
// could depose the negotiator.
func (c *Core) admit(r *ClaimRequest) (p plan, err error) {
	switch {
	case !r.Capable:
		return p, fmt.Errorf("%w: the grant was not made for this machine since its startd started, or not for this schedd", roost.PermissionDenied)
	case r.Grant.Epoch < c.epoch:
		return p, fmt.Errorf("%w: the grant is of epoch %d, and the negotiator of epoch %d rules", roost.Stale, r.Grant.Epoch, c.epoch)
	case r.Grant.Epoch > c.epoch:
		c.epoch = r.Grant.Epoch
		clear(c.used)
	}
	switch {
	case r.By != 0 && c.now > r.By:
		c.version++ // the next ad says what time it is here
		return p, fmt.Errorf("%w: the grant ended %v ago, and its licences may be somebody else's by now", roost.Stale, (c.now - r.By).Round(time.Millisecond))
	case c.used[r.Grant.ID]:
		return p, fmt.Errorf("%w: the grant was used before", roost.Stale)
	case c.draining != "":
		return p, fmt.Errorf("%w: %s", roost.Unavailable, c.draining)
	case c.refused != "":
		return p, fmt.Errorf("%w: %s", roost.Unavailable, c.refused)
	case r.Lease <= 0 || r.Resources.Negative() || r.Resources == roost.Resources{}:
		return p, fmt.Errorf("%w: a claim of %v for %v", roost.Invalid, r.Resources, r.Lease)
	case r.Account != nil:
		return p, r.Account
	}
	if err := c.describable(r); err != nil {
		return p, err
	}
	if r.About.Alone {
		return c.admitAlone(r)
	}
	if who := c.alone(); who != nil && len(r.Evicted.Claims) == 0 {
		return p, fmt.Errorf("%w: %s has the machine alone", roost.Exhausted, who.who())
	}
	if r.Class == gpu.Batch {
		c.like = r.request()
	}
	if p.placement, err = c.free.Place(r.request()); err == nil {
		return p, c.match(c.Ad(), r)
	}
	victims, wrong := c.victims(r.Evicted.Claims)
	if wrong != nil {
		return p, wrong
	}
	if len(victims) > 0 {
		return c.inherit(r, victims)
	}
	return c.line(r, err)
}

// line finds a place in a queue for a request that has no room now, or says why there is none.
func (c *Core) line(r *ClaimRequest, err error) (p plan, _ error) {
	if p.unit, p.wait, p.waits = c.room(c.now, *r); !p.waits {
		if !c.opt.Queue.off() && r.MayWait && r.Class == gpu.Batch {
			err = fmt.Errorf("%w, and no queue has room for it", err)
		}
		return p, err
	}
	// What falls free until then nobody knows; that it is enough, the queue sees to. So its requirements are held against all that there is.
	return p, c.match(c.ad(c.free.Empty()), r)
}

// match evaluates both sides' Requirements as they are now: the negotiator decided on what it knew then. It notes how the machine ranks the request.
func (c *Core) match(machine *classad.Ad, r *ClaimRequest) error {
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
		if r.About.Rank = m.LeftRank; math.IsNaN(m.LeftRank) || math.IsInf(m.LeftRank, 0) {
			r.About.Rank = 0 // a file cannot say that
		}
		return nil
	case !m.Left.IsTrue():
		return fmt.Errorf("%w: the machine's Start is %v for this request", roost.Conflict, m.Left)
	default:
		return fmt.Errorf("%w: the request's Requirements are %v for this machine", roost.Conflict, m.Right)
	}
}

// Observe takes in the load average. It is what requests are held against until the next, so that claims are weighed by what was advertised.
func (c *Core) Observe(load float64) { c.load = &load }

// Ad is the machine's ad as it stands: what the options say, and what is free.
func (c *Core) Ad() *classad.Ad {
	c.advertise(c.free)
	return c.ad(c.free)
}

func (c *Core) ad(f *gpu.Free) *classad.Ad {
	ad := c.opt.Ad.Copy()
	describe(ad, f.Total(), roost.AttrTotalCpus, roost.AttrTotalMemory, roost.AttrTotalDisk, roost.AttrTotalGpus)
	describe(ad, f.Left(), roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus)
	f.Describe(ad)
	state := "Unclaimed"
	switch {
	case c.draining != "":
		state = "Drained"
	case len(c.claims) > 0:
		state = "Claimed"
	}
	ad.SetString(roost.AttrState, state)
	if c.alone() != nil {
		ad.SetBool(roost.AttrExclusive, true)
	}
	if c.full() {
		ad.SetBool(roost.AttrRequirements, false)
	}
	ad.SetInt(roost.AttrNumClaims, int64(len(c.claims)))
	ad.SetInt(roost.AttrNumRunning, int64(c.Running()))
	if c.load != nil {
		ad.SetReal(roost.AttrLoadAvg, *c.load)
	}
	return ad
}

func describe(ad *classad.Ad, r roost.Resources, cpus, memory, disk, gpus string) {
	if r.CPU%1000 == 0 {
		ad.SetInt(cpus, int64(r.CPU/1000))
	} else {
		ad.SetReal(cpus, r.CPU.Cores())
	}
	ad.SetInt(memory, int64(r.Memory/roost.MiB))
	ad.SetInt(disk, int64(r.Disk/roost.KiB))
	ad.SetInt(gpus, int64(r.GPUs))
}
