package startd

import (
	"context"
	"math"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// News for the loop: of sessions, and of the hands of claims.
type (
	opened struct {
		session *session
		hello   *wire.SessionHello
		refused chan error // gets one value, nil when the session is on
	}
	closed struct{ session *session }
	heard  struct {
		session *session
		message *wire.ToStartd
		who     verdict // of a claim request: as whom its tasks run
		size    int64   // that it holds of the session's room
	}
	made   struct{ claim slot.ClaimID }
	unmade struct {
		claim  slot.ClaimID
		reason string
	}
	inputReady struct {
		claim   slot.ClaimID
		id      roost.AttemptID
		scratch string
	}
	started struct {
		claim slot.ClaimID
		id    roost.AttemptID
		pid   int64
	}
	ended struct {
		claim  slot.ClaimID
		id     roost.AttemptID
		exited *wire.Exited
	}
	handGone struct{ claim slot.ClaimID }
	// takenNews is for a schedd: a checkpoint was taken, or not.
	takenNews struct {
		schedd string
		taken  *wire.CheckpointTaken
	}
	// gpusChanged: a device is sick, or well again, or gone.
	gpusChanged struct{}
	// question is answered by a goroutine that looks at the loop's state, and nothing else.
	question struct {
		ask  func(*loop)
		done chan struct{}
	}
)

// minorEvery is how soon a change is advertised by which nobody decides, such as the number of running tasks; restateEvery, how often the ad is
// made anew even if nothing seems to have changed.
const (
	minorEvery   = 5 * time.Second
	restateEvery = time.Minute
)

// loop owns the machine's books.
type loop struct {
	m        *machine
	core     *slot.Core
	hands    map[slot.ClaimID]*hand
	exits    map[slot.ClaimID]*wire.Exited // of attempts that ended and are not forgotten
	pids     map[slot.ClaimID]int64
	programs map[slot.ClaimID]*wire.Activate   // between the word and the start
	pinned   map[slot.ClaimID][]int            // cores that a claim has to itself; entries of claims that hold nothing are dropped when one is made
	shown    map[slot.ClaimID]uint64           // sequence of the first ad that shows the claim
	rights   map[slot.ClaimID]files.Credential // of claims that are about to be made
	sessions map[uint64]*session
	last     uint64 // number of the last session
	sequence uint64 // of the last ad
	version  uint64 // of the books that it shows
	restated time.Time
	running  int           // attempts that it shows
	lent     *lent         // nil: the machine is nobody's
	notice   time.Duration // the longest notice that is left to tasks; 0: their own

	refusedFrom time.Duration // since boot: the second in which refusals are counted
	refusals    map[string]int
}

func newLoop(m *machine, core *slot.Core) *loop {
	return &loop{
		m: m, core: core, hands: make(map[slot.ClaimID]*hand), exits: make(map[slot.ClaimID]*wire.Exited), pids: make(map[slot.ClaimID]int64),
		pinned: make(map[slot.ClaimID][]int), programs: make(map[slot.ClaimID]*wire.Activate), shown: make(map[slot.ClaimID]uint64), sessions: make(map[uint64]*session),
		rights: make(map[slot.ClaimID]files.Credential),
	}
}

// maxBatch is how much news is taken in before what follows from it is done.
const maxBatch = 256

// run takes in news and does what follows until ctx ends and nothing is left to be done.
func (l *loop) run(ctx context.Context) {
	defer close(l.m.stopped)
	minor := time.NewTicker(minorEvery)
	defer minor.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var end farewell
	for {
		wake := l.act()
		for end.advance(l, false) {
		}
		if end.stage == left {
			return
		}
		begin, up := end.cue(ctx)
		timer.Reset(min(max(wake-boottime(), 0), time.Hour))
		if l.hearGuard() {
			continue // before anything else
		}
		select {
		case signs := <-l.m.signs:
			l.signed(signs)
		case n := <-l.m.lost:
			l.guardLost(n)
		case news := <-l.m.inbox:
			l.take(news)
			for n := len(l.m.inbox); n > 0 && n < maxBatch; n-- {
				l.take(<-l.m.inbox)
			}
		case <-timer.C:
		case <-minor.C:
			l.publish(false)
			if l.lent != nil {
				l.lookAtRules()
				l.reportTo()
			}
		case <-begin:
			end.begin(l)
		case <-up:
			end.advance(l, true)
		}
	}
}

// act does what the books say, and returns when to ask them again.
func (l *loop) act() slot.Instant {
	for {
		wake := slot.Instant(math.MaxInt64)
		if l.lent != nil {
			wake = l.attend()
		}
		effects, next := l.core.Todo(boottime())
		if l.core.Version() != l.version || l.lent != nil && l.lent.News() {
			l.publish(true)
		}
		for _, e := range effects {
			l.perform(e)
		}
		if l.lent == nil || !l.lent.Stale() {
			return min(wake, next)
		}
	}
}

// hearGuard takes in what the guard says, if it has said something.
func (l *loop) hearGuard() bool {
	select {
	case signs := <-l.m.signs:
		l.signed(signs)
	case n := <-l.m.lost:
		l.guardLost(n)
	default:
		return false
	}
	return true
}

// take enters one piece of news into the books.
func (l *loop) take(news any) {
	switch n := news.(type) {
	case opened:
		n.refused <- l.open(n.session, n.hello)
	case closed:
		delete(l.sessions, n.session.id)
		l.core.Disconnected(boottime(), n.session.id, n.session.schedd)
	case heard:
		n.session.room.Release(n.size)
		if l.sessions[n.session.id] == n.session {
			l.hear(n.session, n.message, n.who)
		}
	case made:
		l.core.Made(n.claim)
	case unmade:
		l.core.Unmade(boottime(), n.claim, n.reason)
	case inputReady:
		if c, ok := l.core.Find(n.id); ok {
			l.tell(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Input{Input: &wire.InputReady{Attempt: reference(n.id), Scratch: n.scratch, Holes: true}}})
		}
	case started:
		l.pids[n.claim] = n.pid
		l.core.Started(boottime(), n.claim, n.id)
	case ended:
		l.exits[n.claim] = n.exited
		l.core.Ended(boottime(), n.claim, n.id)
	case usageNews:
		l.tell(n.schedd, &wire.FromStartd{Of: &wire.FromStartd_Usage{Usage: n.report}})
	case takenNews:
		l.tell(n.schedd, &wire.FromStartd{Of: &wire.FromStartd_Taken{Taken: n.taken}})
	case usesNews:
		l.core.Sampled(boottime(), n.use, n.pressure)
	case handGone:
		delete(l.hands, n.claim)
		delete(l.shown, n.claim)
	case gpusChanged:
		l.healthChanged()
	case stood:
		l.stood(n)
	case sendFailure:
		l.failedSend(n)
	case question:
		n.ask(l)
		close(n.done)
	}
}

// publish advertises the machine as it stands. A minor change is worth it only when something differs.
func (l *loop) publish(major bool) {
	running := l.core.Running()
	if !major && running == l.running && time.Since(l.restated) < restateEvery && !l.m.gpus.news() && !l.core.ClaimsNews(boottime(), l.m.meters.saved) && !l.core.RoomNews() {
		return
	}
	l.core.Observe(loadAverage())
	ad := l.core.Ad()
	if l.lent != nil {
		l.lent.Describe(ad)
	}
	l.core.DescribeClaims(ad, slot.Clock{Now: boottime(), Wall: time.Now()}, l.m.meters.saved)
	l.m.gpus.describe(ad)
	l.m.describeUsage(ad)
	ad.SetInt(roost.AttrUpdateSequence, int64(l.sequence+1))
	l.sequence = l.m.ads.Update(ad.String(), l.m.private())
	l.version, l.restated, l.running = l.core.Version(), time.Now(), running
	for id := range l.hands {
		if l.shown[id] == 0 {
			l.shown[id] = l.sequence
		}
	}
}
