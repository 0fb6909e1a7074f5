package api

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/sitescript"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/submitfilter"
	"github.com/roost-batch/roost/schedd/transfer"
	"github.com/roost-batch/roost/schedd/usagewindow"
)

// Loop is the schedd's loop, which owns the queue and the claims. CallLoop, PostCall
// and StoppingError are for goroutines outside it; all else is called in the loop only.
type Loop interface {
	// CallLoop runs f in the loop and waits for it.
	CallLoop(ctx context.Context, f func(now time.Time)) error
	// PostCall has f run in the loop and does not wait for it. It is false if ctx or the
	// daemon ended before.
	PostCall(ctx context.Context, f func(now time.Time)) bool
	// StoppingError is the error for a call that the end of the daemon, or of the caller,
	// cut short.
	StoppingError(ctx context.Context) error

	// CommitEvents applies events and has them written with the present batch.
	CommitEvents(events ...queue.JobEvent)
	// AfterCommit runs f when all that was decided so far is on disk.
	AfterCommit(f func())
	// AfterNextCommit is AfterCommit where events that wait for company need not hurry
	// for f.
	AfterNextCommit(f func())
	// HurryCommit has the present batch written at once.
	HurryCommit()
	// PostLater has f run in a later turn.
	PostLater(f func(now time.Time))
	SubmitLimits() queue.SubmitLimits
	// RankWait says which ranks an MPI program waits for; empty for none.
	RankWait(a roost.AttemptID) string
	// SendTo puts a message on the present session with a node, behind the present batch.
	SendTo(node string, m *wire.ToStartd)
	// SendToLazily is SendTo for messages that the node does not wait for, and reports
	// whether there is a session.
	SendToLazily(node string, m *wire.ToStartd) bool
	// Node is the connection to a node; nil: there is none.
	Node(name string) *transfer.StartdNode
	// HasSession reports whether a node answers now.
	HasSession(name string) bool
	// SilentNodes lists the nodes that do not answer now.
	SilentNodes() []string
	Now() time.Time            // of the present turn
	BootTime() roost.BootTime  // likewise
	BootClock() roost.BootTime // read anew
	ResumedAt() roost.BootTime // when this start of the schedd took up what the log knows
	// TaskLoad is how many tasks wait, and how many run.
	TaskLoad() (queued, running int)
}

// Config is what a Service needs.
type Config struct {
	Node     *config.Node
	Identity *rpc.Identity
	Log      *slog.Logger
	Started  time.Time
	Queue    *queue.Queue
	Dispatch *dispatch.Dispatcher
	Journal  *journal.Journal
	History  *history.History
	// RemoveHistory removes jobs from it, and from its copies on other hosts.
	RemoveHistory func(seqs ...uint64) error
	Reserve       *journal.DiskReserve
	Loop          Loop
	Leader        *negotiation.LeaderConn
	Transfers     *transfer.FileTransfers
	Peers         *peers.Peers
	Admins        *peers.JobAdmins
	Users         *transfer.UserAgents
	Table         *JobTable
	Metrics       *metrics.Schedd
	Scripts       *sitescript.Groups // of the submit filter; nil: it has none
	// WaitsForHook reports whether an attempt waits for the start hook of the site; nil:
	// none does. The loop calls it.
	WaitsForHook func(roost.AttemptID) bool

	// Elsewhere returns how the tasks of a request fare in other pools, a line for each;
	// nil: they run in this one only.
	Elsewhere func(queue.RequestID) []string

	// AddUsage takes an hour of an attempt for the accounts. It fills in the key.
	AddUsage     func(usagewindow.Attempt, *accounting.UsageHour)
	SpentBudgets *atomic.Pointer[admission.SpentBudgets] // that an accountant has said
	// AccountantAddress is what an accountant has said when it called; empty: none has
	AccountantAddress func() string
}

// jobView tells how jobs are: rows of lists, explanations, watches, and which jobs a
// selection names. The loop owns it; its queue and its maps are read and changed there.
type jobView struct {
	node          *config.Node
	log           *slog.Logger
	loop          Loop
	history       *history.History
	leader        *negotiation.LeaderConn
	peerSchedds   *peers.Peers
	jobTable      *JobTable // of the queue, for lists
	transfers     *transfer.FileTransfers
	daemonContext context.Context            // of the daemon
	startHookWait func(roost.AttemptID) bool // nil: none waits

	// ---- owned by the loop ----
	queue        *queue.Queue
	dispatch     *dispatch.Dispatcher
	watches      map[roost.JobID]map[*jobWatch]bool
	liveUsage    liveUsage
	checkResults checkResults
	// usage over time of the attempts that run
	usageWindows *usagewindow.Log
	waits        waitSummary
	elsewhere    func(queue.RequestID) []string
}

// jobActions decides what users and commands change of jobs. All its methods are called
// in the loop.
type jobActions struct{ *jobView }

// Service answers users' calls. Each call runs in a goroutine of gRPC's and goes to
// the loop for what belongs to it.
type Service struct {
	unimplementedSchedd
	*nameQueries
	*blobCalls
	*flowCalls
	*jobActions
	identity             *rpc.Identity
	started              time.Time
	journal              *journal.Journal
	removeHistory        func(seqs ...uint64) error
	reserve              *journal.DiskReserve // of the log's disk
	admins               *peers.JobAdmins
	metrics              *metrics.Schedd
	users                *transfer.UserAgents
	poolGPUs             poolGPUs
	logins               *login.Store // nil: it listens to nobody but its own host
	cellSubmissions      cellSubmissions
	shells               atomic.Int32 // open through this schedd
	interactiveTerminals atomic.Int32 // of interactive jobs
	accountantAddress    func() string
	issuer               *loginIssuer         // nil without logins
	filter               *submitfilter.Filter // of the site; nil: none
	spentBudgets         *atomic.Pointer[admission.SpentBudgets]
}

// New returns the service; nothing is started.
func New(c Config) *Service {
	v := &jobView{
		elsewhere: c.Elsewhere,
		node:      c.Node, log: c.Log, loop: c.Loop, history: c.History, leader: c.Leader, peerSchedds: c.Peers,
		jobTable: c.Table, queue: c.Queue, dispatch: c.Dispatch, watches: make(map[roost.JobID]map[*jobWatch]bool),
		liveUsage: make(liveUsage), checkResults: make(checkResults), usageWindows: usagewindow.NewLog(c.AddUsage),
		transfers: c.Transfers, startHookWait: c.WaitsForHook,
	}
	s := &Service{
		jobActions: &jobActions{v}, nameQueries: &nameQueries{c.Node, c.Identity},
		identity: c.Identity, started: c.Started,
		journal: c.Journal, removeHistory: c.RemoveHistory, reserve: c.Reserve, admins: c.Admins,
		users: c.Users, metrics: c.Metrics,
		accountantAddress: c.AccountantAddress, spentBudgets: c.SpentBudgets,
		filter: newSubmitFilter(c),
	}
	s.blobCalls = &blobCalls{server: transfer.NewBlobServer(c.Node, c.Identity)}
	s.caller = func(ctx context.Context) (queue.CallerIdentity, error) {
		who, err := s.callerOf(ctx)
		if err == nil {
			err = s.checkUser(who)
		}
		return who, err
	}
	s.flowCalls = &flowCalls{v, s.caller}
	return s
}

// Start gives calls the context of the daemon, which they end with.
func (s *Service) Start(ctx context.Context) { s.daemonContext = ctx }
