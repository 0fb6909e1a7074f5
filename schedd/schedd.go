package schedd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/relay"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/sitescript"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/api"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/feed"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/jobhooks"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/notify"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
	"github.com/roost-batch/roost/schedd/usagewindow"
	"github.com/roost-batch/roost/schedd/userlog"
)

// inboxSize bounds what waits for the loop; when it is full, the ones who bring news
// wait.
const inboxSize = 4096

// Schedd is the daemon. Its fields below the line belong to the loop.
type Schedd struct {
	node          *config.Node
	identity      *rpc.Identity
	log           *slog.Logger
	started       time.Time
	daemonContext context.Context // of the daemon
	journal       *journal.Journal
	replicated    *ReplicatedLog // nil: the journal is on this host only
	history       *history.History
	// of a simulation: says what is known of past jobs, in place of history
	pastJobs      func(*queue.SubmitLimits)
	feed          *feed.Feed                             // for the accountant; nil in a simulation
	accountantAt  atomic.Pointer[string]                 // address that an accountant has said
	spentBudgets  atomic.Pointer[admission.SpentBudgets] // that an accountant has said
	openObjects   transfer.OpenObjectAccount             // nil: jobs have no objects
	reserve       *journal.DiskReserve                   // of the log's disk
	users         *transfer.UserAgents
	notifier      *notify.Notifier
	scripts       *sitescript.Groups // of the site; nil: there are none
	hooks         *jobhooks.Runner   // of starts and ends; nil: there are none
	inbox         chan any
	peerSchedds   *peers.Peers
	sessions      atomic.Uint64 // the incarnation of the last session
	logSize       atomic.Int64  // bytes in the log since the last checkpoint
	logWriteSince atomic.Int64  // since when the log is written, by CLOCK_BOOTTIME; 0: it is not
	checkpointing atomic.Bool   // a checkpoint is decided and not yet written
	unconfirmed   unconfirmedRenewals
	spawnCalls    atomic.Int32 // calls of jobs under way
	rankGangs     rankGangs
	jobTable      api.JobTable // of the queue, for lists
	admins        peers.JobAdmins
	metrics       loopMetrics

	effects effectRunner           // what the loop has done elsewhere
	fetcher transfer.OutputFetcher // of outputs; nil: the transfers themselves

	// ---- owned by the loop ----
	clock          clockReading   // of the present turn
	resumed        roost.BootTime // when this start of the schedd took up what the log knows as under way
	queue          *queue.Queue
	dispatch       *dispatch.Dispatcher
	peers          map[string]*nodeConn
	leader         *negotiation.LeaderConn
	flock          []*hostPool // the pools that lend machines, in the order in which they are asked
	transfers      *transfer.FileTransfers
	service        *api.Service // of users
	archive        *jobArchive
	pending        *commitBatch
	heldStarts     map[roost.AttemptID]*heldStart // that wait for the start hook
	userLogs       *userlog.Writer                // nil: none are written
	flowFiles      *userlog.FlowFiles             // as userLogs
	flowsCommit    bool                           // flows go on when what was decided of them is on disk
	lastHistorySeq uint64                         // the highest number of a job in the history, when the daemon began
	snapshotBytes  int                            // bytes of the last checkpoint's snapshots
	usageSentAt    time.Time                      // when usage was last reported
}

// Run serves until ctx ends. A nil identity speaks over unix sockets only.
func Run(ctx context.Context, node *config.Node, identity *rpc.Identity) error {
	if node.Schedd == nil {
		return fmt.Errorf("node %s: %w: the node file has no schedd block", node.Name, roost.BadConfig)
	}
	return run(ctx, newSchedd(node, identity, daemon.Logger("schedd"), time.Now()))
}

// RunWithObjects returns Run for a schedd whose jobs may have objects of object stores.
func RunWithObjects(open transfer.OpenObjectAccount) func(context.Context, *config.Node, *rpc.Identity) error {
	return func(ctx context.Context, node *config.Node, identity *rpc.Identity) error {
		if node.Schedd == nil {
			return Run(ctx, node, identity)
		}
		s := newSchedd(node, identity, daemon.Logger("schedd"), time.Now())
		s.openObjects = open
		return run(ctx, s)
	}
}

// ReplicatedLog is the log of a queue that several hosts have. One of them at a time runs
// its schedd.
type ReplicatedLog struct {
	// Open opens the journal, which the schedd does not close.
	Open func(journal.Observer) (*journal.Journal, *queue.Queue, error)
	// History is that of this host, which the schedd does not close.
	History *history.History
	// RemoveHistory removes jobs from the histories of all hosts.
	RemoveHistory func(seqs ...uint64) error
	// Incarnation numbers this start of the schedd, above all before on any host. It has
	// at most 40 bits.
	Incarnation uint64
	// Confirm returns nil if this host still leads after the call.
	Confirm func(context.Context) error
	// Serving is called when the schedd serves.
	Serving func()
}

// RunReplicated is Run for the schedd of a replicated queue, while this host leads.
// Identity and log are those of Run.
func RunReplicated(ctx context.Context, node *config.Node, identity *rpc.Identity, log ReplicatedLog) error {
	s := newSchedd(node, identity, daemon.Logger("cell-queue"), time.Now())
	s.replicated = &log
	return run(ctx, s)
}

func run(ctx context.Context, s *Schedd) error {
	node, identity := s.node, s.identity
	s.effects = daemonEffects{s}
	s.peerSchedds = peers.New(node.Name, identity, s.log)
	s.peerSchedds.CellQueue = node.CellQueueName()
	// Naively the daemon would listen when it has read its log. But a client that is
	// refused tries again after a second: it waits in the queue of the socket instead.
	listeners, err := s.openListeners()
	if err != nil {
		return err
	}
	exporter, err := metrics.Open(node, "schedd", "", identity, s.log)
	if err != nil {
		closeAll(listeners)
		return err
	}
	s.metrics.Schedd = metrics.NewSchedd(exporter.Registry(), s.stateDir())
	s.metrics.users = metrics.NewUsers(exporter.Users())
	s.metrics.Snapshots.OnStale(s.metrics.wakeLoop)
	s.metrics.users.Snapshots.OnStale(s.metrics.wakeLoop)
	if err := s.openState(); err != nil {
		closeAll(listeners)
		exporter.Close()
		return err
	}
	defer s.closeFiles()
	return s.runServers(ctx, listeners, exporter)
}

// newSchedd makes what needs no disk and no network.
func newSchedd(node *config.Node, identity *rpc.Identity, log *slog.Logger, started time.Time) *Schedd {
	s := &Schedd{
		node: node, identity: identity, log: log, started: started, inbox: make(chan any, inboxSize),
		peers:   make(map[string]*nodeConn),
		pending: &commitBatch{},
	}
	if identity != nil { // the machines that nobody can dial
		identity.DialRelay = relay.NewDialer(identity).Dial
	}
	s.metrics = loopMetrics{metrics.NewSchedd(nil, ""), metrics.NewUsers(nil), s}
	return s
}

// stateDir is where the schedd keeps what it must not lose.
func (s *Schedd) stateDir() string { return filepath.Join(s.node.Dir, "schedd") }

// openState reads the log and the history. On a full disk they get the room that was kept
// for the log.
func (s *Schedd) openState() (err error) {
	if err := os.MkdirAll(filepath.Join(s.stateDir(), "spool"), 0o700); err != nil {
		return err
	}
	s.reserve = journal.NewDiskReserve(s.stateDir(), s.log)
	if err = s.openFiles(); journal.IsDiskFull(err) && s.reserve.Release() {
		err = s.openFiles()
	}
	return err
}

// openFiles opens what the daemon keeps on disk.
func (s *Schedd) openFiles() (err error) {
	if s.replicated != nil {
		s.history = s.replicated.History
	} else if s.history, err = history.Open(s.stateDir(), s.node.Name); err != nil {
		return err
	}
	s.users = transfer.NewUserAgents()
	s.feed = s.newFeed()
	if s.replicated != nil {
		s.journal, s.queue, err = s.replicated.Open(s.feed)
	} else {
		s.journal, s.queue, err = journal.OpenObserved(s.stateDir(), s.node.Name, s.feed)
	}
	if err != nil {
		s.feed.Close()
		if s.replicated == nil {
			s.history.Close()
		}
		return err
	}
	s.feed.Start(s.journal.NextBatch())
	s.scripts = openScripts(s)
	s.notifier, err = notify.Open(notify.DeliveryOptions{
		Dir: filepath.Join(s.stateDir(), "notices"), OwnUID: s.node.Schedd.Notify, Host: s.node.Name,
		Groups: transfer.UnixGroups, Log: s.log,
	})
	if err != nil {
		s.closeFiles()
		return err
	}
	n, err := nextIncarnation(s.journal, s.replicated)
	if err != nil {
		s.closeFiles()
		return err
	}
	s.sessions.Store(n << incarnationBits) // sessions of this start are numbered above those of all starts before
	s.dispatch = dispatch.New(jobQueueAdapter{s}, dispatch.DefaultOptions())
	s.assemble()
	err = s.transfers.OpenImages()
	if err == nil {
		s.hooks, err = openJobHooks(s)
	}
	if err == nil {
		err = s.archive.recordTakenOut()
	}
	if err != nil {
		s.closeFiles()
		return err
	}
	s.lastHistorySeq = s.history.LastSeq()
	return nil
}

// assemble makes the parts of the loop that work on its queue and its claims.
func (s *Schedd) assemble() {
	loop := loopAdapter{s}
	s.transfers = transfer.New(transfer.Config{
		Host: s.node.Name, StateDir: s.stateDir(), Identity: s.identity, Log: s.log, Queue: s.queue,
		Dispatch: s.dispatch, Loop: loop, Fetcher: s.fetcher, Reserve: s.reserve, Users: s.users,
		FileServer: s.node.ImageServer, ObjectStores: s.node.ObjectStores, OpenObjects: s.openObjects,
		Metrics: s.metrics.Schedd,
		Negotiators: func(ctx context.Context) ([]string, error) {
			return s.service.NegotiatorAddresses(ctx)
		},
	})
	s.leader = negotiation.New(negotiation.Config{
		Host: s.node.Name, Address: s.node.Schedd.Socket, Started: s.started, Negotiators: s.node.Negotiators,
		Identity: s.identity, Log: s.log, Queue: s.queue, Dispatch: s.dispatch, Loop: loop, Calls: loop,
		Reasons: &s.jobTable, Groups: s.users, Admins: &s.admins,
		AttackPeers: s.peerSchedds.AttackPeers,
	})
	openFlock(s)
	s.service = api.New(api.Config{
		Elsewhere: func(id queue.RequestID) []string { return explainFlock(s, id) },
		Node:      s.node, Identity: s.identity, Log: s.log, Started: s.started, Queue: s.queue, Dispatch: s.dispatch,
		Journal: s.journal, History: s.history, RemoveHistory: historyRemoval(s), Reserve: s.reserve,
		Loop: loop, Leader: s.leader,
		Transfers: s.transfers, Peers: s.peerSchedds, Admins: &s.admins, Users: s.users, Table: &s.jobTable,
		Metrics:      s.metrics.Schedd,
		Scripts:      s.scripts,
		WaitsForHook: func(a roost.AttemptID) bool { return s.heldStarts[a] != nil },
		AddUsage:     func(a usagewindow.Attempt, u *accounting.UsageHour) { addUsage(s, a, u) },
		SpentBudgets: &s.spentBudgets,
		AccountantAddress: func() string {
			if address := s.accountantAt.Load(); address != nil {
				return *address
			}
			return ""
		},
	})
	s.archive = &jobArchive{
		node: s.node, stateDir: s.stateDir(), log: s.log, history: s.history, removeHistory: historyRemoval(s),
		journal: s.journal, service: s.service,
		transfers: s.transfers, loop: loop, effects: s.effects, queue: s.queue, archivingJobs: make(map[uint64]bool),
		isCellQueue: s.replicated != nil,
	}
}

// historyRemoval returns what removes jobs from the history.
func historyRemoval(s *Schedd) func(seqs ...uint64) error {
	if s.replicated != nil {
		return s.replicated.RemoveHistory
	}
	return s.history.Remove
}

// nextIncarnation numbers this start of the schedd.
func nextIncarnation(j *journal.Journal, r *ReplicatedLog) (uint64, error) {
	if r != nil {
		return r.Incarnation, nil
	}
	return j.NextIncarnation()
}

func (s *Schedd) closeFiles() {
	s.scripts.Close()
	var err error
	if s.replicated == nil {
		err = errors.Join(s.journal.Close(), s.history.Close())
	}
	if err = errors.Join(err, s.feed.Close()); err != nil {
		s.log.Error("close the log", "error", err)
	}
}

// incarnationBits of the number of a session count those of one start.
const incarnationBits = 24

// nextIncarnation numbers sessions: a startd believes the one with the highest number.
func (s *Schedd) nextIncarnation() uint64 { return s.sessions.Add(1) }

// runServers runs everything and returns when all of it has stopped.
func (s *Schedd) runServers(ctx context.Context, listeners []net.Listener, exporter *metrics.Exporter) error {
	serving, err := s.service.OpenLogins(s.stateDir())
	if err != nil {
		closeAll(listeners)
		exporter.Close()
		return err
	}
	server := rpc.NewServer(serving, peer.MethodAccess())
	wire.RegisterScheddServer(server, s.service)
	wire.RegisterFeedServer(server, feedService{schedd: s})
	wire.RegisterNeighbourServer(server, newPeerService(s))
	group, ctx := errgroup.WithContext(ctx)
	s.daemonContext = ctx
	s.transfers.Start(ctx)
	s.service.Start(ctx)
	defer s.users.Close()
	if err := openUserLogs(s); err != nil {
		closeAll(listeners)
		exporter.Close()
		return err
	}
	group.Go(func() error { s.userLogs.Run(ctx); return nil })
	group.Go(func() error { s.flowFiles.Run(ctx); return nil })
	batches, committed := make(chan *commitBatch), make(chan struct{})
	w := &batchWriter{s.journal, s.reserve, make(chan *journal.QueueCheckpoint, 1), &s.checkpointing}
	group.Go(func() error { defer close(committed); return s.runCommitter(ctx, batches, w) })
	feedContext, stopFeed := context.WithCancel(context.WithoutCancel(ctx)) // a checkpoint needs the feed to the end
	group.Go(func() error { defer stopFeed(); return w.runCheckpointer(ctx) })
	group.Go(func() error { s.feed.Run(feedContext); return nil })
	group.Go(func() error { defer close(batches); return s.runLoop(ctx, batches, committed) })
	group.Go(func() error { s.leader.RunLeaderTracker(ctx); return nil })
	for _, h := range s.flock {
		group.Go(func() error { h.run(ctx, s); return nil })
	}
	group.Go(func() error { s.reserve.RunMaintainer(ctx); return nil })
	group.Go(func() error { s.archive.runHistorySweeper(ctx); return nil })
	group.Go(func() error { s.notifier.Run(ctx); return nil })
	group.Go(func() error { s.hooks.Run(ctx); return nil })
	group.Go(func() error { s.service.RunGPUQueries(ctx); return nil })
	group.Go(func() error { s.leader.WatchMachines(ctx, s.node.Collectors); return nil })
	group.Go(func() error { s.peerSchedds.WatchAds(ctx, s.node.Collectors); return nil })
	group.Go(func() error { s.runAdvertiser(ctx); return nil })
	group.Go(func() error { exporter.Run(ctx); return nil })
	for _, listener := range listeners {
		group.Go(func() error { return serveUntil(ctx, server, listener) })
	}
	if s.replicated != nil {
		s.replicated.Serving()
	} else {
		daemon.ReportReady()
	}
	s.log.Info("serving", "socket", s.node.Schedd.Socket, "jobs", s.queue.Len())
	err = group.Wait()
	for _, p := range s.peers {
		p.stop()
		<-p.stopped
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// openListeners opens the users' socket, and the addresses for everybody else.
func (s *Schedd) openListeners() (all []net.Listener, err error) {
	defer func() {
		if err != nil {
			closeAll(all)
		}
	}()
	own, err := rpc.Listen(s.node.Schedd.Socket, s.node.Schedd.SocketMode)
	if err != nil {
		return nil, err
	}
	all = append(all, own)
	for _, addr := range s.node.Schedd.Listen {
		l, err := rpc.Listen(addr, 0o600)
		if err != nil {
			return all, err
		}
		all = append(all, l)
	}
	if s.node.Web != nil { // its account differs from that of the schedd, and its users' from both
		l, err := rpc.ListenLogins(s.node.LoginSocket(), 0o666)
		if err != nil {
			return all, err
		}
		all = append(all, l)
	}
	return all, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// serveUntil serves until ctx ends. Calls under way get a moment to finish.
func serveUntil(ctx context.Context, server *rpc.Server, l net.Listener) error {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		force := time.AfterFunc(time.Second, server.Stop)
		server.GracefulStop()
		force.Stop()
	}()
	if err := server.Serve(l); err != nil {
		return err // it broke by itself, and the daemon with it
	}
	<-stopped
	return nil
}

// postEvent brings news to the loop. It waits while the loop is busy, and gives up when
// ctx or the daemon ends.
func (s *Schedd) postEvent(ctx context.Context, event any) bool {
	select {
	case s.inbox <- event:
		return true
	case <-ctx.Done():
	case <-s.daemonContext.Done():
	}
	return false
}
