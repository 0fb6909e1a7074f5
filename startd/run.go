package startd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/slot"
)

// inboxSize bounds what waits for the loop; whoever has more to say waits.
const inboxSize = 1024

// keepExits is how long the news of an attempt's end waits for its schedd after the lease is over.
const keepExits = 24 * time.Hour

// machine is what all goroutines of a startd share; it does not change while they run.
type machine struct {
	wire.UnimplementedStartdServer
	node        *config.Node
	own         *config.Startd
	log         *slog.Logger
	boot        string
	starterPath string
	agents      *agents
	accounts    *accounts
	reaches     reaches
	boxes       bool   // tasks are shut in boxes
	program     string // path of this program, for starters
	criu        criu.Verdict
	images      *store.Store // of checkpoints that were taken here, or are to be gone on from
	packing     chan struct{}
	leaving     atomic.Int32 // attempts that are saved on their way out
	reliability *reliability
	today       today
	groups      *groups
	gpus        *cards
	meters      *meters
	disks       diskLimits
	grantKey    []byte // of this start: grants made for an earlier one are void
	ads         *advertise.Client
	identity    *rpc.Identity
	signs       chan *wire.GuardSigns // of the machine's guard, past the inbox; so the next
	lost        chan guardLost
	report      *report // for it
	inbox       chan any
	stopped     chan struct{} // closed when the loop reads no more
}

// Run runs the node's execute node of that name until ctx ends. Then its tasks are vacated and no starter is left; killed, it leaves them all to
// the next start.
func Run(ctx context.Context, node *config.Node, name string) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("startd %s: %w", name, err)
	}
	return run(ctx, node, name, filepath.Join(filepath.Dir(exe), "roost-starter"))
}

// ownProgram is this program for the kernel, also where the user that an agent is of may not enter its directory, and after an upgrade.
const ownProgram = "/proc/self/exe"

// run is Run with the starter named.
func run(ctx context.Context, node *config.Node, name, starterPath string) error {
	own, ok := node.Startd(name)
	if !ok {
		return fmt.Errorf("startd %q: %w: node %s has none of that name", name, roost.BadConfig, node.Name)
	}
	if len(own.Listen) == 0 {
		return fmt.Errorf("startd %s: %w: it has no address to listen on", name, roost.BadConfig)
	}
	id, err := pki.Load(node.TLS)
	if err != nil {
		return err
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	m := &machine{
		node: node, own: own, log: daemon.Logger("startd").With("name", name), boot: boot, identity: id, starterPath: starterPath, agents: newAgents(ownProgram), accounts: newAccounts(node, own), meters: newMeters(),
		grantKey: make([]byte, 32), inbox: make(chan any, inboxSize), signs: make(chan *wire.GuardSigns), lost: make(chan guardLost), report: newReport(), stopped: make(chan struct{}),
	}
	if m.groups, err = openGroups(own, m.log); err != nil {
		return err
	}
	if err := m.decideBoxes(); err != nil {
		return err
	}
	m.gpus = openCards(own.GPUs, m.log, func() { m.post(gpusChanged{}) })
	defer m.gpus.close()
	rand.Read(m.grantKey)
	m.ads = advertise.New(advertise.Config{Collectors: node.Collectors, Identity: id, Type: "Machine", Name: name, Log: m.log})
	listeners, err := m.listen() // first: a second startd of the same name fails here, before it touches what is the other's
	if err != nil {
		return err
	}
	l, err := m.open()
	if err != nil {
		closeAll(listeners)
		return err
	}
	return m.serve(ctx, l, id, listeners)
}

func (m *machine) listen() ([]net.Listener, error) {
	var listeners []net.Listener
	for _, addr := range m.own.Listen {
		listener, err := rpc.Listen(addr, 0o600)
		if err != nil {
			closeAll(listeners)
			return nil, fmt.Errorf("startd %s: %w", m.own.Name, err)
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

func (m *machine) claimsDir() string  { return filepath.Join(m.own.Dir, "claims") }
func (m *machine) scratchDir() string { return filepath.Join(m.own.Dir, "scratch") }
func (m *machine) ioDir() string      { return filepath.Join(m.own.Dir, "io") }

func (m *machine) checkpointsDir() string { return filepath.Join(m.own.Dir, "checkpoints") }

// open makes the directories and the books, and takes over what an earlier start has left.
func (m *machine) open() (*loop, error) {
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{{m.own.Dir, 0o711}, {m.claimsDir(), 0o700}, {m.scratchDir(), 0o711}, {m.ioDir(), 0o711}, {m.checkpointsDir(), 0o700}} { // users pass through to their scratch directories
		if err := errors.Join(os.MkdirAll(d.path, d.mode), os.Chmod(d.path, d.mode)); err != nil {
			return nil, err
		}
	}
	total, err := measure(m.own.Dir, m.own.Resources)
	if err != nil {
		return nil, err
	}
	m.disks = diskLimitsOf(m.own.Limits, m.own.Dir, total.Disk)
	ad, err := machineAd(m.node, m.own, m.boot, config.Reach(m.own.Listen))
	if err != nil {
		return nil, err
	}
	if err := m.openCheckpoints(ad); err != nil {
		return nil, err
	}
	m.groups.describe(ad)
	m.gpus.introduce(ad)
	claims, err := claimDirs(m.claimsDir())
	if err != nil {
		return nil, err
	}
	first, err := nextGeneration(m.claimsDir(), claims)
	if err != nil {
		return nil, err
	}
	core, err := m.books(total, slot.Options{Ad: ad, FirstID: first, KeepExits: keepExits})
	if err != nil {
		return nil, err
	}
	l := newLoop(m, core)
	if l.lent, err = l.newLent(); err != nil {
		return nil, err
	}
	l.adoptAll(claims)
	if l.lent != nil { // after the claims: those that have more than is lent leave, and are not turned away
		l.lookAtRules()
	}
	m.log.Info("machine", "resources", total, "claims", core.Len())
	return l, nil
}

// serve runs the loop, the advertising and the server until ctx ends and the last starter is gone.
func (m *machine) serve(ctx context.Context, l *loop, id *rpc.Identity, listeners []net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := rpc.NewServer(id, auth.Methods(), grpc.WaitForHandlers(true), rpc.Program())
	wire.RegisterStartdServer(server, m)
	l.publish(true)
	var running sync.WaitGroup
	running.Go(func() { m.ads.Run(ctx) })
	running.Go(func() {
		m.reliability.watch(ctx, func(err error) { m.log.Warn("cannot keep how reliable the machine is", "err", err) })
	})
	running.Go(func() { m.gpus.watch(ctx) })
	if l.lent != nil {
		running.Go(func() { m.watchGuard(ctx) })
	}
	running.Go(func() { l.run(ctx); server.Stop() })
	running.Go(func() { m.watchUsage(ctx) })
	running.Go(func() { m.watchDisks(ctx) })
	running.Go(func() { m.watchBounds(ctx) })
	broken := make(chan error, len(listeners))
	for _, listener := range listeners {
		running.Go(func() { broken <- server.Serve(listener) })
	}
	daemon.Ready()
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	cancel()
	running.Wait()
	m.groups.close()
	return err
}

// private is what only negotiators may see of the ad.
func (m *machine) private() map[string]string {
	return map[string]string{"GrantKey": hex.EncodeToString(m.grantKey), "GrantNames": "schedd", "Clock": strconv.FormatInt(int64(boottime()), 10)}
}

// post puts news for the loop into its inbox; after the loop's end it is dropped.
func (m *machine) post(news any) {
	select {
	case m.inbox <- news:
	case <-m.stopped:
	}
}
