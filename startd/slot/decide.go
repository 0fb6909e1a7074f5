package slot

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// ClaimRequest is a schedd's wish for a claim, with the facts that only the shell can find out.
type ClaimRequest struct {
	Session   uint64
	Schedd    string
	Grant     GrantID
	Owner     string
	UID, GID  uint32
	Ad        *classad.Ad // the request's; without Requirements it takes any machine
	Resources roost.Resources
	Lease     time.Duration

	Capable bool         // the capability was made with this machine's key, for exactly this grant
	Account error        // why tasks of that user cannot run here; nil: they can
	Env     *classad.Env // for the Requirements
}

// Decide carves a claim, or refuses. Either way the effects answer the schedd; the claim is returned for those who want to look at it. A wish on
// an old session gets no answer, and its error is roost.Stale.
func (c *Core) Decide(now Instant, r ClaimRequest) (*Claim, error) {
	if !c.current(r.Schedd, r.Session) {
		return nil, fmt.Errorf("claim for %s: %w: its session has ended", r.Schedd, roost.Stale)
	}
	ru, err := c.admit(r)
	if err != nil {
		c.emit(Refuse{r.Session, r.Grant, err.Error()})
		return nil, err
	}
	c.used[r.Grant.ID] = true
	claim := &Claim{
		ID: c.nextID, Grant: r.Grant, Schedd: r.Schedd, Owner: r.Owner, UID: r.UID, GID: r.GID, RU: ru, Resources: r.Resources,
		Lease: now + r.Lease, Period: r.Lease, session: r.Session,
	}
	c.nextID++
	c.claims[claim.ID] = claim
	c.take(claim)
	c.wake = min(c.wake, claim.Lease)
	c.emit(Make{claim})
	return claim, nil
}

// admit says which RU the claim is to be a part of, or why there is none. An epoch counts as seen only when its capability is good, or anybody
// could depose the negotiator.
func (c *Core) admit(r ClaimRequest) (ru int, err error) {
	switch {
	case !r.Capable:
		return 0, fmt.Errorf("%w: the grant was not made for this machine since its startd started", roost.PermissionDenied)
	case r.Grant.Epoch < c.epoch:
		return 0, fmt.Errorf("%w: the grant is of epoch %d, and the negotiator of epoch %d rules", roost.Stale, r.Grant.Epoch, c.epoch)
	case r.Grant.Epoch > c.epoch:
		c.epoch = r.Grant.Epoch
		clear(c.used)
	}
	switch {
	case c.used[r.Grant.ID]:
		return 0, fmt.Errorf("%w: the grant was used before", roost.Stale)
	case c.draining != "":
		return 0, fmt.Errorf("%w: %s", roost.Unavailable, c.draining)
	case r.Lease <= 0 || r.Resources.Negative() || r.Resources == roost.Resources{}:
		return 0, fmt.Errorf("%w: a claim of %v for %v", roost.Invalid, r.Resources, r.Lease)
	case r.Account != nil:
		return 0, r.Account
	}
	if ru, err = c.place(r.Resources); err != nil {
		return 0, err
	}
	return ru, c.match(r)
}

// place picks the RU for a claim: the fullest that has room, so that the others keep theirs for what is bigger.
func (c *Core) place(r roost.Resources) (int, error) {
	best := -1
	for i, ru := range c.rus {
		if r.Fits(ru.Free) && (best < 0 || ru.Free.CPU < c.rus[best].Free.CPU) {
			best = i
		}
	}
	if best >= 0 {
		return best, nil
	}
	var free roost.Resources
	for _, ru := range c.rus {
		free = free.Add(ru.Free)
	}
	return 0, fmt.Errorf("%w: %s", roost.Exhausted, shortage(r, free))
}

// shortage says what is missing.
func shortage(want, free roost.Resources) string {
	var missing []string
	add := func(short bool, text string) {
		if short {
			missing = append(missing, text)
		}
	}
	add(want.CPU > free.CPU, fmt.Sprintf("%v of %v cpus", free.CPU, want.CPU))
	add(want.Memory > free.Memory, fmt.Sprintf("%v of %v memory", free.Memory, want.Memory))
	add(want.Disk > free.Disk, fmt.Sprintf("%v of %v disk", free.Disk, want.Disk))
	add(want.GPUs > free.GPUs, fmt.Sprintf("%d of %d gpus", free.GPUs, want.GPUs))
	if len(missing) == 0 {
		return "no single resource unit has so much free"
	}
	return "only " + strings.Join(missing, ", ") + " are free"
}

// match evaluates both sides' Requirements as they are now: the negotiator decided on what it knew then.
func (c *Core) match(r ClaimRequest) error {
	job := r.Ad
	if job == nil {
		job = classad.New()
	}
	if _, ok := job.Lookup(roost.AttrRequirements); !ok {
		job = job.Copy()
		job.SetBool(roost.AttrRequirements, true)
	}
	m := classad.Match(c.Ad(), job, r.Env)
	switch {
	case m.Matched:
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
	ad := c.opt.Ad.Copy()
	var total, free roost.Resources
	for _, ru := range c.rus {
		total, free = total.Add(ru.Total), free.Add(ru.Free)
	}
	describe(ad, total, roost.AttrTotalCpus, roost.AttrTotalMemory, roost.AttrTotalDisk, roost.AttrTotalGpus)
	describe(ad, free, roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus)
	state := "Unclaimed"
	switch {
	case c.draining != "":
		state = "Drained"
	case len(c.claims) > 0:
		state = "Claimed"
	}
	ad.SetString(roost.AttrState, state)
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
