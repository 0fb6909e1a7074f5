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
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/relay"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/sitescript"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/containerimage"
	"github.com/roost-batch/roost/startd/gpudriver"
	"github.com/roost-batch/roost/startd/gpuwatch"
	"github.com/roost-batch/roost/startd/inputcache"
	"github.com/roost-batch/roost/startd/meter"
	"github.com/roost-batch/roost/startd/probe"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/streams"
)

// maxInboxEvents bounds what waits for the loop; whoever has more to say waits.
const maxInboxEvents = 1024

// exitRetention is how long the news of an attempt's end waits for its schedd after the
// lease is over.
const exitRetention = 24 * time.Hour

// startdHost is what all goroutines of a startd share; it does not change while they run.
type startdHost struct {
	*streams.Server   // all of its service but Session
	node              *config.Node
	config            *config.StartdSettings
	log               *slog.Logger
	boot              string
	agents            *userfiles.AgentPool
	accounts          *claim.Accounts
	claims            *claim.Machine
	checkpoints       *claim.Checkpoints
	containers        *containerimage.Cache // nil: tasks have no container images here
	exchange          imageExchange         // of them
	earlyFetches      *earlyFetches         // of them; nil: there are none
	inputs            *inputcache.Cache     // nil: input files come with each attempt
	ports             claim.PortAddress     // of the tasks
	sandboxed         bool                  // tasks run in sandboxes
	reliability       *reliabilityTracker
	stats             dailyStats
	groups            *claim.Cgroups
	scripts           *sitescript.Groups // of prologues and epilogues; nil: there are none
	gpus              *gpuwatch.Monitor
	hardware          cpuHardware
	speed             cpuSpeed
	meters            *meter.Meters
	grantKey          []byte // of this start: grants made for an earlier one are void
	ads               *adclient.Client
	identity          *rpc.Identity
	lastClaim         claimTime
	guardObservations chan *wire.GuardSigns // of the machine's guard, past the inbox; so the next
	guardLost         chan guardLost
	guardReport       *guardReport // for it
	inbox             chan any
	loopDone          chan struct{} // closed when the loop reads no more
	exporter          *metrics.Exporter
	prober            *probe.Prober         // of health checks
	checkMetrics      *metrics.HealthChecks // of it; set before it runs
}

// Run runs the node's execute node of that name until ctx ends. Then its tasks are
// vacated and no starter is left; killed, it leaves them all to the next start.
func Run(ctx context.Context, node *config.Node, name string) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("startd %s: %w", name, err)
	}
	limitProcessors()
	return run(ctx, node, name, filepath.Join(filepath.Dir(exe), "roost-starter"))
}

// coresPerProcessor is how many cores of a machine the startd has one for.
const coresPerProcessor = 4

// limitProcessors has the Go runtime use at least one core and at most a quarter of them.
// The cores are for tasks. With one processor for each core the runtime wakes a second
// thread for each message that goes from one goroutine to the next, though the first one
// is about to wait: a short task has a dozen of them.
func limitProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/coresPerProcessor))
	}
}

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
	if id != nil {
		id.CellQueue = node.CellQueueName()
	}
	boot, err := boottime.BootID()
	if err != nil {
		return err
	}
	m := &startdHost{
		node: node, config: own, log: daemon.Logger("startd").With("name", name), boot: boot, identity: id,
		agents: userfiles.NewAgentPool(userfiles.SelfExecutable), accounts: claim.NewAccounts(node,
			own),
		grantKey: make([]byte, 32), inbox: make(chan any, maxInboxEvents),
		guardObservations: make(chan *wire.GuardSigns), guardLost: make(chan guardLost), guardReport: newGuardReport(),
		loopDone: make(chan struct{}),
	}
	if m.groups, err = claim.OpenCgroups(own, m.log); err != nil {
		return err
	}
	if m.scripts, err = claim.OpenScripts(own, m.log); err != nil {
		return err
	}
	if m.sandboxed, err = claim.DetectSandbox(own, m.log); err != nil {
		return err
	}
	m.gpus = gpuwatch.Open(own.GPUs, m.log, func() { m.postEvent(gpusChanged{}) })
	defer m.gpus.Close()
	rand.Read(m.grantKey)
	m.ads = adclient.New(adclient.ClientConfig{Collectors: node.Collectors, Identity: id, Type: "Machine", Name: name,
		Log: m.log})
	// first: a second startd of the same name fails here, before it touches what is the
	// other's
	listeners, err := m.listen()
	if err != nil {
		return err
	}
	if m.exporter, err = metrics.Open(node, "startd", name, id, m.log); err != nil {
		closeAll(listeners)
		return err
	}
	l, err := m.openState(starterPath)
	if err != nil {
		closeAll(listeners)
		m.exporter.Close()
		return err
	}
	return m.serveLoop(ctx, l, id, listeners)
}

func (m *startdHost) listen() ([]net.Listener, error) {
	var listeners []net.Listener
	for _, addr := range m.config.Listen {
		listener, err := m.listenAt(addr)
		if err != nil {
			closeAll(listeners)
			return nil, fmt.Errorf("startd %s: %w", m.config.Name, err)
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

// listenAt listens on an address, which may be that of relays.
func (m *startdHost) listenAt(addr string) (net.Listener, error) {
	target, behindRelay := strings.CutPrefix(addr, rpc.RelayPrefix)
	switch {
	case !behindRelay:
		return rpc.Listen(addr, 0o600)
	case m.identity == nil:
		return nil, fmt.Errorf("listen on %s: %w: the node has no certificate: it has to join the pool first", addr,
			roost.BadConfig)
	}
	return relay.Listen(target, m.identity, m.log)
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

func (m *startdHost) dirs() claim.Dirs { return claim.Dirs(m.config.Dir) }

// makeDirs makes the directories of the startd. Users pass through to their scratch
// directories.
func (m *startdHost) makeDirs() error {
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{{m.config.Dir, 0o711}, {m.dirs().Claims(), 0o700}, {m.dirs().Scratch(), 0o711},
		{m.dirs().IO(), 0o711}, {m.dirs().Checkpoints(), 0o700}} {
		if err := errors.Join(os.MkdirAll(d.path, d.mode), os.Chmod(d.path, d.mode)); err != nil {
			return err
		}
	}
	return nil
}

// openState makes the directories and the claim table, and takes over what an earlier
// start has left.
func (m *startdHost) openState(starterPath string) (*machineLoop, error) {
	if err := m.makeDirs(); err != nil {
		return nil, err
	}
	total, err := measureMachine(m.config.Dir, m.config.Resources)
	if err != nil {
		return nil, err
	}
	disks := meter.DiskLimitsOf(m.config.Limits, m.config.Dir, total.Disk)
	m.meters = meter.New(meter.Options{Log: m.log, Dir: m.config.Dir, Disks: disks, Agents: m.agents})
	ad, err := machineAd(m.node, m.config, m.boot, config.AdvertisedAddress(m.config.Listen))
	if err != nil {
		return nil, err
	}
	if err := m.openCheckpoints(ad); err != nil {
		return nil, err
	}
	if err := m.openContainers(ad); err != nil {
		return nil, err
	}
	if m.prober, err = m.newProber(); err != nil {
		return nil, err
	}
	m.ports = claim.NewPortAddress(config.AdvertisedAddress(m.config.Listen), lookUpHost)
	m.claims = claim.NewMachine(claim.Options{
		Log: m.log, Settings: m.config, BootID: m.boot, StarterPath: starterPath, Sandboxed: m.sandboxed,
		OutputLimit: disks.Output, Host: m, Agents: m.agents, Accounts: m.accounts, Cgroups: m.groups, GPUs: m.gpus,
		Meters: m.meters, Checkpoints: m.checkpoints,
		Prober: m.prober, Ports: m.ports, Containers: m.containers,
		GPUDriver: gpudriver.NewCopier("/", m.dirs().GPUDriver(), m.config.GPUs.Library),
		Scripts:   m.scripts,
	})
	if err := m.openInputCache(); err != nil {
		return nil, err
	}
	if m.hardware, err = readCPUHardware(cpuDir, nodesDir); err != nil {
		return nil, err
	}
	m.hardware.describe(ad)
	m.groups.Describe(ad)
	m.gpus.DescribeStatic(ad)
	claims, err := claim.IDs(m.dirs().Claims())
	if err != nil {
		return nil, err
	}
	first, err := claim.NextGeneration(m.dirs().Claims(), claims)
	if err != nil {
		return nil, err
	}
	core, err := m.newClaimTable(total, slot.TableOptions{Ad: ad, FirstID: first, ExitRetention: exitRetention})
	if err != nil {
		return nil, err
	}
	l := newMachineLoop(m, core)
	m.Server = streams.New(streams.Options{Log: m.log, Loop: m, Agents: m.agents, Checkpoints: m.checkpoints,
		Inputs: m.inputs, CountCached: l.metrics.CountCachedInput})
	m.checkMetrics, m.exchange.counter = l.metrics.Checks, l.metrics.Chunks
	if l.ownerState, err = l.newOwnerState(); err != nil {
		return nil, err
	}
	l.restorePorts()
	l.adoptAll(claims)
	if l.ownerState != nil { // after the claims: those that have more than is lent leave, and are not turned away
		l.reloadRules()
	}
	m.log.Info("machine", "resources", total, "claims", core.Len())
	return l, nil
}

// serveLoop runs the loop, the advertising and the server until ctx ends and the last
// starter is gone.
func (m *startdHost) serveLoop(ctx context.Context, l *machineLoop, id *rpc.Identity, listeners []net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := rpc.NewServer(id, peer.MethodAccess(), grpc.WaitForHandlers(true), rpc.WithProgramSizes(),
		rpc.WithMachinePings())
	wire.RegisterStartdServer(server, m)
	l.publishAd(true)
	var running sync.WaitGroup
	l.metrics.Snapshots.OnStale(m.wakeForMetrics)
	running.Go(func() { m.exporter.Run(ctx) })
	running.Go(func() { m.ads.Run(ctx) })
	running.Go(func() {
		m.reliability.saveUntilDone(ctx, func(err error) {
			m.log.Warn("cannot keep how reliable the machine is", "err", err)
		})
	})
	running.Go(func() { m.gpus.Watch(ctx) })
	running.Go(func() { m.measureSpeed(ctx) })
	running.Go(func() { m.runImageLists(ctx) })
	if l.ownerState != nil {
		running.Go(func() { m.watchGuard(ctx) })
	}
	probing, stopProbing := context.WithCancel(context.WithoutCancel(ctx)) // tasks that leave say so at the end
	running.Go(func() { m.runProber(probing) })
	running.Go(func() { l.run(ctx); stopProbing(); server.Stop() })
	running.Go(func() { m.watchPilot(ctx, cancel) })
	running.Go(func() { m.meters.WatchUsage(ctx, m) })
	running.Go(func() { m.meters.WatchDisks(ctx, m) })
	running.Go(func() { m.meters.WatchOutput(ctx) })
	running.Go(func() { m.meters.WatchLimits(ctx) })
	broken := make(chan error, len(listeners))
	for _, listener := range listeners {
		running.Go(func() { broken <- server.Serve(listener) })
	}
	daemon.ReportReady()
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	cancel()
	running.Wait()
	m.closeContainers()
	m.groups.Close()
	m.scripts.Close()
	return err
}

// privateAd is what only negotiators may see of the ad.
func (m *startdHost) privateAd() map[string]string {
	return map[string]string{"GrantKey": hex.EncodeToString(m.grantKey), "GrantNames": "schedd",
		"Clock": strconv.FormatInt(int64(boottime.Now()), 10)}
}

// postEvent puts news for the loop into its inbox; after the loop's end it is dropped.
func (m *startdHost) postEvent(update any) {
	select {
	case m.inbox <- update:
	case <-m.loopDone:
	}
}

// Post implements claim.Host.
func (m *startdHost) Post(event any) { m.postEvent(event) }

// Done implements claim.Host and streams.Loop.
func (m *startdHost) Done() <-chan struct{} { return m.loopDone }

// Find implements streams.Loop.
func (m *startdHost) Find(id roost.AttemptID, found func(*claim.Runner, int)) <-chan struct{} {
	q := loopQuery{func(l *machineLoop) {
		c, ok := l.table.Find(id)
		if !ok || l.runners[c.ID] == nil {
			return
		}
		pid := 0
		if c.Running {
			pid = int(l.pids[c.ID])
		}
		found(l.runners[c.ID], pid)
	}, make(chan struct{})}
	m.postEvent(q)
	return q.done
}

// SendTo implements streams.Loop.
func (m *startdHost) SendTo(schedd string, message *wire.FromStartd) {
	m.postEvent(loopQuery{func(l *machineLoop) { l.sendTo(schedd, message) }, make(chan struct{})})
}
