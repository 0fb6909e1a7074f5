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
			return nil, fmt.Errorf("directory %s: %w: %w", d.path, roost.NoOutput, err)
		}
	}
	return takeLock(n.Dir)
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
		node: node, opt: opt, children: childrenOf(node), spawner: newSpawner(),
		events: make(chan childEvent), loopDone: make(chan struct{}),
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
	go m.spawner.run()
	defer m.spawner.stop()
	defer m.runCertRenewer()()
	return m.loop(ctx, chld)
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
