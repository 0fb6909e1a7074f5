package plan

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// Action is what a decision orders.
type Action uint8

// The actions.
const (
	Nothing Action = iota
	Submit
	Cancel
)

var actionNames = [...]string{"nothing", "submit", "cancel"}

func (a Action) String() string { return actionNames[a] }

// Decision is what is to be done at a provider, and why.
type Decision struct {
	Provider string
	Action   Action
	Key      string // Cancel: of the allocation
	Nodes    int    // Submit
	Walltime time.Duration
	Reason   string
	// Cancel: its pilots never joined, which counts against the provider
	IsEarlyDeath bool
}

// UnmetDemand says why waiting tasks get no pilot of a provider.
type UnmetDemand struct {
	Job      string
	Provider string
	Units    int
	Reason   string
}

// The rates of submits.
const (
	submitInterval = 5 * time.Second  // between two submits to a provider
	roundLength    = 30 * time.Second // of rule R5
	manyNeeded     = 10               // allocations, above which rule R5 applies
	costWindow     = 24 * time.Hour   // of max_node_hours
)

// maxUnmet bounds the jobs for which a plan has reasons.
const maxUnmet = 100

// Result is a plan: at least one decision for each provider.
type Result struct {
	Decisions []Decision
	Unmet     []UnmetDemand
	Surplus   map[string]bool // allocations that nothing needs; NoteSurplus notes them
	Next      time.Time       // when a plan may be different if nothing happens; zero: never
}

// planning is one run of Plan.
type planning struct {
	*Provisioning
	*trialPlacement
	now    time.Time
	result Result
	gates  map[string]string // by provider: why it gets no submits now
}

// Plan decides what to do now. It changes nothing, and may be asked again. A decision to
// submit counts as done only when Begin has it.
func (v *Provisioning) Plan(now time.Time, demand []Demand, pilots []Pilot) Result {
	c := &planning{v, newTrial(now, demand), now, Result{Surplus: map[string]bool{}}, map[string]string{}}
	c.takePilots(v.knowEnds(now, pilots), func(key string) *provider.Settings {
		if a := v.Allocations[key]; a != nil {
			if p := v.Provider(a.Provider); p != nil {
				return &p.Settings
			}
		}
		return nil
	})
	for _, p := range v.Providers {
		c.takeComing(p)
	}
	for _, p := range v.Providers {
		c.planProvider(p)
	}
	c.explainUnmet()
	return c.result
}

// knowEnds returns the pilots with their ends. Where their ads have none, as they take
// tasks of any length, it is what follows from their allocations.
func (v *Provisioning) knowEnds(now time.Time, pilots []Pilot) []Pilot {
	pilots = slices.Clone(pilots)
	for i := range pilots {
		a := v.Allocations[pilots[i].Key]
		if a == nil || !pilots[i].Until.IsZero() {
			continue
		}
		if p := v.Provider(a.Provider); p != nil {
			pilots[i].Until = a.possibleEnd(now).Add(-p.Margin)
		}
	}
	return pilots
}

// wake asks for another plan at a time.
func (c *planning) wake(at time.Time) {
	if at.After(c.now) && (c.result.Next.IsZero() || at.Before(c.result.Next)) {
		c.result.Next = at
	}
}

// takeComing places demand on allocations that are yet to begin, and finds those that
// nothing needs.
func (c *planning) takeComing(p *Provider) {
	for _, a := range c.Living(p.Name) {
		nodes := a.comingNodes(c.now, p.JoinWithin)
		if nodes == 0 || mutant.Active(mutant.SupplyUncounted) {
			continue
		}
		if !c.takeAllocation(p, a, nodes) && a.isWaiting() {
			c.result.Surplus[a.Key] = true
			since := a.Surplus
			if since.IsZero() {
				since = c.now
			}
			c.wake(since.Add(p.Idle))
		}
	}
}

// planProvider decides for one provider.
func (c *planning) planProvider(p *Provider) {
	before := len(c.result.Decisions)
	for _, a := range c.Living(p.Name) {
		c.planCancel(p, a)
	}
	reason := c.planSubmit(p)
	if reason != "" {
		c.gates[p.Name] = reason
	}
	if len(c.result.Decisions) == before {
		if reason == "" {
			reason = "no task waits that needs it"
		}
		c.result.Decisions = append(c.result.Decisions, Decision{Provider: p.Name, Reason: reason})
	}
}

// cancelAgain is after how long a cancelling that had no effect is repeated.
const cancelAgain = 10 * time.Minute

// overdue is how long after its walltime an allocation that is still there is cancelled.
const overdue = 10 * time.Minute

// planCancel decides whether an allocation is to be cancelled.
func (c *planning) planCancel(p *Provider, a *Allocation) {
	if !a.CancelAt.IsZero() && c.now.Sub(a.CancelAt) < cancelAgain {
		c.wake(a.CancelAt.Add(cancelAgain))
		return
	}
	cancel := func(early bool, format string, args ...any) {
		reason := fmt.Sprintf(format, args...)
		if a.Reason != "" {
			reason = a.Reason // it is cancelled again
		}
		c.result.Decisions = append(c.result.Decisions, Decision{Provider: p.Name, Action: Cancel, Key: a.Key,
			Reason: reason, IsEarlyDeath: early})
	}
	silentSince := a.Started
	if a.Joins > 0 {
		silentSince = a.Left
	}
	switch {
	case !a.CancelAt.IsZero():
		cancel(false, "it was to be cancelled")
	case p.History.Leaving:
		cancel(false, "its provider was removed")
	case a.Failing != "":
		cancel(true, "%s", a.Failing)
	case a.isWaiting() && p.History.Stopped:
		cancel(false, "its provider is stopped: %s", p.History.StopReason)
	case a.isWaiting() && c.result.Surplus[a.Key] && !a.Surplus.IsZero():
		if c.now.Sub(a.Surplus) >= p.Idle {
			cancel(false, "no waiting task has needed it for %s", provider.SpanText(c.now.Sub(a.Surplus)))
		}
	case a.State == Running && a.Live == 0 && !silentSince.IsZero():
		at := silentSince.Add(p.JoinWithin)
		if c.wake(at); at.After(c.now) {
			return
		}
		if a.Joins == 0 {
			cancel(!a.Unwatched, "it has run for %s, and no pilot of it has joined the pool",
				provider.SpanText(c.now.Sub(a.Started)))
		} else {
			cancel(false, "all its pilots left the pool %s ago", provider.SpanText(c.now.Sub(a.Left)))
		}
	case a.State == Running && c.now.After(a.Started.Add(a.Walltime+overdue)):
		cancel(false, "it is still there %s after its walltime", provider.SpanText(overdue))
	}
}

// planSubmit decides whether to submit, and returns why not.
func (c *planning) planSubmit(p *Provider) (reason string) {
	recent := false // some tasks have not waited for long enough
	wanted := func(i int) int {
		d := &c.demand[i]
		if !p.FitsTime(d.Walltime, p.Walltime) {
			return 0
		}
		if due := d.Since.Add(p.Wait); due.After(c.now) {
			c.wake(due)
			recent = recent || c.left[i] > 0
			return 0
		}
		return c.left[i]
	}
	if c.isDone() {
		return "no task waits that has no place on a pilot that is there or to come"
	}
	if reason = c.closedGate(p); reason != "" {
		return reason
	}
	room, reason := c.nodeRoom(p)
	if reason != "" {
		return reason
	}
	list := c.needed(p, room, wanted)
	if len(list) == 0 && !p.hasLearnt() {
		if len(c.Of(p.Name, (*Allocation).isUnproven)) > 0 {
			return "the first pilot, which is to come, will show whether the other tasks fit on its nodes"
		}
		if got := c.probe(p, wanted); len(got.units) > 0 {
			list = []neededAllocation{{nodes: 1, isProbe: true, placed: got}}
		}
	} else if !p.hasLearnt() && !p.Node.IsSized() && len(list) > 0 {
		list = list[:1] // amounts that are not known were taken for huge
	}
	if len(list) == 0 && recent {
		return fmt.Sprintf("the tasks that would fit have waited for less than %s", provider.SpanText(p.Wait))
	}
	if len(list) == 0 {
		return "no waiting task fits on its nodes, and into its time"
	}
	allowed, reason := c.queueRoom(p, len(list))
	c.submitSome(p, list, allowed, wanted)
	return reason
}

// closedGate returns why a provider gets no submit whatever the demand is; "" if it may.
func (c *planning) closedGate(p *Provider) string {
	h := &p.History
	unproven := len(c.Of(p.Name, (*Allocation).isUnproven))
	switch {
	case h.Leaving:
		return "it is being removed"
	case h.Stopped:
		return "it is stopped: " + h.StopReason + "; when that is mended: roost pilots resume " + p.Name
	case h.retryTime().After(c.now):
		c.wake(h.retryTime())
		return fmt.Sprintf("submit %d in a row was refused (%s); the next try is in %s", h.Refusals, h.LastError,
			provider.SpanText(h.retryTime().Sub(c.now)))
	case unproven == 0:
	case h.EarlyDeaths > 0:
		return fmt.Sprintf("the last allocation was of no use (%s), and the next has to prove itself first",
			h.LastError)
	case !p.hasLearnt() && !p.Node.IsSized():
		return "its nodes are not known yet: the first pilot, which is to come, will show them"
	}
	return ""
}

// nodeRoom returns how many more nodes a provider may have.
func (c *planning) nodeRoom(p *Provider) (room int, reason string) {
	nodes := 0
	for _, a := range c.Living(p.Name) {
		nodes += a.Nodes
	}
	if room = p.MaxPilots - nodes; room <= 0 {
		return 0, fmt.Sprintf("it has %d pilots or asked for them: max_pilots allows no more", nodes)
	}
	if p.MaxNodeHours == 0 || mutant.Active(mutant.CostUnbounded) {
		return room, ""
	}
	used := c.NodeHours(p.Name, c.now)
	byCost := int(math.Floor((p.MaxNodeHours - used) / p.Walltime.Hours()))
	if byCost <= 0 {
		return 0, fmt.Sprintf("its allocations have %.1f node-hours of the last 24 hours, or may take them: one more "+
			"would exceed max_node_hours, %g", used, p.MaxNodeHours)
	}
	return min(room, byCost), ""
}

// queueRoom returns how many of the needed allocations the queue of the provider may
// take.
func (c *planning) queueRoom(p *Provider, needed int) (allowed int, reason string) {
	queued := len(c.Of(p.Name, (*Allocation).isWaiting))
	if allowed = max(p.MaxQueued-queued, 0); allowed < needed {
		return allowed, fmt.Sprintf("%d allocations of it are queued: max_queued allows no more", min(queued+allowed,
			p.MaxQueued))
	}
	return needed, ""
}

// submitSome orders the submit of the first allowed allocations, as far as the rate
// allows. The rest of them follow in the next rounds, and their tasks wait for them.
func (c *planning) submitSome(p *Provider, list []neededAllocation, allowed int, wanted func(i int) int) {
	if allowed == 0 {
		return
	}
	recent := 0
	for _, a := range c.Of(p.Name, func(a *Allocation) bool { return true }) {
		if c.now.Sub(a.Asked) < roundLength && a.Outcome != Refused {
			recent++
			c.wake(a.Asked.Add(roundLength))
		}
	}
	now := 1
	if all := len(list) + recent; all > manyNeeded && recent >= (all+2)/3 {
		now = 0
	}
	if next := p.History.LastSubmit.Add(submitInterval); next.After(c.now) {
		c.wake(next)
		now = 0
	}
	before := slices.Clone(c.left)
	c.takeFirst(p, list, allowed, wanted)
	if now > 0 {
		if allowed > now {
			c.wake(c.now.Add(submitInterval))
		}
		c.result.Decisions = append(c.result.Decisions, c.submitDecision(p, list[0], before))
	}
}

// submitDecision orders a submit. Before is what was left of the demand before all that
// is needed was placed.
func (c *planning) submitDecision(p *Provider, need neededAllocation, before []int) Decision {
	d := Decision{Provider: p.Name, Action: Submit, Nodes: need.nodes, Walltime: p.Walltime}
	units, oldest := 0, -1
	for i := range c.left {
		if n := before[i] - c.left[i]; n > 0 {
			units += n
			if oldest < 0 || c.demand[i].Since.Before(c.demand[oldest].Since) {
				oldest = i
			}
		}
	}
	d.Reason = fmt.Sprintf("%s for which no pilot is there or to come", plural(units, "task waits", "tasks wait"))
	if oldest >= 0 {
		d.Reason += fmt.Sprintf(", job %s for %s", c.demand[oldest].Job,
			provider.SpanText(c.now.Sub(c.demand[oldest].Since)))
	}
	if need.isProbe {
		d.Reason += "; the first pilot is to show what the nodes are like"
	}
	return d
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// explainUnmet says why demand that is left gets no pilots.
func (c *planning) explainUnmet() {
	jobs := 0
	for i, n := range c.left {
		if n == 0 {
			continue
		}
		if jobs++; jobs > maxUnmet {
			return
		}
		for _, p := range c.Providers {
			c.result.Unmet = append(c.result.Unmet, UnmetDemand{c.demand[i].Job, p.Name, n, c.unmetReason(p, i)})
		}
	}
}

func (c *planning) unmetReason(p *Provider, i int) string {
	d := &c.demand[i]
	most := p.Walltime - p.Margin
	switch {
	case d.Walltime == 0 && !p.WithoutWalltime:
		return fmt.Sprintf("its tasks have no walltime, so nobody knows whether they would end in time: write one of "+
			"%s or less", provider.SpanText(most))
	case !p.FitsTime(d.Walltime, p.Walltime):
		return fmt.Sprintf("its walltime is %s, and an allocation of %s has %s for tasks: write %s or less, or "+
			"let the provider's walltime be longer", provider.SpanText(d.Walltime),
			provider.SpanText(p.Walltime), provider.SpanText(most), provider.SpanText(most))
	case d.Since.Add(p.Wait).After(c.now):
		return fmt.Sprintf("it has waited for less than %s", provider.SpanText(p.Wait))
	}
	if d.Gang > 1 && p.Kind.IsSingleNode() && c.misfit(i, p.nodeAd(), 1) != "" {
		return fmt.Sprintf("its tasks start together on several nodes, and an allocation of kind %s has one", p.Kind)
	}
	if reason := c.misfit(i, p.nodeAd(), max(d.Gang, 1)); reason != "" {
		return reason
	}
	if c.gates[p.Name] != "" {
		return c.gates[p.Name]
	}
	return "more tasks wait than it may have pilots for now"
}

// Submits returns the decisions to submit.
func (r *Result) Submits() (list []Decision) {
	return slices.DeleteFunc(slices.Clone(r.Decisions), func(d Decision) bool { return d.Action != Submit })
}
