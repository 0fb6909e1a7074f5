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
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/login"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/notify"
	"github.com/roost-batch/roost/schedd/queue"
)

// inboxSize bounds what waits for the loop; when it is full, the ones who bring news wait.
const inboxSize = 4096

// Schedd is the daemon. Its fields below the line belong to the loop.
type Schedd struct {
	node       *config.Node
	identity   *rpc.Identity
	log        *slog.Logger
	started    time.Time
	life       context.Context // of the daemon
	journal    *journal.Journal
	history    *history.History
	reserve    *diskReserve // of the log's disk
	users      *userAgents
	slots      *transferSlots
	images     *store.Store // checkpoints
	imageSlots *transferSlots
	removals   removals // of images on checkpoint servers
	notifier   *notify.Notifier
	inbox      chan any
	cards      cards
	placer     *placer // of batch requests, where schedds do that themselves
	neighbours *neighbours
	logins     *login.Keeper          // nil: it listens to nobody but its own host
	sessions   atomic.Uint64          // the incarnation of the last session
	logSize    atomic.Int64           // bytes in the log since the last checkpoint
	writing    atomic.Int64           // since when the log is written, by CLOCK_BOOTTIME; 0: it is not
	shells     atomic.Int32           // open through this schedd
	reaches    atomic.Int32           // calls of jobs under way
	terminals  atomic.Int32           // of interactive jobs, likewise
	leadership atomic.Pointer[string] // how the negotiators are, in words
	view       view                   // of the queue, for lists
	admins     jobAdmins

	outside outside // what the loop has done elsewhere

	// ---- owned by the loop ----
	at           moment           // of the present turn
	resumed      dispatch.Instant // when this start of the schedd took up what the log knows as under way
	queue        *queue.Queue
	dispatch     *dispatch.Dispatcher
	peers        map[string]*peerNode
	domains      map[string]string // node -> its FileSystemDomain
	negotiator   *negotiation
	rules        *wire.Policy            // what administrators have set, as it was heard last
	lost         map[queue.RequestID]int // tasks whose node was lost and that have not started elsewhere
	pending      *batch
	transfers    map[roost.AttemptID]context.CancelFunc
	collections  map[roost.AttemptID]*collection // outputs on their way home
	pulls        map[roost.AttemptID]*pull       // images on their way home
	watches      map[roost.JobID]map[*watch]bool
	retiring     map[uint64]bool // final jobs that are not in the history yet
	lastPastSeq  uint64          // the highest number of a job in the history, when the daemon began
	checkpoint   int             // bytes of the last checkpoint's snapshots
	moving       bool            // some of them are on their way
	retiredAt    time.Time       // when jobs last began to move
	usageAt      time.Time       // when usage was last reported
	usages       usages
	nodeFailures nodeFailures
}

// Run serves until ctx ends. A nil identity speaks over unix sockets only.
func Run(ctx context.Context, node *config.Node, identity *rpc.Identity) error {
	if node.Schedd == nil {
		return fmt.Errorf("node %s: %w: the node file has no schedd block", node.Name, roost.BadConfig)
	}
	s := newSchedd(node, identity, daemon.Logger("schedd"), time.Now())
	s.outside = errands{s}
	s.neighbours = newNeighbours(node.Name, identity, s.log)
	if err := s.open(); err != nil {
		return err
	}
	defer s.close()
	return s.serve(ctx)
}

// newSchedd makes what needs no disk and no network.
func newSchedd(node *config.Node, identity *rpc.Identity, log *slog.Logger, started time.Time) *Schedd {
	return &Schedd{
		node: node, identity: identity, log: log, started: started, inbox: make(chan any, inboxSize),
		peers: make(map[string]*peerNode), domains: make(map[string]string), lost: make(map[queue.RequestID]int), pending: &batch{},
		transfers: make(map[roost.AttemptID]context.CancelFunc), collections: make(map[roost.AttemptID]*collection), watches: make(map[roost.JobID]map[*watch]bool),
		retiring: make(map[uint64]bool), usages: make(usages), pulls: make(map[roost.AttemptID]*pull), placer: newPlacer(node.Name, log),
	}
}

// dir is where the schedd keeps what it must not lose.
func (s *Schedd) dir() string { return filepath.Join(s.node.Dir, "schedd") }

// open reads the log and the history. On a full disk they get the room that was kept for the log.
func (s *Schedd) open() (err error) {
	if err := os.MkdirAll(filepath.Join(s.dir(), "spool"), 0o700); err != nil {
		return err
	}
	s.reserve = newDiskReserve(s.dir(), s.log)
	if err = s.openFiles(); noRoom(err) && s.reserve.release() {
		err = s.openFiles()
	}
	return err
}

// openFiles opens what the daemon keeps on disk.
func (s *Schedd) openFiles() (err error) {
	if s.history, err = history.Open(s.dir(), s.node.Name); err != nil {
		return err
	}
	s.journal, s.queue, err = journal.Open(s.dir(), s.node.Name)
	if err != nil {
		s.history.Close()
		return err
	}
	if err := s.openImages(); err != nil {
		s.close()
		return err
	}
	s.notifier, err = notify.Open(notify.Options{
		Dir: filepath.Join(s.dir(), "notices"), Own: s.node.Schedd.Notify, Host: s.node.Name, Groups: groups, Log: s.log,
	})
	if err != nil {
		s.close()
		return err
	}
	if err := s.recordTakenOut(); err != nil {
		s.close()
		return err
	}
	s.lastPastSeq = s.history.LastSeq()
	n, err := s.journal.NextIncarnation()
	if err != nil {
		s.close()
		return err
	}
	s.sessions.Store(n << incarnationBits) // sessions of this start are numbered above those of all starts before
	s.dispatch = dispatch.New(work{s}, dispatch.DefaultOptions())
	return nil
}

func (s *Schedd) close() {
	if err := errors.Join(s.journal.Close(), s.history.Close()); err != nil {
		s.log.Error("close the log", "error", err)
	}
}

// incarnationBits of the number of a session count those of one start.
const incarnationBits = 24

// nextIncarnation numbers sessions: a startd believes the one with the highest number.
func (s *Schedd) nextIncarnation() uint64 { return s.sessions.Add(1) }

// serve runs everything and returns when all of it has stopped.
func (s *Schedd) serve(ctx context.Context) error {
	serving, err := s.openLogins()
	if err != nil {
		return err
	}
	listeners, err := s.listen()
	if err != nil {
		return err
	}
	server := rpc.NewServer(serving, auth.Methods())
	wire.RegisterScheddServer(server, &service{Schedd: s})
	wire.RegisterNeighbourServer(server, &nextDoor{Schedd: s})
	group, ctx := errgroup.WithContext(ctx)
	s.life = ctx
	s.users, s.slots, s.imageSlots = newUserAgents(), newTransferSlots(maxTransfers), newTransferSlots(maxImages)
	defer s.users.close()
	batches, committed := make(chan *batch), make(chan struct{})
	group.Go(func() error { defer close(committed); return s.commit(ctx, batches) })
	group.Go(func() error { defer close(batches); return s.loop(ctx, batches, committed) })
	group.Go(func() error { s.keepNegotiating(ctx); return nil })
	group.Go(func() error { s.reserve.maintain(ctx); return nil })
	group.Go(func() error { s.keepHistory(ctx); return nil })
	group.Go(func() error { s.notifier.Run(ctx); return nil })
	group.Go(func() error { s.keepCards(ctx); return nil })
	group.Go(func() error { s.placer.keep(ctx, s.watchMachines); return nil })
	group.Go(func() error { s.neighbours.keep(ctx, s.node.Collectors); return nil })
	group.Go(func() error { s.keepAdvertised(ctx); return nil })
	for _, listener := range listeners {
		group.Go(func() error { return serveUntil(ctx, server, listener) })
	}
	daemon.Ready()
	s.log.Info("serving", "socket", s.node.Schedd.Socket, "jobs", s.queue.Len())
	err = group.Wait()
	for _, p := range s.peers {
		p.stop()
		<-p.done
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// listen opens the users' socket, and the addresses for everybody else.
func (s *Schedd) listen() (all []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range all {
				l.Close()
			}
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
	return all, nil
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

// post brings news to the loop. It waits while the loop is busy, and gives up when ctx or the daemon ends.
func (s *Schedd) post(ctx context.Context, news any) bool {
	select {
	case s.inbox <- news:
		return true
	case <-ctx.Done():
	case <-s.life.Done():
	}
	return false
}

// boottime reads the clock that counts through suspend.
func boottime() dispatch.Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // there is such a clock since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}
