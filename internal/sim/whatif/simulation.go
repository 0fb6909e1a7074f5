package whatif

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// RuntimeModel says how long tasks are assumed to run.
type RuntimeModel uint8

// The models. If the one is unknown for a task, the other is used; with neither, a task
// never ends.
const (
	ByWalltime   RuntimeModel = iota // up to the walltime
	ByPrediction                     // as long as similar tasks took
)

// maxClaimAge is the age in seconds up to which a claim gets another task. It is that of
// schedds (dispatch.TimerOptions).
const maxClaimAge = 60

// maxEvents bounds a simulation.
const maxEvents = 5_000_000

// TaskStart is a start of tasks of a request on a machine.
type TaskStart struct {
	At          int64 // unix seconds
	Key         match.RequestKey
	Machine     string
	Units       int
	ClaimReused bool // on an existing claim, without the leader
}

// ClaimEviction is the eviction of a claim.
type ClaimEviction struct {
	At        int64
	Machine   string
	Claim     match.MachineClaim
	Preemptor fairshare.Submitter // submitter of the preemptor; zero: the machine was removed
	Reason    string
}

// Simulation runs a cell on from a checkpoint, without new jobs.
type Simulation struct {
	*cellstate.CellCheckpoint
	requestIndex
	Starts    []TaskStart
	Evictions []ClaimEviction
	// tasks whose end is unknown, of those that run at first and those started since
	EndUnknown int
	Events     int

	runtimeModel     RuntimeModel
	now              int64
	ends             endHeap
	claims           map[match.ClaimKey]*runningClaim
	machineByName    map[string]int // by name: index of the machine
	nextClaim        uint64         // id of the next claim
	startedByRequest map[match.RequestKey]int
	started          int // tasks started, of all requests
	total            roost.Resources
	matcher          *match.Matcher
	digest           []byte
}

// runningClaim is a claim of the simulation.
type runningClaim struct {
	ask     *cellstate.PendingRequest // nil: unknown
	created int64
	endTime int64 // 0: unknown
}

// NewSimulation starts a simulation. Pending grants count as claimed, and vacating claims
// as gone.
func NewSimulation(of *cellstate.CellCheckpoint, lengths RuntimeModel) (*Simulation, error) {
	c, err := cloneCell(of)
	if err != nil {
		return nil, err
	}
	p := &Simulation{
		CellCheckpoint: c, requestIndex: newIndex(c), runtimeModel: lengths, now: c.Now.Unix(),
		claims: map[match.ClaimKey]*runningClaim{}, machineByName: map[string]int{}, nextClaim: 1 << 62,
		startedByRequest: map[match.RequestKey]int{}, matcher: match.NewMatcher(),
	}
	for i, m := range c.Machines {
		p.machineByName[m.Name] = i
	}
	p.resolvePending()
	return p, nil
}

// RunningTask is a running task.
type RunningTask struct {
	Machine   string
	Claim     *match.MachineClaim
	Ask       *cellstate.PendingRequest // its request; nil: unknown
	Remaining time.Duration             // run time left; 0: unknown
}

// Tasks returns the running tasks, in the order of the machines. It leaves out claims on
// which no task is known to run.
func (p *Simulation) Tasks() (all []RunningTask) {
	for _, m := range p.Machines {
		for i := range m.Claims {
			c := &m.Claims[i]
			h := p.claims[match.ClaimKey{Machine: m.Name, ID: c.ID}]
			if h == nil || h.ask == nil && c.JobName() == "" {
				continue
			}
			t := RunningTask{Machine: m.Name, Claim: c, Ask: h.ask}
			if h.endTime > 0 {
				t.Remaining = time.Duration(max(h.endTime-p.now, 1)) * time.Second
			}
			all = append(all, t)
		}
	}
	return all
}

// Runtime returns how long a new task of a request runs; 0: unknown.
func (p *Simulation) Runtime(a *cellstate.PendingRequest) time.Duration {
	return time.Duration(p.runtime(a)) * time.Second
}

// Now returns the simulation's clock.
func (p *Simulation) Now() time.Time { return time.Unix(p.now, 0) }

// StartedUnits returns how many tasks of a request have started.
func (p *Simulation) StartedUnits(k match.RequestKey) int { return p.startedByRequest[k] }

// Digest returns a digest of all events in order: equal digests mean equal simulations.
func (p *Simulation) Digest() uint64 {
	h := fnv.New64a()
	h.Write(p.digest)
	return h.Sum64()
}

// addToDigest adds an event to the digest.
func (p *Simulation) addToDigest(kind byte, machine string, n uint64) {
	p.Events++
	p.digest = append(p.digest, kind)
	p.digest = binary.LittleEndian.AppendUint64(p.digest, uint64(p.now))
	p.digest = append(p.digest, machine...)
	p.digest = binary.LittleEndian.AppendUint64(p.digest, n)
	if len(p.digest) > 1<<16 {
		p.digest = binary.LittleEndian.AppendUint64(p.digest[:0], p.Digest())
	}
}

// resolvePending completes everything that is pending in the checkpoint.
func (p *Simulation) resolvePending() {
	for i, m := range p.Machines {
		p.total = p.total.Add(m.Total)
		p.Machines[i] = p.resolvedMachine(m)
	}
	p.Pending, p.UsageByGrants, p.LimitsGranted = map[string][]match.PendingGrant{},
		map[fairshare.Submitter]roost.Resources{}, map[string]int{}
	p.ClaimHolders, p.LimitsUsed = map[fairshare.Submitter]roost.Resources{}, map[string]int{}
	for _, m := range p.Machines {
		for i := range m.Claims {
			p.updateUsage(&m.Claims[i], 1)
		}
	}
	p.ChargedCores = func(yield func(fairshare.Submitter) bool) {
		for _, who := range slices.SortedFunc(maps.Keys(p.ClaimHolders), fairshare.Submitter.Compare) {
			if !yield(who) {
				return
			}
		}
	}
}

// resolvedMachine returns a machine after everything pending. Vacating claims have left,
// their preemptors have the resources, and pending grants are claimed.
func (p *Simulation) resolvedMachine(m *match.Machine) *match.Machine {
	var leave []uint64
	for i := range m.Claims {
		if c := &m.Claims[i]; c.Vacating || c.PromisedToNext {
			leave = append(leave, c.ID)
			p.requeueTask(c)
		}
	}
	for _, one := range p.Pending[m.Name] {
		for _, id := range one.Victims {
			if i := slices.IndexFunc(m.Claims, func(c match.MachineClaim) bool {
				return c.ID == id
			}); i >= 0 && !slices.Contains(leave, id) {
				leave = append(leave, id)
				p.requeueTask(&m.Claims[i])
			}
		}
	}
	preemptors := m.Preemptors
	if len(leave)+len(preemptors)+len(p.Pending[m.Name]) == 0 {
		p.adoptClaims(m)
		return m
	}
	next, err := m.AfterClaimsEnd(leave, preemptors...)
	if err != nil {
		if next, err = m.AfterClaimsEnd(leave); err != nil {
			next = m
		}
	}
	p.adoptClaims(next)
	for _, one := range p.Pending[m.Name] {
		ask := p.byKey[one.Request]
		switch c, ok := p.pendingClaim(next, one, ask); {
		case ok:
			if after, err := next.AfterClaimsEnd(nil, c); err == nil {
				next = after
				p.claims[match.ClaimKey{Machine: m.Name, ID: c.ID}] = &runningClaim{ask, p.now, one.WalltimeEnd}
				p.scheduleEnd(match.ClaimKey{Machine: m.Name, ID: c.ID}, one.WalltimeEnd)
			}
		case ask != nil:
			ask.OwnWanted++
		}
	}
	return next
}

// pendingClaim returns the claim that a pending grant becomes.
func (p *Simulation) pendingClaim(m *match.Machine, one match.PendingGrant,
	ask *cellstate.PendingRequest) (c match.MachineClaim, ok bool) {
	if one.Waiting || ask == nil {
		return c, false
	}
	placed, ok := m.PlaceNext(nil, gpu.DeviceRequest{Resources: one.Resources, Class: one.Class,
		MayReclaim: one.MayReclaim}, ask.Class.Exclusive)
	return p.newClaim(ask, one.Resources, placed, one.WalltimeEnd), ok
}

// newClaim returns a new claim of a request.
func (p *Simulation) newClaim(a *cellstate.PendingRequest, r roost.Resources, placed gpu.Placement,
	ends int64) match.MachineClaim {
	p.nextClaim++
	limits, _ := a.Class.Ad.Str(roost.AttrLimits)
	c := match.MachineClaim{ID: p.nextClaim, Submitter: a.Submitter, Band: a.Band, Resources: r, Placement: placed,
		TaskStarted: p.now, WalltimeEnd: ends, Job: a.Class.Job, Limits: limits, Queue: a.Queue}
	if c.WalltimeEnd == 0 && a.PredictedRuntime > 0 {
		c.PredictedEnd = p.now + wholeSeconds(a.PredictedRuntime)
	}
	return c
}

// adoptClaims plans the ends of the claims that run on a machine at the start.
func (p *Simulation) adoptClaims(m *match.Machine) {
	for i := range m.Claims {
		c, key := &m.Claims[i], match.ClaimKey{Machine: m.Name, ID: m.Claims[i].ID}
		h := &runningClaim{p.findAsk(c), max(c.TaskStarted, p.now-maxClaimAge), c.WalltimeEnd}
		if h.created == 0 {
			h.created = p.now
		}
		switch {
		case c.WalltimeEnd == 0 && c.TaskStarted == 0 && h.ask != nil: // the task has just begun
			if n := p.runtime(h.ask); n > 0 {
				h.endTime = p.now + n
			}
		case c.WalltimeEnd == 0 || p.runtimeModel == ByPrediction:
			h.endTime = p.predictedEnd(c, h.ask)
		}
		if p.claims[key] = h; h.endTime == 0 {
			p.EndUnknown++
		}
		p.scheduleEnd(key, h.endTime)
	}
}

// predictedEnd returns when a claim's task ends, by the run times of similar tasks. It is
// never after its walltime.
func (p *Simulation) predictedEnd(c *match.MachineClaim, a *cellstate.PendingRequest) int64 {
	at := c.PredictedEnd
	if at == 0 && a != nil && a.PredictedRuntime > 0 && c.TaskStarted > 0 {
		at = c.TaskStarted + wholeSeconds(a.PredictedRuntime)
	}
	if at == 0 {
		return c.WalltimeEnd
	}
	if at <= p.now { // the task has exceeded its prediction; guess as much again as it has exceeded it by
		at = 2*p.now - at + 1
	}
	if c.WalltimeEnd > 0 {
		at = min(at, c.WalltimeEnd)
	}
	return at
}

func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// runtime returns how many seconds a task of a request runs; 0: forever.
func (p *Simulation) runtime(a *cellstate.PendingRequest) int64 {
	asked, predicted := wholeSeconds(a.Walltime), wholeSeconds(a.PredictedRuntime)
	if asked > 0 && predicted > 0 {
		predicted = min(predicted, asked)
	}
	if p.runtimeModel == ByPrediction && predicted > 0 || asked == 0 {
		return predicted
	}
	return asked
}

// requeueTask lets the task of a claim wait again.
func (p *Simulation) requeueTask(c *match.MachineClaim) {
	if a := p.findAsk(c); a != nil && c.Job != "" {
		a.OwnWanted++
	}
}

// updateUsage adds a claim to the submitter's usage, or removes it if sign is -1.
func (p *Simulation) updateUsage(c *match.MachineClaim, sign int) {
	held := p.ClaimHolders[c.Submitter]
	if sign > 0 {
		held = held.Add(c.Resources)
	} else {
		held = held.Sub(c.Resources)
	}
	p.ClaimHolders[c.Submitter] = held
	if all, err := roost.ParseLimitRequests(c.Limits); err == nil {
		for _, l := range all {
			p.LimitsUsed[l.Name] += sign * l.Count
		}
	}
}

// chargeLedger updates the ledger with the submitters' present usage.
func (p *Simulation) chargeLedger() error {
	epoch, _ := p.Ledger.Epoch()
	e := &ledger.LogEntry{At: p.now * int64(time.Second), Epoch: epoch}
	for _, who := range slices.SortedFunc(maps.Keys(p.ClaimHolders), fairshare.Submitter.Compare) {
		e.Holds = append(e.Holds, ledger.UsageUpdate{Submitter: who,
			Cores: fairshare.CoresWorth(p.ClaimHolders[who], p.total)})
	}
	return p.Ledger.Apply(e).Err
}

// WaitingUnits returns how many tasks wait.
func (p *Simulation) WaitingUnits() (n int) {
	for _, a := range p.Requests {
		n += a.OwnWanted
	}
	return n
}

// Run runs the simulation. It ends when nothing waits, nothing more can happen, the clock
// reaches until (unix seconds), or enough returns true.
func (p *Simulation) Run(until int64, enough func() bool) error {
	for !enough() && p.WaitingUnits() > 0 {
		if p.Events > maxEvents {
			return fmt.Errorf("%w: after %d events it is still not over; ask about less", roost.Exhausted, maxEvents)
		}
		granted, err := p.runCycle()
		if err != nil || enough() {
			return err
		}
		if granted { // plan again with what is left
			continue
		}
		at, ok := p.nextChange()
		if !ok || at > until {
			p.now = min(max(p.now, until), at)
			return nil
		}
		p.now = at
		p.endDueTasks()
	}
	return nil
}

// nextChange returns when something changes next.
func (p *Simulation) nextChange() (at int64, ok bool) {
	at = math.MaxInt64
	look := func(t int64) {
		if t > p.now && t < at {
			at = t
		}
	}
	if len(p.ends) > 0 {
		look(max(p.ends[0].at, p.now+1))
	}
	for _, d := range p.Drains {
		look(unixOf(d.From))
		look(unixOf(d.Until))
	}
	for _, r := range p.Ledger.Reservations() {
		look(r.From.Unix())
		look(r.Until.Unix())
	}
	return at, at < math.MaxInt64
}

func unixOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
