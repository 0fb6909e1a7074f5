package master

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/caclient"
)

// RunOptions configures a master.
type RunOptions struct {
	Program string    // program to start as "Program ROLE --config FILE [--name NAME]"; default: this program
	Log     io.Writer // the master's own log; default: standard error
	Ready   func()    // called once, when every daemon serves
	// a daemon that dies before it first serves ends the master, with the daemon's last
	// output as the error
	Strict      bool
	Sweep       bool          // at the end, kill every process that still descends from the master
	StopTimeout time.Duration // how long daemons may take to stop before they are killed; default 75 s
}

const (
	defaultStopTimeout = 75 * time.Second // a startd checkpoints its tasks; systemd waits longer
	startTimeout       = 90 * time.Second // how long a strict master waits until all daemons serve
	sweepTimeout       = 10 * time.Second
)

// Run starts the daemons of the node and restarts them until ctx ends. It returns when
// all of them are gone. The node must have been loaded from a file, because the daemons
// read the file. If another master has the directory, the error is of kind roost.Conflict
// and names it. Run reaps all children of its process: call it from a process that has no
// others.
//
// SIGHUP, or RequestReload, makes it reload its node file. If it has to be replaced for
// that, the error is ErrReplaced, and the caller executes the same program.
//
// While it stops, a second SIGINT or SIGTERM kills the remaining daemons at once.
func Run(ctx context.Context, node *config.Node, opt RunOptions) error {
	lock, err := prepareDirs(node, 0o711, 0o750)
	if err != nil {
		return err
	}
	defer lock.Close()
	return run(ctx, node, opt)
}

// prepareDirs creates the directories that daemons expect and takes the lock of the
// node's directory.
func prepareDirs(n *config.Node, mode, logMode os.FileMode) (*os.File, error) {
	if err := makeDirs(n, mode, logMode); err != nil {
		return nil, err
	}
	return takeLock(n.Dir)
}

// makeDirs creates the directories, and the file of log levels, which daemons watch.
func makeDirs(n *config.Node, mode, logMode os.FileMode) error {
	dirs := []struct {
		path string
		mode os.FileMode
	}{{n.Dir, mode}, {n.RunDir(), mode}, {n.LogDir(), logMode}}
	if n.Schedd != nil {
		dirs = append(dirs, struct {
			path string
			mode os.FileMode
		}{filepath.Dir(strings.TrimPrefix(n.Schedd.Socket, "unix:")), 0o755})
	}
	for _, d := range dirs {
		if err := os.MkdirAll(d.path, d.mode); err != nil {
			return fmt.Errorf("directory %s: %w: %w", d.path, roost.NoOutput, err)
		}
	}
	levels, err := os.OpenFile(daemon.LogLevelsPath(n.RunDir()), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("file of log levels: %w: %w", roost.NoOutput, err)
	}
	return levels.Close()
}

func run(ctx context.Context, node *config.Node, opt RunOptions) error {
	if opt.Program == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("own program: %w", err)
		}
		opt.Program = self
	}
	if opt.StopTimeout == 0 {
		opt.StopTimeout = defaultStopTimeout
	}
	if opt.Log == nil {
		opt.Log = os.Stderr
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the subreaper: %w", err)
	}
	m := &nodeMaster{
		node: node, opt: opt, children: childrenOf(node), programs: programFiles(opt.Program),
		spawner: newSpawner(daemon.LogLevelsVariable + "=" + daemon.LogLevelsPath(node.RunDir())),
		events:  make(chan childEvent), loopDone: make(chan struct{}),
		log: slog.New(slog.NewTextHandler(opt.Log, nil)).With("daemon", "master"),
	}
	defer m.releaseAll()
	for _, c := range m.children {
		var err error
		if c.log, err = openLog(c.logPath(node), int64(maxLog)); err != nil {
			return fmt.Errorf("log of %s: %w: %w", c.title(), roost.NoOutput, err)
		}
	}
	// No death is lost: the channel holds one pending signal, and reap reaps all ended
	// children.
	chld := make(chan os.Signal, 1)
	signal.Notify(chld, syscall.SIGCHLD)
	defer signal.Stop(chld)
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, reloadSignal)
	if !opt.Sweep { // the pool of a terminal ends with the terminal
		signal.Notify(hup, syscall.SIGHUP)
	}
	defer signal.Stop(hup)
	if last, _, err := ReadState(node.Dir); err == nil && last.PID == os.Getpid() && last.Reload != nil {
		m.reloads = *last.Reload // this process replaces the master that wrote it
		m.startReplaced()
	}
	go m.spawner.run()
	defer m.spawner.stop()
	defer m.runCertRenewer()()
	return m.loop(ctx, chld, hup)
}

// runCertRenewer renews the node's certificate until the function that it returns is
// called. It continues while the daemons stop.
func (m *nodeMaster) runCertRenewer() (stop func()) {
	if m.node.TLS == nil || m.node.AuthorityAt == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	keeper := &caclient.CertRenewer{Files: m.node.TLS,
		Authority: &caclient.RemoteAuthority{Addr: m.node.AuthorityAt, Files: m.node.TLS}, Log: m.log}
	var running sync.WaitGroup
	running.Go(func() { keeper.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// releaseAll releases what outlives the loop.
func (m *nodeMaster) releaseAll() {
	close(m.loopDone)
	for _, c := range m.children {
		if c.log != nil {
			c.log.Close()
		}
	}
}
