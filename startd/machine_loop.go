package startd

import (
	"context"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/meter"
	"github.com/roost-batch/roost/startd/slot"
)

// News for the loop of sessions and devices. The runners of claims send those of package
// claim.
type (
	sessionOpened struct {
		session *scheddSession
		hello   *wire.SessionHello
		refused chan error // gets one value, nil when the session is on
	}
	sessionClosed struct{ session *scheddSession }
	scheddMessage struct {
		session *scheddSession
		message *wire.ToStartd
		who     accountDecision // of a claim request: as whom its tasks run
		size    int64           // that it holds of the session's room
	}
	// gpusChanged: a device is sick, or well again, or gone.
	gpusChanged struct{}
	// loopQuery is answered by a goroutine that looks at the loop's state, and nothing
	// else.
	loopQuery struct {
		query func(*machineLoop)
		done  chan struct{}
	}
)

// minorAdInterval is how soon a change is advertised by which nobody decides, such as the
// number of running tasks; fullAdInterval, how often the ad is made anew even if nothing
// seems to have changed.
const (
	minorAdInterval = 5 * time.Second
	fullAdInterval  = time.Minute
)

// machineLoop owns the machine's claim table.
type machineLoop struct {
	host    *startdHost
	table   *slot.ClaimTable
	runners map[slot.ClaimID]*claim.Runner
	exits   map[slot.ClaimID]*wire.Exited // of attempts that ended and are not forgotten
	pids    map[slot.ClaimID]int64
	health  map[slot.ClaimID]claim.HealthEvent // of attempts of services that run
	// whether health has changed since the last ad: nobody may find an ended attempt,
	// though its claim may hold what it held
	endpointsStale   bool
	printedEndpoints map[slot.ClaimID]printedEndpoint
	programs         map[slot.ClaimID]*wire.Activate // between the word and the start
	// cores that a claim has to itself; entries of claims that hold nothing are dropped
	// when one is made
	pinned            map[slot.ClaimID][]int
	numaNodes         map[slot.ClaimID]int // of claims whose CPUs are of one memory node
	hardware          cpuHardware
	firstAdSequence   map[slot.ClaimID]uint64                   // sequence of the first ad that shows the claim
	rights            map[slot.ClaimID]userfiles.UserCredential // of claims that are about to be made
	sessions          map[uint64]*scheddSession
	guests            guestSchedds
	lastSession       uint64 // number of the last session
	sequence          uint64 // of the last ad
	advertisedVersion uint64 // of the claim table that it shows
	lastFullAd        time.Time
	pacing            adPacing
	advertisedRunning int         // attempts that it shows
	ownerState        *ownerState // nil: the machine is nobody's
	spares            *spareStarters
	savedPorts        uint64        // version of the ports in quarantine that is on disk
	maxNotice         time.Duration // the longest notice that is left to tasks; 0: their own

	refusedFrom time.Duration // since boot: the second in which refusals are counted
	refusals    map[string]int
	metrics     loopMetrics
}

func newMachineLoop(m *startdHost, core *slot.ClaimTable) *machineLoop {
	l := &machineLoop{
		host: m, table: core, runners: make(map[slot.ClaimID]*claim.Runner), exits: make(map[slot.ClaimID]*wire.Exited),
		pids: make(map[slot.ClaimID]int64), health: make(map[slot.ClaimID]claim.HealthEvent),
		printedEndpoints: make(map[slot.ClaimID]printedEndpoint),
		pinned:           make(map[slot.ClaimID][]int), numaNodes: make(map[slot.ClaimID]int),
		hardware: m.hardware, programs: make(map[slot.ClaimID]*wire.Activate),
		firstAdSequence: make(map[slot.ClaimID]uint64), sessions: make(map[uint64]*scheddSession),
		guests:  make(guestSchedds),
		rights:  make(map[slot.ClaimID]userfiles.UserCredential),
		metrics: newLoopMetrics(m.exporter),
	}
	l.spares = newSpareStarters(l)
	return l
}

// maxEventBatch is how much news is taken in before what follows from it is done.
const maxEventBatch = 256

// run takes in news and does what follows until ctx ends and nothing is left to be done.
func (l *machineLoop) run(ctx context.Context) {
	defer close(l.host.loopDone)
	minor := time.NewTicker(minorAdInterval)
	defer minor.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var end shutdownSequence
	for {
		wake := min(l.performEffects(), l.spares.update(boottime.Now()))
		for end.advance(l, false) {
		}
		if end.phase == stopped {
			return
		}
		begin, up := end.wakeups(ctx)
		timer.Reset(min(max(wake-boottime.Now(), 0), time.Hour))
		if l.onGuardMessage() {
			continue // before anything else
		}
		select {
		case observations := <-l.host.guardObservations:
			l.onObservations(observations)
		case n := <-l.host.guardLost:
			l.onGuardLost(n)
		case update := <-l.host.inbox:
			l.handleEvent(update)
			for n := len(l.host.inbox); n > 0 && n < maxEventBatch; n-- {
				l.handleEvent(<-l.host.inbox)
			}
		case <-timer.C:
		case <-minor.C:
			l.publishAd(false)
			l.refreshMetrics()
			endRevokedGuests(l)
			if l.ownerState != nil {
				l.reloadRules()
				l.updateGuardReport()
			}
		case <-begin:
			end.begin(l)
		case <-up:
			end.advance(l, true)
		}
	}
}

// performEffects does what the claim table says, and returns when to ask them again.
func (l *machineLoop) performEffects() roost.BootTime {
	for {
		wake := roost.BootTime(math.MaxInt64)
		if l.ownerState != nil {
			wake = l.applyOwnerPolicy()
		}
		now := boottime.Now()
		effects, next := l.table.Todo(now)
		if due := l.pacing.due(); isAdStale(l) && now >= due {
			l.publishAd(true)
		} else if isAdStale(l) {
			wake = min(wake, due)
		}
		for _, e := range effects {
			l.performEffect(e)
		}
		l.savePorts()
		if l.ownerState == nil || !l.ownerState.ClaimsChanged() {
			return min(wake, next)
		}
	}
}

// onGuardMessage takes in what the guard says, if it has said something.
func (l *machineLoop) onGuardMessage() bool {
	select {
	case observations := <-l.host.guardObservations:
		l.onObservations(observations)
	case n := <-l.host.guardLost:
		l.onGuardLost(n)
	default:
		return false
	}
	return true
}

// handleEvent enters one piece of news into the claim table.
func (l *machineLoop) handleEvent(update any) {
	switch n := update.(type) {
	case sessionOpened:
		n.refused <- l.openSession(n.session, n.hello)
	case sessionClosed:
		delete(l.sessions, n.session.id)
		endRevokedGuests(l)
		l.table.Disconnected(boottime.Now(), n.session.id, n.session.schedd)
	case scheddMessage:
		n.session.room.Release(n.size)
		if l.sessions[n.session.id] == n.session {
			l.onScheddMessage(n.session, n.message, n.who)
		}
	case claim.CreatedEvent:
		l.table.ClaimCreated(n.Claim)
	case claim.FailedEvent:
		l.table.ClaimFailed(boottime.Now(), n.Claim, n.Reason)
	case claim.InputAwaitedEvent:
		if c, ok := l.table.Find(n.ID); ok {
			l.sendTo(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Input{
				Input: &wire.InputReady{Attempt: wire.FromAttempt(n.ID), Scratch: n.Scratch, Holes: true,
					InputCache: l.host.inputs != nil},
			}})
		}
	case claim.StartedEvent:
		l.pids[n.Claim] = n.PID
		l.table.Started(boottime.Now(), n.Claim, n.ID)
	case claim.ResizedEvent:
		slot.ResizesOf(l.table).Done(boottime.Now(), n.Claim, n.Refusal)
	case claim.HealthEvent:
		l.onHealthEvent(n)
	case claim.MetricEvent:
		l.onMetricEvent(n)
	case claim.ContainerEvent:
		reportContainer(l, n)
	case claim.EndedEvent:
		l.forgetHealth(n.Claim)
		l.exits[n.Claim] = n.Exited
		l.metrics.countEnd(n.Exited)
		l.table.Ended(boottime.Now(), n.Claim, n.ID)
	case usageReport:
		l.sendTo(n.schedd, &wire.FromStartd{Of: &wire.FromStartd_Usage{Usage: n.report}})
	case claim.CheckpointReport:
		l.sendTo(n.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Taken{Taken: n.Taken}})
	case claim.LeavingReport:
		l.sendTo(n.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Health{Health: n.Health}})
	case meter.Sample:
		l.table.AddUsageSamples(boottime.Now(), n.Usage, n.Pressure)
	case claim.SpareReadyEvent:
		l.spares.onReady(n.Spare)
	case claim.SpareFailedEvent:
		l.spares.onFailed(n)
	case claim.SpareGoneEvent:
		delete(l.spares.leaving, n.ID)
	case claim.GoneEvent:
		delete(l.runners, n.Claim)
		l.forgetHealth(n.Claim)
		delete(l.firstAdSequence, n.Claim)
		l.metrics.setThrottled(n.Claim, false)
	case gpusChanged:
		l.onHealthChanged()
	case quiescedEvent:
		l.onQuiesced(n)
	case sendFailure:
		l.onSendFailure(n)
	case loopQuery:
		n.query(l)
		close(n.done)
	}
}

// publishAd advertises the machine as it stands. A minor change is worth it only when
// something differs.
func (l *machineLoop) publishAd(major bool) {
	running := l.table.Running()
	if !major && running == l.advertisedRunning && time.Since(l.lastFullAd) < fullAdInterval &&
		!l.host.gpus.IsAdStale() && !l.table.IsClaimsAdStale(boottime.Now(), l.host.meters.CheckpointInfo) &&
		!l.table.IsReclaimableAdStale() {
		return
	}
	began := boottime.Now()
	l.table.SetLoad(loadAverage())
	ad := l.table.Ad()
	if l.ownerState != nil {
		l.ownerState.Describe(ad)
	}
	l.table.DescribeClaims(ad, slot.ClockReading{Now: boottime.Now(), Wall: time.Now()}, l.host.meters.CheckpointInfo)
	l.describeEndpoints(ad)
	l.endpointsStale = false
	l.host.gpus.DescribeUsage(ad)
	l.host.meters.Describe(ad)
	l.host.speed.describe(ad)
	l.host.describeContainers(ad)
	ad.SetInt(roost.AttrUpdateSequence, int64(l.sequence+1))
	l.sequence = l.host.ads.Update(ad.String(), l.host.privateAd())
	l.pacing.madeAt = boottime.Now()
	l.pacing.took = l.pacing.madeAt - began
	l.advertisedVersion, l.lastFullAd, l.advertisedRunning = l.table.Version(), time.Now(), running
	for id := range l.runners {
		if l.firstAdSequence[id] == 0 {
			l.firstAdSequence[id] = l.sequence
		}
	}
}
