package negotiation

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
)

// Loop is the schedd's loop. Its methods are called in the loop only.
type Loop interface {
	Now() time.Time           // of the present turn
	BootTime() roost.BootTime // of the present turn
	// CommitEvents applies events and has them written with the present batch.
	CommitEvents(events ...queue.JobEvent)
	SubmitLimits() queue.SubmitLimits
	// OnCommit runs f when all that was decided so far is on disk, and hurries nothing.
	OnCommit(f func())
	// PostLater has f run in a later turn.
	PostLater(f func(now time.Time))
	// HasMoved reports whether another node than the connected one says that it has a
	// machine.
	HasMoved(machine, location string) bool
}

// LoopCalls brings calls and events from other goroutines to the loop.
type LoopCalls interface {
	// CallLoop runs f in the loop and waits for it.
	CallLoop(ctx context.Context, f func(now time.Time)) error
	// PostCall has f run in the loop and does not wait for it.
	PostCall(ctx context.Context, f func(now time.Time)) bool
	// PostEvent brings an event to the loop. It is false if ctx or the daemon ended
	// before.
	PostEvent(ctx context.Context, event any) bool
}

// ReasonTable has why requests wait, for lists of jobs.
type ReasonTable interface {
	SetReason(id queue.RequestID, e *wire.Explanation)
	DeleteReason(id queue.RequestID)
	ClearReasons()
}

// GroupNamer knows the Unix groups of users by name.
type GroupNamer interface {
	GroupName(gid uint32) string
	// GroupNames lists all groups of a user, the one of that gid first.
	GroupNames(uid, gid uint32) []string
}

// Config is what a LeaderConn needs.
type Config struct {
	Host        string // name of this schedd
	Address     string // where it is reached
	Started     time.Time
	Negotiators []string // their addresses in the node file
	Identity    *rpc.Identity
	Log         *slog.Logger
	Queue       *queue.Queue
	Dispatch    *dispatch.Dispatcher
	Loop        Loop
	Calls       LoopCalls
	Reasons     ReasonTable
	Groups      GroupNamer
	Admins      *peers.JobAdmins
	AttackPeers func(ctx context.Context) // of a hostile schedd
	Guest       *Guest                    // of the leader of another pool; nil: it is that of this pool
}

// LeaderConn is the loop's side of the connection to the leader. What is below the line
// belongs to the loop.
type LeaderConn struct {
	host        string
	address     string
	started     time.Time
	negotiators []string
	identity    *rpc.Identity
	log         *slog.Logger
	loop        Loop
	calls       LoopCalls
	reasons     ReasonTable
	groups      GroupNamer
	admins      *peers.JobAdmins
	placer      *selfPlacer
	attackPeers func(ctx context.Context)
	leadership  atomic.Pointer[string] // how the negotiators are, in words

	// ---- owned by the loop ----
	queue        *queue.Queue
	dispatch     *dispatch.Dispatcher
	stream       *leaderSession          // nil: no leader is connected
	lastPolicy   *wire.Policy            // what administrators have set, as it was heard last
	lostTasks    map[queue.RequestID]int // tasks whose node was lost and that have not started elsewhere
	nodeFailures nodeFailures
	starts       startErrors
	guest        *guestState // nil: the leader is that of this pool
}

// New returns one without a leader.
func New(c Config) *LeaderConn {
	l := &LeaderConn{
		host: c.Host, address: c.Address, started: c.Started, negotiators: c.Negotiators, identity: c.Identity,
		log: c.Log, queue: c.Queue, dispatch: c.Dispatch, loop: c.Loop, calls: c.Calls, reasons: c.Reasons,
		groups: c.Groups, admins: c.Admins, placer: newSelfPlacer(c.Host, c.Log), attackPeers: c.AttackPeers,
		lostTasks: make(map[queue.RequestID]int),
	}
	if c.Guest != nil {
		l.guest = newGuestState(*c.Guest)
	}
	return l
}

// OnConnected takes in that a leader has answered the hello.
func (l *LeaderConn) OnConnected(n LeaderConnected) {
	if l.stream != nil {
		l.stream.admission.releaseWaiters()
	}
	l.stream = newLeaderSession(n)
	l.reasons.ClearReasons()
	l.log.Info("negotiator found", "name", n.Name, "epoch", n.Epoch)
}

// OnDisconnected takes in the end of a stream.
func (l *LeaderConn) OnDisconnected(n LeaderDisconnected) {
	if l.stream != nil && l.stream.out == n.Out {
		l.stream.admission.releaseWaiters()
		l.stream = nil
		l.reasons.ClearReasons()
	}
}

// OnMessage takes in one message of the present stream.
func (l *LeaderConn) OnMessage(n LeaderMessage) {
	if l.stream != nil && l.stream.out == n.Out {
		l.onNegotiatorMessage(n.Message)
	}
}

// IsConnected reports whether a leader is connected.
func (l *LeaderConn) IsConnected() bool { return l.stream != nil }

// LeaderAddress is where the connected leader is; "" if there is none.
func (l *LeaderConn) LeaderAddress() string {
	if l.stream == nil {
		return ""
	}
	return l.stream.address
}

// MarkDirty has the next update to the leader include a request.
func (l *LeaderConn) MarkDirty(id queue.RequestID) {
	if l.stream != nil {
		l.stream.dirty[id] = true
	}
}

// Explanation is the leader's last Explanation of a request; nil: it gave none.
func (l *LeaderConn) Explanation(id queue.RequestID) *wire.Explanation {
	if l.stream == nil {
		return nil
	}
	return l.stream.explanations[id]
}

// AddWaiter asks the leader why a request waits, and reports whether it will answer.
// answered is closed when it is there, or when nothing waits any more.
func (l *LeaderConn) AddWaiter(id queue.RequestID, answered chan struct{}) bool {
	return l.stream != nil && l.stream.addWaiter(id, answered)
}

// ChecksQuotas reports whether the leader has to be asked before jobs ask for more.
func (l *LeaderConn) ChecksQuotas() bool {
	return l.stream != nil && l.stream.admission.policy.GetAdmission()
}

// RequestQuota asks the leader for what a quota key demands. finish is to be called in
// the loop when it is decided what became of that.
func (l *LeaderConn) RequestQuota(payer queue.QuotaKey, d queue.QuotaDemand) (finish func(), answer chan error) {
	return l.sendDemand(l.stream, []queue.QuotaKey{payer}, []*wire.Demand{l.demandMessage(payer, d)})
}

// AdmitWithoutLeader admits jobs by the policy alone. Where a leader is connected that
// checks quotas it refuses: the leader would have to be asked first.
func (l *LeaderConn) AdmitWithoutLeader(now time.Time, who queue.CallerIdentity, specs []queue.SubmitSpec) error {
	e := &admission.QueueAdmission{Now: now, Submitter: who, Groups: func() []string {
		return nil
	}, FullQueues: map[string]bool{}, Policy: l.Policy()}
	if l.stream == nil || l.stream.admission.policy == nil {
		markUnchecked(specs)
	} else if e.Policy.GetAdmission() {
		return roost.Unavailable
	}
	return e.AdmitJobs(specs)
}
