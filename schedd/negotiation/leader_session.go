package negotiation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/mutant"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/flock"
	"github.com/roost-batch/roost/schedd/queue"
)

// leaderSession is what the loop knows of the present conversation with the negotiator.
type leaderSession struct {
	out                *sendqueue.Queue[*wire.FromSchedd]
	epoch              uint64
	address            string
	lastGrant          uint64 // the highest grant that was taken in
	lastUpdates        map[queue.RequestID]*lastUpdate
	explanations       map[queue.RequestID]*wire.Explanation
	explanationWaiters map[queue.RequestID][]chan struct{} // closed with the next explanation
	dirty              map[queue.RequestID]bool
	resendAll          bool // the negotiator is to be told everything
	usage              map[submitterKey]heldResources
	admission          quotaAdmission

	outcomesSentAt   map[outcomeKey]time.Time           // when one of a kind was last told
	reportedFailures map[uint64]map[int]queue.RequestID // by job, the tasks of which was told that they failed
}

// lastUpdate is what the negotiator was last told of a request.
type lastUpdate struct {
	wanted    uint32
	noWait    uint32 // of wanted
	gang      uint32
	claims    uint32
	top       uint32 // of wanted: those with the highest priority
	priority  int32
	lastGrant uint64
	sentAt    time.Time
	resendAll bool // all is to be said again
}

// heldResources is what the claims of a submitter hold in this pool and in other pools.
type heldResources struct{ here, elsewhere roost.Resources }

// submitterKey is whom fair share counts.
type submitterKey struct{ owner, group string }

func (s submitterKey) compare(o submitterKey) int {
	return cmp.Or(cmp.Compare(s.owner, o.owner), cmp.Compare(s.group, o.group))
}

func newLeaderSession(n LeaderConnected) *leaderSession {
	return &leaderSession{
		out: n.Out, epoch: n.Epoch, address: n.Address, lastUpdates: make(map[queue.RequestID]*lastUpdate),
		explanations:       make(map[queue.RequestID]*wire.Explanation),
		explanationWaiters: make(map[queue.RequestID][]chan struct{}),
		dirty:              make(map[queue.RequestID]bool), usage: make(map[submitterKey]heldResources),
		resendAll:      true,
		outcomesSentAt: make(map[outcomeKey]time.Time), reportedFailures: make(map[uint64]map[int]queue.RequestID),
		admission: quotaAdmission{waiters: make(map[uint64]chan error), deferred: make(map[uint64]uint64),
			deferredJobs: make(map[uint64]bool)},
	}
}

// maxWanted bounds what is asked for at once: a queue of a million tasks is not a million
// claims.
const maxWanted = 10_000

// shrinkInterval is how often the negotiator hears that less is wanted than before. Too
// much of a wish costs a refused grant; a word for each of a thousand tasks that start
// every second would cost more.
const shrinkInterval = 50 * time.Millisecond

// SendRequestUpdates tells the negotiator what has changed in what is wanted.
func (l *LeaderConn) SendRequestUpdates(now time.Time) {
	n := l.stream
	if n == nil {
		return
	}
	whole := n.resendAll
	if n.resendAll && !mutant.Active(mutant.LeaderNotUpdated) {
		l.SendUsage() // before what is wanted, or its tasks would seem to hold nothing
		for _, r := range l.queue.Requests() {
			n.dirty[r] = true
		}
		n.resendAll = false
	}
	for _, id := range sortedKeys(n.dirty) {
		if l.publishRequest(n, id, now) {
			delete(n.dirty, id)
		}
	}
	if whole && n.admission.policy != nil { // before that nobody knows what is counted
		n.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_Told{Told: &wire.Told{}}})
	}
}

// publishRequest tells what is wanted for one request, and reports whether nothing is
// left to be said.
func (l *LeaderConn) publishRequest(n *leaderSession, id queue.RequestID, now time.Time) bool {
	r, ok := l.queue.Request(id)
	ok = ok && r.Inside.Alloc == 0 // the negotiator sees the alloc alone
	ok = ok && (l.guest == nil || l.isOffered(r, now))
	last := n.lastUpdates[id]
	wanted, noWait, gang, lead := uint32(0), uint32(0), uint32(0), uint64(0)
	behind := l.queue.WaitsForEarlierGang(id)
	if ok && !behind {
		noWait = l.guest.elseZero(uint32(min(l.dispatch.Movable(l.loop.BootTime(), dispatch.RequestID(id)), maxWanted)))
		wanted = noWait + uint32(min(max(r.Ready-l.dispatch.ClaimCounts(dispatch.RequestID(id)), 0), maxWanted))
		if size, ok := l.queue.NextGang(id); ok {
			gang = uint32(size)
			if at, mixed := l.queue.GangRequest(id); !mixed || gang == 0 {
				wanted = wholeGangTasks(wanted, gang)
			} else {
				lead = uint64(at)
			}
		}
	}
	// While all that is ready has a grant, of which some may yet be refused, the
	// negotiator must not forget the request: with it, it would forget who refused, and
	// offer the same again for ever.
	top := uint32(0)
	if ok {
		top = min(wanted, uint32(max(0, r.PriorityTasks-l.dispatch.ClaimCounts(dispatch.RequestID(id)))))
	}
	tries := ok && wanted == 0 && r.Ready > 0 && !behind
	claims := uint32(0)
	if ok && n.countsQueue(r.Queue) {
		claims = uint32(l.dispatch.ClaimCount(dispatch.RequestID(id)))
	}
	if tries {
		claims = max(claims, 1)
	}
	switch {
	case last == nil && wanted == 0 && claims == 0:
		return true
	case last != nil && !last.resendAll && wanted == last.wanted && noWait == last.noWait && gang == last.gang &&
		claims == last.claims && top == last.top && int32(r.Priority) == last.priority && n.lastGrant == last.lastGrant:
		return true
	case last != nil && wanted > 0 && wanted < last.wanted && now.Sub(last.sentAt) < shrinkInterval:
		return false // soon
	}
	m := &wire.RequestUpdate{Id: uint64(id), Wanted: wanted, NoWait: noWait, GrantsSeen: proto.Uint64(n.lastGrant),
		Lost: min(uint32(l.lostTasks[id]), wanted)}
	if ok {
		m.Owner, m.Group, m.Band, m.Priority = r.Owner, r.Group, r.Band.String(), int32(r.Priority)
		m.Oldest, m.Resources = r.OldestSubmit.UnixNano(), wire.FromResources(r.Resources)
		m.Gang, m.Lead, m.Reservation = gang, lead, r.Reservation
		m.Now, m.AtPriority = r.Now, top
		m.WalltimeS, m.PredictedS = int64(r.Walltime/time.Second), int64(r.PredictedRuntime/time.Second)
		if last == nil || last.resendAll {
			m.Ad = r.Ad
		}
		m.Counting = limitCounting(l.queue.LimitCounting(id))
		m.Queue, m.Claims, m.UnixGroup = r.Queue, claims, l.groups.GroupName(r.GID)
		n.lastUpdates[id] = &lastUpdate{wanted: wanted, noWait: noWait, gang: gang, claims: claims, top: top,
			priority: int32(r.Priority), lastGrant: n.lastGrant, sentAt: now}
	}
	if wanted == 0 && claims == 0 { // the negotiator forgets it: the next word on it is a whole one
		delete(n.lastUpdates, id)
		delete(n.explanations, id)
		l.reasons.DeleteReason(id)
		l.starts.forget(id)
		delete(l.lostTasks, id)
		n.notifyWaiters(id)
	}
	n.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: m}})
	return true
}

// limitCounting is how the wire says as what limits count a request's tasks.
func limitCounting(c queue.LimitCounting) wire.RequestUpdate_Counting {
	switch c {
	case queue.CountOnce:
		return wire.RequestUpdate_TOGETHER
	case queue.CountedElsewhere:
		return wire.RequestUpdate_ELSEWHERE
	}
	return wire.RequestUpdate_EACH
}

// wholeGangTasks is how much of what is wanted is whole gangs. One of a size of its own,
// of which some tasks have ended, comes before those behind it.
func wholeGangTasks(wanted, size uint32) uint32 {
	switch size {
	case 0:
		return 0
	case 1:
		return min(wanted, 1) // what is left of one; those behind it start together
	}
	return wanted / size * size
}

// maxExplanationWaiters bounds how many may wait for one answer.
const maxExplanationWaiters = 1000

// addWaiter asks why a request waits, and reports whether an answer will come. answered
// is closed when it is there, or when nothing waits any more.
func (n *leaderSession) addWaiter(id queue.RequestID, answered chan struct{}) bool {
	if n.lastUpdates[id] == nil || len(n.explanationWaiters[id]) >= maxExplanationWaiters {
		return false
	}
	n.explanationWaiters[id] = append(n.explanationWaiters[id], answered)
	n.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_Why{Why: &wire.WhyWaiting{Request: uint64(id)}}})
	return true
}

// notifyWaiters lets those go on who have asked about a request.
func (n *leaderSession) notifyWaiters(id queue.RequestID) {
	for _, answered := range n.explanationWaiters[id] {
		close(answered)
	}
	delete(n.explanationWaiters, id)
}

// localTimes turns the negotiator's times into this machine's.
func (l *LeaderConn) localTimes(m *wire.Kept) []dispatch.UnavailableWindow {
	began := l.loop.Now().Add(-l.loop.BootTime())
	all := make([]dispatch.UnavailableWindow, len(m.GetNodes()))
	for i, k := range m.GetNodes() {
		all[i] = dispatch.UnavailableWindow{Node: k.GetNode(), From: time.Unix(k.GetFrom(), 0).Sub(began),
			Reservation: k.GetReservation()}
		if k.GetUntil() != 0 {
			all[i].Until = time.Unix(k.GetUntil(), 0).Sub(began)
		}
	}
	return all
}

// drainsOf lists the nodes that services are to leave.
func drainsOf(p *wire.Policy) (all []queue.NodeDrain) {
	at := func(seconds int64) time.Time {
		if seconds <= 0 {
			return time.Time{}
		}
		return time.Unix(seconds, 0)
	}
	for _, d := range p.GetDrains() {
		all = append(all, queue.NodeDrain{Node: d.GetNode(), Reason: d.GetReason(), From: at(d.GetFrom()),
			Until: at(d.GetUntil()), Deadline: at(d.GetDeadline())})
	}
	return all
}

// onNegotiatorMessage takes in a message of the negotiator.
func (l *LeaderConn) onNegotiatorMessage(m *wire.ToSchedd) {
	if l.guest != nil {
		l.onHostMessage(m)
		return
	}
	switch m := m.GetOf().(type) {
	case *wire.ToSchedd_Grant:
		tasktrace.Mark(tasktrace.Granted, tasktrace.Task{})
		g := m.Grant
		l.stream.lastGrant = max(l.stream.lastGrant, g.GetId())
		l.stream.dirty[queue.RequestID(g.GetRequest())] = true
		where := formatLocation(g.GetNode(), g.GetHost(), g.GetAddress())
		if l.loop.HasMoved(g.GetNode(), where) {
			l.SendGrantResult(dispatch.GrantResult{
				Grant:   roost.GrantID{Epoch: g.GetEpoch(), ID: g.GetId()},
				Request: dispatch.RequestID(g.GetRequest()),
				Reason: "another node says that the machine is its own, and what runs here on that of before may " +
					"not have ended",
			})
			return
		}
		l.dispatch.Granted(l.loop.BootTime(), dispatch.Grant{
			GrantID: roost.GrantID{Epoch: g.GetEpoch(), ID: g.GetId()}, Request: dispatch.RequestID(g.GetRequest()),
			Node:    g.GetNode(),
			Address: where, Resources: g.GetResources().Vector(), Token: g.GetCapability(),
			PortRights: g.GetPortRights(),
			ClaimBy:    time.Duration(g.GetClaimBy()), MayWait: g.GetWaiting(), GangID: g.GetGang(),
			GangSize: int(g.GetGangSize()), Victims: g.GetVictims(), VictimReason: g.GetWhy(),
		})
	case *wire.ToSchedd_Admitted:
		if asked := l.stream.admission.routes.askedAdmit; asked != 0 && asked == m.Admitted.GetId() {
			l.onRouteAnswer(l.loop.Now(), m.Admitted)
		} else if seq, later := l.stream.admission.deferred[m.Admitted.GetId()]; later {
			l.onDeferredCheck(seq, m.Admitted)
		} else {
			l.stream.onAdmitReply(m.Admitted)
		}
	case *wire.ToSchedd_Policy:
		l.stream.setPolicy(m.Policy)
		l.admins.Set(m.Policy.GetJobAdmins())
		l.lastPolicy = m.Policy
		l.queue.SetDrains(drainsOf(m.Policy))
		if len(m.Policy.GetDeleting()) > 0 {
			l.RemoveReservationJobs(l.queue.MatchingJobs(queue.JobFilter{}), l.loop.Now())
		}
		l.stream.admission.routes.fullQueues = nil
		l.retryAllRouting()
		l.stream.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_PolicySeen{
			PolicySeen: &wire.PolicySeen{Version: m.Policy.GetVersion()}}})
	case *wire.ToSchedd_Room:
		l.onQueueRoom(m.Room.GetQueue())
	case *wire.ToSchedd_Kept:
		l.dispatch.SetUnavailable(l.localTimes(m.Kept))
	case *wire.ToSchedd_Unplaced:
		id := queue.RequestID(m.Unplaced.GetRequest())
		if refused := m.Unplaced.GetRefused(); refused != "" {
			if events := l.queue.DenyRun(l.loop.Now(), id, refused); len(events) > 0 {
				l.loop.CommitEvents(events...)
				return
			}
			l.loop.CommitEvents(l.queue.HoldInfeasible(l.loop.Now(), id, refused)...)
			return
		}
		l.stream.explanations[id] = m.Unplaced.GetExplanation()
		l.reasons.SetReason(id, m.Unplaced.GetExplanation())
		l.starts.note(id, m.Unplaced.GetExplanation(), l.loop.Now())
		l.stream.notifyWaiters(id)
	}
}

// SendGrantResult tells the negotiator what became of a grant, which may be one of the
// leader before.
func (l *LeaderConn) SendGrantResult(a dispatch.GrantResult) {
	if l.stream == nil {
		return
	}
	l.stream.dirty[queue.RequestID(a.Request)] = true
	a.Grant.Epoch, _ = flock.SplitEpoch(a.Grant.Epoch)
	l.stream.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: &wire.GrantResult{
		Grant: a.Grant.ID, Epoch: a.Grant.Epoch, Claimed: a.Claimed, Waiting: a.Waiting, AdSequence: a.AdSequence,
		Reason: a.Reason,
	}}})
}

// SendUsage tells the negotiator what each submitter holds, where that has changed.
func (l *LeaderConn) SendUsage() {
	n := l.stream
	if n == nil || l.guest != nil { // a host counts what its machines say
		return
	}
	held := make(map[submitterKey]heldResources)
	l.dispatch.EachTotal(func(id dispatch.RequestID, t dispatch.RequestTotal) {
		r, ok := l.queue.Request(queue.RequestID(id))
		if ok && (r.Inside.Alloc == 0 || mutant.Active(mutant.InsideCharged)) { // the alloc is counted
			who := submitterKey{r.Owner, r.Group}
			h := held[who]
			held[who] = heldResources{h.here.Add(t.Resources.Sub(t.Elsewhere)), h.elsewhere.Add(t.Elsewhere)}
		}
	})
	for who := range n.usage {
		if _, ok := held[who]; !ok {
			held[who] = heldResources{}
		}
	}
	for _, who := range slices.SortedFunc(maps.Keys(held), submitterKey.compare) {
		h := held[who]
		if n.usage[who] == h {
			continue
		}
		n.usage[who] = h
		u := &wire.Usage{Owner: who.owner, Group: who.group, Held: wire.FromResources(h.here)}
		if h.elsewhere != (roost.Resources{}) {
			u.Elsewhere = wire.FromResources(h.elsewhere)
		}
		n.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: u}})
	}
}

func sortedKeys(m map[queue.RequestID]bool) []queue.RequestID {
	keys := make([]queue.RequestID, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
