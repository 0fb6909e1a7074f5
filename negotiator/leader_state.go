package negotiator

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/blackhole"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// Bounds and times.
const (
	maxRequests   = 100_000   // of one schedd
	maxAdBytes    = 256 << 20 // of the requests of one schedd
	maxSchedds    = 16        // of one node
	maxUnanswered = 4096      // grants in transit to one schedd
	// of a grant that is not answered, and of one that the machine's ad does not show
	grantTTL = 10 * time.Second
	// how long the usage of a schedd that is away is charged: the lease of its jobs
	absentUsageTTL = 40 * time.Minute
	// after this a claimed grant counts as included in what its schedd wants
	ackTimeout           = 100 * time.Millisecond
	explainInterval      = time.Second // for each request
	maxExplainedPerCycle = 32          // requests in one cycle
)

// leaderState is the state of a leading negotiator. It belongs to one goroutine, does no
// I/O and reads no clock.
type leaderState struct {
	*machineInventory
	epoch          uint64
	log            *slog.Logger
	matcher        *match.Matcher
	policyMessages policyMessage
	policyWaiters  policyWaiters
	policy         cellstate.CellPolicy
	// accounts and cell policy, which only entries of the log change
	ledgerStore        *ledgerStore
	schedds            map[string]*scheddState
	pendingByID        map[uint64]*pendingGrant
	pendingByMachine   map[string][]*pendingGrant // by machine
	lastID             uint64
	firstCycle         time.Time // time of the first cycle
	pendingEntry       pendingEntry
	recentEvictions    recentEvictions
	selfPlacementStats selfPlacementStats
	// when usage in the pending entry must be committed at the latest; zero: never
	usageCommitBy time.Time
	// by submitter: cores in use, as in the log or the pending entry
	chargedCores map[fairshare.Submitter]float64
	elsewhere    elsewhereUsage // what they use in other pools
	// by submitter: claims of schedds that have not reported to this leader
	unheardUsage map[fairshare.Submitter]roost.Resources
	// all usage was compared with the log since the machines are known
	usageCompared   bool
	changed         bool           // a cycle may find something new
	unackedGrants   []unackedGrant // oldest first
	nextSweep       time.Time      // when expireOverdue next has work; zero: never
	blackHoles      blackhole.Detector
	drains          []match.MachineDrain // by node
	automaticDrains map[string]time.Time // by machine: when it was drained automatically
	tasksOnTrial    map[string]int       // by machine on trial: how many more tasks it may get now
	lostTasks       lostTaskLimiter
	sentUnavailable []match.UnavailableWindow // as sent to the schedds
	unavailableSent bool                      // sent since the first plan
	explainAt       time.Time                 // when a waiting request must be explained; zero: never
	recentStarts    recentStarts
	planCount       int // number of plans made
	metrics         *metrics.Negotiator
}

func newCell(epoch uint64, known *machineInventory, r *ledgerStore, log *slog.Logger) *leaderState {
	return &leaderState{
		machineInventory: known, epoch: epoch, log: log, matcher: match.NewMatcher(), ledgerStore: r,
		schedds: map[string]*scheddState{}, pendingByID: map[uint64]*pendingGrant{},
		pendingByMachine: map[string][]*pendingGrant{},
		pendingEntry:     newPendingEntry(), chargedCores: map[fairshare.Submitter]float64{},
		elsewhere:       newElsewhereUsage(),
		automaticDrains: map[string]time.Time{}, metrics: metrics.NewNegotiator(nil, ""),
	}
}

// updateMachines applies changes that the collectors reported.
func (c *leaderState) updateMachines(now time.Time, all []machineUpdate, synced bool) {
	c.machineInventory.applyUpdates(all, synced)
	for _, update := range all {
		for _, p := range slices.Clone(c.pendingByMachine[update.name]) {
			switch {
			case update.machine == nil:
			case adShowsClaim(update.machine, p):
				c.grants().forgetGrant(now, p)
			case claimDeadlinePassed(update.machine, p):
				c.grants().dropGrant(p)
				c.grants().forgetGrant(now, p)
			}
		}
	}
	c.changed = true
}

// addStream begins a schedd's new session, which replaces an earlier one.
func (c *leaderState) addStream(now time.Time, hello *wire.ScheddHello, mail *sendQueue) error {
	name := hello.GetName()
	s := c.schedds[name]
	if s == nil {
		if node := nodeOf(name); c.scheddsOf(node) >= maxSchedds {
			return fmt.Errorf("schedd %s: %w: the node %s has %d schedds, and that is the most", name, roost.Exhausted,
				node, maxSchedds)
		}
		s = &scheddState{name: name}
		c.schedds[name] = s
	}
	c.forgetStream(now, s)
	c.grants().syncLimitedGrants(now, s, hello, mail)
	s.sendQueue, s.usage = mail, map[fairshare.Submitter]roost.Resources{}
	s.elsewhere = map[fairshare.Submitter]roost.Resources{}
	s.demand, s.admitted, s.sentPolicy = map[quotaAccount]resourceDemand{}, nil, nil
	s.sentPolicyVersion, s.fullQueues = policyVersion{}, nil
	s.confirmsPolicy, s.awaitedPolicy, s.confirmedPolicy = hello.GetConfirmsPolicy(), 0, 0
	if s.sentAllRequests = !hello.GetTells(); s.sentAllRequests {
		s.lastRunning = nil
	}
	c.chargeAll(now)
	mail.putMessage(&wire.ToSchedd{Of: &wire.ToSchedd_Hello{Hello: &wire.NegotiatorHello{Epoch: c.epoch}}})
	c.broadcastPolicy()
	if c.unavailableSent && mail.guestOf == "" {
		mail.putMessage(c.unavailableMessage())
	}
	return nil
}

// nodeOf returns the node of a schedd, whose certificate it uses: see
// [grpcService.readHello].
func nodeOf(schedd string) string { return schedd[strings.LastIndexByte(schedd, '@')+1:] }

// scheddsOf counts the schedds of a node, including those that are away.
func (c *leaderState) scheddsOf(node string) (n int) {
	for name := range c.schedds {
		if nodeOf(name) == node {
			n++
		}
	}
	return n
}

// removeStream ends a schedd's session, unless a newer one has replaced it.
func (c *leaderState) removeStream(now time.Time, name string, mail *sendQueue) {
	if s := c.schedds[name]; s != nil && s.sendQueue == mail {
		c.forgetStream(now, s)
	}
}

// forgetStream drops the state of a session. Its unanswered grants expire, unless the
// next session reports them.
func (c *leaderState) forgetStream(now time.Time, s *scheddState) {
	if s.sendQueue != nil {
		s.sendQueue.endStream(errStreamReplaced)
	}
	s.rememberRunning()
	s.sendQueue, s.awaySince, s.requests, s.adBytes = nil, now, map[uint64]*scheddRequest{}, 0
	s.avoidPairs = nil
	c.changed = true
	c.policyWaiters.confirm(s.name, math.MaxUint64)
}

// endStreams ends all sessions.
func (c *leaderState) endStreams(why error) {
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		if s := c.schedds[name]; s.sendQueue != nil {
			s.sendQueue.endStream(why)
		}
	}
}

// handleMessage handles one message of a schedd. An error ends its session.
func (c *leaderState) handleMessage(now time.Time, name string, mail *sendQueue, m *wire.FromSchedd) error {
	s := c.schedds[name]
	if s == nil || s.sendQueue != mail {
		return nil // a newer session has replaced this one
	}
	if mail.guestOf != "" {
		if m = guestMessage(mail.guestOf, m); m == nil {
			return nil
		}
	}
	switch of := m.GetOf().(type) {
	case *wire.FromSchedd_Request:
		tasktrace.Mark(tasktrace.Requested, tasktrace.Task{})
		c.changed = true
		return s.updateRequest(of.Request)
	case *wire.FromSchedd_Result:
		c.grants().handleGrantAnswer(now, s, of.Result)
	case *wire.FromSchedd_Demand:
		less, err := s.updateDemand(of.Demand)
		if less {
			c.admission().notifyQueueRoom(of.Demand.GetQueue())
		}
		return err
	case *wire.FromSchedd_Told:
		s.sentAllRequests, s.lastRunning, c.changed = true, nil, true
	case *wire.FromSchedd_PolicySeen:
		s.confirmedPolicy = of.PolicySeen.GetVersion()
		c.policyWaiters.confirm(name, s.confirmedPolicy)
	case *wire.FromSchedd_Admit:
		c.admission().answerAdmission(now, s, of.Admit)
	case *wire.FromSchedd_Why:
		c.requestExplanation(s, of.Why.GetRequest())
	case *wire.FromSchedd_Outcome:
		c.blackHoleDrains().recordAttemptEnd(now, s, of.Outcome)
	case *wire.FromSchedd_Usage:
		who := fairshare.Submitter{Group: of.Usage.GetGroup(), Owner: of.Usage.GetOwner()}
		if err := s.updateUsage(who, of.Usage); err != nil {
			return err
		}
		c.chargeSubmitter(now, who)
	}
	return nil
}
