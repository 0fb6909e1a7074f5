// Package e2e runs whole pools of real processes for tests and benchmarks. It builds the
// programs, runs roost up in a directory, calls its schedd as user commands do, and finds
// and kills its daemons.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Build compiles the programs into dir as make build does, and returns the path of roost.
// It begins from those that make has built: what is up to date is not linked again. It
// finds the module from the working directory.
func Build(ctx context.Context, dir string) (roost string, err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	for _, set := range []struct {
		cgo, stripped bool
		programs      []string
	}{
		{false, false, []string{"roost", "roost-q", "roost-sim", "roost-accountant"}},
		{true, false, []string{"roost-daemon", "roost-negotiator", "roost-node", "roost-web"}}, // these ask NSS
		{false, true, []string{"roost-starter", "roost-ranks"}},
	} {
		for _, program := range set.programs {
			err := copyProgram(filepath.Join(root, "bin", program), filepath.Join(dir, program))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
		if err := compile(ctx, dir, set.cgo, set.stripped, nil, set.programs...); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "roost"), nil
}

// copyProgram copies a program, with its rights.
func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func moduleRoot(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}

// compile compiles some programs into dir, with build tags beside the usual ones. All
// calls, make, and the tests themselves use the same flags, so that no package is
// compiled twice (scripts/flags.sh).
func compile(ctx context.Context, dir string, cgo, stripped bool, tags []string, programs ...string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	tags = append(tags, "urfave_cli_no_docs", "grpcnotrace")
	args := []string{"build", "-trimpath", "-tags", strings.Join(tags, ","), "-o", dir + string(filepath.Separator)}
	if stripped {
		args = append(args, "-ldflags", "-s -w")
	}
	for _, program := range programs {
		args = append(args, "./cmd/"+program)
	}
	build := exec.CommandContext(ctx, "go", args...)
	build.Dir = root
	if !cgo {
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", strings.Join(programs, ", "), err, out)
	}
	return nil
}

// PoolOptions says how a pool is started.
type PoolOptions struct {
	Roost string   // path of the program
	Dir   string   // directory of the pool
	Nodes int      // number of execute nodes
	CPUs  int      // cores of all nodes together
	Env   []string // added to this process's environment

	Web     bool   // roost up starts the web daemon, too
	DNS     string // address where roost up serves names over DNS; empty: nowhere
	Desktop bool   // the nodes have the owner policy of a desktop
	// the node file, run apart from this machine's owner; nil: roost up makes one of the
	// other fields
	Node *config.Node
	// with a node file: the daemons see this machine's terminals. A node without startds
	// has no use for terminals of its own, which only root can make.
	SharesTerminals bool
}

// Pool is a running pool.
type Pool struct {
	PoolOptions
	Client wire.ScheddClient

	conn *grpc.ClientConn
	cmd  *exec.Cmd
	done chan struct{}
	err  error

	mu     sync.Mutex
	output bytes.Buffer
}

// Start runs roost up and returns when its schedd answers.
func Start(ctx context.Context, opt PoolOptions) (*Pool, error) {
	p := &Pool{PoolOptions: opt, done: make(chan struct{})}
	args := []string{opt.Roost, "up", "--dir", opt.Dir, "--nodes", strconv.Itoa(opt.Nodes), "--cpus",
		strconv.Itoa(opt.CPUs), "--desktop=" + strconv.FormatBool(opt.Desktop),
		"--no-web=" + strconv.FormatBool(!opt.Web)}
	if opt.DNS != "" {
		args = append(args, "--dns", opt.DNS)
	}
	if opt.Node != nil {
		if err := os.WriteFile(opt.Dir+".hcl", config.Write(opt.Node), 0o600); err != nil {
			return nil, err
		}
		args = []string{opt.Roost, "master", "--config", opt.Dir + ".hcl"}
		if !opt.SharesTerminals {
			args = SetsidCommand(args...)
		}
	}
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), opt.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	conn, err := rpc.Dial("unix:"+filepath.Join(opt.Dir, "run", "schedd.sock"), nil, "")
	if err != nil {
		return nil, err
	}
	p.conn, p.Client = conn, wire.NewScheddClient(conn)
	if err := p.AwaitReady(ctx); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// Write stores what the pool prints.
func (p *Pool) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(b)
}

// Output returns what the pool has printed so far.
func (p *Pool) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// readyTimeout is how long a pool may take to start. Usually it takes about a second.
const readyTimeout = 2 * time.Minute

// How long AwaitReady rests between two questions. Each takes the daemons time to answer
// while they start, so it asks less often the longer the start takes.
const (
	firstReadyRest = 5 * time.Millisecond
	lastReadyRest  = 100 * time.Millisecond
)

// AwaitReady waits until every daemon serves and all nodes are known.
func (p *Pool) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for rest := firstReadyRest; ; rest = min(rest*5/4, lastReadyRest) {
		if st, err := p.State(); err == nil && st.Ready {
			if n, err := p.machines(ctx); err == nil && n >= p.Nodes {
				return nil
			}
		}
		select {
		case <-time.After(rest):
		case <-p.done:
			return fmt.Errorf("the pool has ended: %w\n%s", errors.Join(p.err, errors.New("not ready")), p.Output())
		case <-ctx.Done():
			return fmt.Errorf("the pool is not ready after %v\n%s", readyTimeout, p.Output())
		}
	}
}

// machines counts the execute nodes that the pool knows.
func (p *Pool) machines(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	stream, err := p.Client.Ads(ctx, &wire.AdQuery{Type: "Machine", Projection: []string{"Name"}})
	if err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		if _, err := stream.Recv(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return 0, err
		}
	}
}

// OpenTerminal opens a terminal of a pool that has a node file.
func (p *Pool) OpenTerminal() (*OwnerTerminal, error) { return OpenTerminal(p.cmd.Process.Pid) }

// State reads the state file of the master.
func (p *Pool) State() (master.NodeState, error) {
	var st master.NodeState
	text, err := os.ReadFile(filepath.Join(p.Dir, "run", "master.json"))
	if err == nil {
		err = json.Unmarshal(text, &st)
	}
	return st, err
}

// Command runs a roost command as a user of the pool, and returns its output and exit
// code.
func (p *Pool) Command(ctx context.Context, args ...string) (stdout, stderr string, code int) {
	cmd := exec.CommandContext(ctx, p.Roost, args...)
	cmd.Env = append(append(os.Environ(), p.Env...), "ROOST_DIR="+p.Dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return out.String(), err.Error(), -1
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Stop ends the pool as Ctrl-C does.
func (p *Pool) Stop() error {
	p.conn.Close()
	p.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-p.done:
		return p.err
	case <-time.After(30 * time.Second):
		p.Kill()
		return fmt.Errorf("the pool does not stop\n%s", p.Output())
	}
}

// Kill ends the master with SIGKILL. Its daemons die with it, and what runs under
// starters lives on.
func (p *Pool) Kill() {
	p.conn.Close()
	p.cmd.Process.Kill()
	<-p.done
}
