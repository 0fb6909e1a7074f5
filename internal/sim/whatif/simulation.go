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

// RuntimeModel is how long tasks are taken to run.
type RuntimeModel uint8

// The lengths. Where one is not known the other is taken; a task of which nobody knows
// either is taken to run for ever.
const (
	ByWalltime   RuntimeModel = iota // as long as their walltimes let them
	ByPrediction                     // as long as tasks like them took
)

// maxClaimAge is how old a claim may be to get another task when one has ended, in
// seconds: as schedds have it (dispatch.TimerOptions).
const maxClaimAge = 60

// maxEvents bounds a play.
const maxEvents = 5_000_000

// TaskStart is so many units of a request that started on a machine.
type TaskStart struct {
	At          int64 // unix seconds
	Key         match.RequestKey
	Machine     string
	Units       int
	ClaimReused bool // on a claim that was there, without the leader
}

// ClaimEviction is a claim that had to go.
type ClaimEviction struct {
	At        int64
	Machine   string
	Claim     match.MachineClaim
	Preemptor fairshare.Submitter // whose task gets the room; none: its machine was taken away
	Reason    string
}

// Simulation is a cell that goes on from a checkpoint, with no new jobs.
type Simulation struct {
	*cellstate.CellCheckpoint
	requestIndex
	Starts    []TaskStart
	Evictions []ClaimEviction
	// tasks of which nobody knows when they end: of those that run at first, and of those
	// that have started since
	EndUnknown int
	Events     int

	runtimeModel     RuntimeModel
	now              int64
	ends             endHeap
	claims           map[match.ClaimKey]*runningClaim
	machineByName    map[string]int // machines, by name
	nextClaim        uint64         // claim
	startedByRequest map[match.RequestKey]int
	started          int // units, of all requests
	total            roost.Resources
	matcher          *match.Matcher
	digest           []byte
}

// runningClaim is a claim that is under way.
type runningClaim struct {
	ask     *cellstate.PendingRequest // nil: nobody knows
	created int64
	endTime int64 // 0: nobody knows
}

// NewSimulation begins a play. What is promised, and what is about to leave, is taken to
// have come and gone.
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

// RunningTask is one that runs.
type RunningTask struct {
	Machine   string
	Claim     *match.MachineClaim
	Ask       *cellstate.PendingRequest // of whose request it is; nil: nobody knows
	Remaining time.Duration             // for which it runs yet; 0: nobody knows
}

// Tasks are those that run, in the order of the machines. A claim on which nothing is
// known to run is none.
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

// Runtime is how long a task of a request runs that has not begun; 0: nobody knows.
func (p *Simulation) Runtime(a *cellstate.PendingRequest) time.Duration {
	return time.Duration(p.runtime(a)) * time.Second
}

// Now is the play's clock.
func (p *Simulation) Now() time.Time { return time.Unix(p.now, 0) }

// StartedUnits is how many units of a request have started.
func (p *Simulation) StartedUnits(k match.RequestKey) int { return p.startedByRequest[k] }

// Digest is of all that happened, in its order: two plays with the same are the same.
func (p *Simulation) Digest() uint64 {
	h := fnv.New64a()
	h.Write(p.digest)
	return h.Sum64()
}

// addToDigest adds to the digest.
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

// resolvePending makes of what is under way what it is about to be.
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

// resolvedMachine is a machine whose leaving claims have left, whose heirs have what they
// wait for, and to which what was promised has come.
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

// pendingClaim is the claim that is made of a promise.
func (p *Simulation) pendingClaim(m *match.Machine, one match.PendingGrant,
	ask *cellstate.PendingRequest) (c match.MachineClaim, ok bool) {
	if one.Waiting || ask == nil {
		return c, false
	}
	placed, ok := m.PlaceNext(nil, gpu.DeviceRequest{Resources: one.Resources, Class: one.Class,
		MayReclaim: one.MayReclaim}, ask.Class.Exclusive)
	return p.newClaim(ask, one.Resources, placed, one.WalltimeEnd), ok
}

// newClaim is a new one of a request.
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

// adoptClaims notes when the claims of a machine end that run already.
func (p *Simulation) adoptClaims(m *match.Machine) {
	for i := range m.Claims {
		c, key := &m.Claims[i], match.ClaimKey{Machine: m.Name, ID: m.Claims[i].ID}
		h := &runningClaim{p.findAsk(c), max(c.TaskStarted, p.now-maxClaimAge), c.WalltimeEnd}
		if h.created == 0 {
			h.created = p.now
		}
		switch {
		case c.WalltimeEnd == 0 && c.TaskStarted == 0 && h.ask != nil: // it has only just begun
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

// predictedEnd is when a claim's task ends by what is known of tasks like it; at its
// walltime at the latest.
func (p *Simulation) predictedEnd(c *match.MachineClaim, a *cellstate.PendingRequest) int64 {
	at := c.PredictedEnd
	if at == 0 && a != nil && a.PredictedRuntime > 0 && c.TaskStarted > 0 {
		at = c.TaskStarted + wholeSeconds(a.PredictedRuntime)
	}
	if at == 0 {
		return c.WalltimeEnd
	}
	if at <= p.now { // it has outlived that; as much again as it has outlived it by is as good a guess as any
		at = 2*p.now - at + 1
	}
	if c.WalltimeEnd > 0 {
		at = min(at, c.WalltimeEnd)
	}
	return at
}

func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// runtime is how long a task of a request runs; 0: for ever.
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

// requeueTask has the task of a claim wait again.
func (p *Simulation) requeueTask(c *match.MachineClaim) {
	if a := p.findAsk(c); a != nil && c.Job != "" {
		a.OwnWanted++
	}
}

// updateUsage notes that a claim holds something, or with sign -1 that it does no more.
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

// chargeLedger tells the ledger what submitters use by now.
func (p *Simulation) chargeLedger() error {
	epoch, _ := p.Ledger.Epoch()
	e := &ledger.LogEntry{At: p.now * int64(time.Second), Epoch: epoch}
	for _, who := range slices.SortedFunc(maps.Keys(p.ClaimHolders), fairshare.Submitter.Compare) {
		e.Holds = append(e.Holds, ledger.UsageUpdate{Submitter: who,
			Cores: fairshare.CoresWorth(p.ClaimHolders[who], p.total)})
	}
	return p.Ledger.Apply(e).Err
}

// WaitingUnits is how many units wait.
func (p *Simulation) WaitingUnits() (n int) {
	for _, a := range p.Requests {
		n += a.OwnWanted
	}
	return n
}

// Run goes on until nothing waits, nothing more can happen, the clock shows until (unix
// seconds), or enough says so.
func (p *Simulation) Run(until int64, enough func() bool) error {
	for !enough() && p.WaitingUnits() > 0 {
		if p.Events > maxEvents {
			return fmt.Errorf("%w: after %d events it is still not over; ask about less", roost.Exhausted, maxEvents)
		}
		granted, err := p.runCycle()
		if err != nil || enough() {
			return err
		}
		if granted { // what that leaves is looked at again
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

// nextChange is when something changes.
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
