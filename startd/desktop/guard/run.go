package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// Run guards the node's machine until ctx ends. If another guard serves the same node it
// waits as a standby: so a guard of systemd and one of the master do not conflict.
func Run(ctx context.Context, node *config.Node) error {
	log := daemon.Logger("guard")
	socket := strings.TrimPrefix(node.GuardAddress(), "unix:")
	for _, dir := range []string{node.OwnerDir(), filepath.Dir(socket)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("guard: %w: %w", roost.NoOutput, err)
		}
	}
	lock, err := lockInstance(ctx, filepath.Join(node.OwnerDir(), "guard.lock"), log)
	if err != nil || lock == nil {
		return err
	}
	defer lock.Close()
	raiseCPUPriority(log)
	g, err := openGuard(node, log)
	if err != nil {
		return err
	}
	listener, err := rpc.Listen(node.GuardAddress(), 0o666)
	if err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	server := rpc.NewServer(nil, peer.MethodAccess(), grpc.WaitForHandlers(true))
	wire.RegisterGuardServer(server, g)
	broken := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { broken <- server.Serve(listener) })
	running.Go(func() { g.loop(ctx); server.Stop() })
	daemon.ReportReady()
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	cancel()
	running.Wait()
	os.Remove(socket)
	return err
}

// lockInstance waits until the node has no other guard. It reports ready meanwhile, as
// the machine is guarded.
func lockInstance(ctx context.Context, path string, log *slog.Logger) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("guard: %w: %w", roost.NoOutput, err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("guard: lock %s: %w", path, err)
	}
	log.Info("another guard serves this node; standing by")
	daemon.ReportReady()
	// The wait for a lock does not end with ctx, so the lock is tried at intervals.
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			f.Close()
			return nil, nil
		case <-tick.C:
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			log.Info("the other guard is gone; taking over")
			return f, nil
		}
	}
}

// daemonContext is shared by the goroutines of the daemon. State and records belong to
// the loop.
type daemonContext struct {
	wire.UnimplementedGuardServer
	node      *config.Node
	dir       string // directory of the persistent state
	log       *slog.Logger
	boot      string
	sources   []idle.Source
	agents    *idle.SessionAgentSource // one of the sources
	freeze    taskFreezer
	startedAt time.Time

	rulesRead ownerRuleFile
	loopState *loopState // used by the loop only
	state     *observedState
	records   *startdRecords

	inbox   chan func()   // functions that the loop calls in turn
	stopped chan struct{} // closed when the loop has ended
}

// inboxSize bounds the calls that wait for the loop; further senders block.
const inboxSize = 256

// openGuard loads the state of an earlier guard.
func openGuard(node *config.Node, log *slog.Logger) (*daemonContext, error) {
	g := &daemonContext{
		node: node, dir: node.OwnerDir(), log: log, boot: bootID(), startedAt: time.Now(), freeze: freezeGroups,
		agents: idle.NewSessionAgents(),
		inbox:  make(chan func(), inboxSize), stopped: make(chan struct{}),
	}
	g.records = &startdRecords{records: map[string]*startdRecord{}, ignoresPresence: g.ignoresPresence}
	g.sources = g.allSources()
	g.state = newObservedState(g.sources, boottime.Now())
	g.state.console = idle.HasConsole()
	g.restoreRecords()
	g.readRules()
	pause, err := loadPause(g.dir, time.Now(), g.boot, boottime.Now())
	if err != nil {
		log.Warn("pause", "err", err)
	}
	if g.state.pause = pause; pause != nil {
		log.Info("paused", "by", pause.By, "reason", pause.Reason)
	}
	return g, nil
}

// allSources returns all idleness sources of this program.
func (g *daemonContext) allSources() []idle.Source {
	return []idle.Source{
		idle.NewInputDevices("roost", idle.AgentCommand),
		idle.NewLogind(isTask),
		g.agents,
		idle.NewTerminals(g.isTaskProcess),
		idle.NewPrograms(g.exclusivePrograms, isTask),
		idle.NewForeignWork(g.taskCPUTime),
		idle.NewPressure(),
		idle.NewPower(),
		idle.NewThermal(),
	}
}

// post sends a function to the loop; false if the loop has ended.
func (g *daemonContext) post(ctx context.Context, f func()) bool {
	select {
	case g.inbox <- f:
		return true
	case <-g.stopped:
	case <-ctx.Done():
	}
	return false
}

// call lets the loop call a function and waits for its end.
func (g *daemonContext) call(ctx context.Context, f func()) error {
	done := make(chan struct{})
	if g.post(ctx, func() { f(); close(done) }) {
		select {
		case <-done:
			return nil
		case <-g.stopped:
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("guard: %w: it is stopping", roost.Unavailable)
}
