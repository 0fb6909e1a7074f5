package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/master"
)

// awaitTimeout is how long one step may take that normally happens at once.
const awaitTimeout = 2 * time.Minute

// someone is an ordinary user for whom no host has an account.
var someone = commandUser{12345, 12345}

// commandUser is the user with whose rights a command runs.
type commandUser struct{ uid, gid uint32 }

// hostPool is a pool of several hosts. Each is a network namespace with a directory, a
// file system domain and a certificate of its own. Users' commands reach the submit node
// by its socket.
//
//	central 10.111.0.1   collector, negotiator
//	submit  10.111.0.2   schedd
//	exec1   10.111.0.11  startd
//	exec2   10.111.0.12  startd
type hostPool struct {
	*testing.T
	net   *testNetwork
	roost string
	dir   string // parent directory of everything
	home  string // the user's directory at the submit node
	nodes map[string]*testHost
	// host in whose network commands run; empty: the machine's own, where only unix
	// sockets of the pool can be reached
	commandHost string

	hostPoolOptions
}

// hostPoolOptions are the deviations of a pool from the default.
type hostPoolOptions struct {
	sharesCgroups bool // its daemons see the machine's control groups, which "ip netns exec" hides
	root          bool // jobs of root are accepted

	env  []string // of its daemons, added to this process's
	tags []string // minimal build tags of the programs
	// directory of the failpoints at which a host's daemons kill themselves
	// (internal/failpoint), with a subdirectory for each host; empty: none
	failpointDir string
}

// testHost is one node with its master.
type testHost struct {
	*hostPool
	name, dir string
	node      *config.Node
	// attacks of its daemons; the pool's programs are then built with -tags attacks
	attackName    []attack.AttackKind
	onlyTerminals bool   // it has terminals, and no other device that a person could touch; see SetsidCommand
	programs      string // directory of the host's own programs; empty: those of the pool

	mu     sync.Mutex
	output bytes.Buffer
	cmd    *exec.Cmd
	done   chan struct{}
}

const (
	collectorAddr  = "10.111.0.1:9701"
	negotiatorAddr = "10.111.0.1:9702"
)

// startHosts builds the programs, the network and the pool, and waits until all nodes are
// known.
func startHosts(t *testing.T) *hostPool { return startHostsAs(t, hostPoolOptions{}) }

func startHostsAs(t *testing.T, as hostPoolOptions) *hostPool {
	h := bareHosts(t, as)
	ca := filepath.Join(h.dir, "ca")
	h.addExecuteNode("exec1", "10.111.0.11", h.issueCertificate(ca, "exec1", peer.Startd))
	h.addExecuteNode("exec2", "10.111.0.12", h.issueCertificate(ca, "exec2", peer.Startd))
	for _, name := range []string{"central", "submit", "exec1", "exec2"} {
		h.nodes[name].start()
	}
	h.awaitTrue("both execute nodes", func() bool { return slices.Equal(h.machineNames(), []string{"exec1", "exec2"}) })
	return h
}

// bareHosts creates the central manager, the submit node, and the authority below ca.
// Nothing runs yet.
func bareHosts(t *testing.T, as hostPoolOptions) *hostPool {
	dir := openDir(t) // removed after everything that runs has ended
	h := &hostPool{T: t, net: newNetwork(t), dir: dir, nodes: map[string]*testHost{}, hostPoolOptions: as}
	h.roost, h.home = program(t, as.tags...), filepath.Join(h.dir, "home")
	if err := os.Mkdir(h.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(h.home, int(someone.uid), int(someone.gid)); err != nil {
		t.Fatal(err)
	}
	ca := h.startAuthority("ca")
	h.addHost("central", "10.111.0.1", h.issueCertificate(ca, "central", peer.Collector, peer.Negotiator),
		func(n *config.Node) {
			n.Collector = &config.CollectorSettings{Listen: []string{collectorAddr}}
			n.Negotiator = &config.NegotiatorSettings{Listen: []string{negotiatorAddr}, Cycle: 5 * time.Second}
		})
	h.addHost("submit", "10.111.0.2", h.issueCertificate(ca, "submit", peer.Schedd), func(n *config.Node) {
		n.Schedd = &config.ScheddSettings{SocketMode: 0o666, AllowRoot: as.root}
	})
	return h
}

// forSubtest returns the pool for a subtest.
func (h *hostPool) forSubtest(t *testing.T) *hostPool {
	part := *h
	part.T = t
	return &part
}

// openDir creates a directory that every user can enter, unlike those of t.TempDir.
func openDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/var/tmp", "roost-hosts-") // tasks have a private /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// a process that was killed may still make a file
		var err error
		if !pollUntil(context.Background(), awaitTimeout, func() bool { err = os.RemoveAll(dir); return err == nil }) {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (h *hostPool) startAuthority(name string) string {
	dir := filepath.Join(h.dir, name)
	if err := pki.Init(dir, "hosts"); err != nil {
		h.Fatal(err)
	}
	return dir
}

func (h *hostPool) issueCertificate(ca, name string, roles ...peer.Role) *config.TLSFiles {
	files, err := pki.IssueTo(ca, name, roles)
	if err != nil {
		h.Fatal(err)
	}
	return &files
}

// addHost creates a node's namespace, directory and file. Its master is not started.
func (h *hostPool) addHost(name, address string, tls *config.TLSFiles, roles func(*config.Node)) *testHost {
	n := &testHost{hostPool: h, name: name, dir: filepath.Join(h.dir, name)}
	n.node = &config.Node{
		Name: name, Pool: "hosts", Dir: n.dir, FileSystemDomain: name, TLS: tls,
		Collectors: []string{collectorAddr}, Negotiators: []string{negotiatorAddr},
	}
	roles(n.node)
	if h.net != nil {
		h.net.attachHost(name, address)
	}
	if err := os.WriteFile(n.dir+".hcl", config.Write(n.node), 0o600); err != nil {
		h.Fatal(err)
	}
	h.nodes[name] = n
	return n
}

func (h *hostPool) addExecuteNode(name, address string, tls *config.TLSFiles) *testHost {
	return h.addHost(name, address, tls, func(n *config.Node) {
		d := config.StartdSettings{Name: name, Listen: []string{address + ":9703"}, AllowRoot: h.root}
		d.Resources.CPU, d.Resources.Memory, d.Resources.Disk = 8000, 8<<30, 8<<30
		n.Startds = []config.StartdSettings{d}
	})
}

// start starts the node's master inside its namespace, or on the machine itself if it has
// none.
func (n *testHost) start() {
	roost := n.roost
	if n.programs != "" {
		roost = filepath.Join(n.programs, "roost")
	}
	if n.net == nil {
		n.cmd = exec.Command(roost, "master", "--config", n.dir+".hcl")
	} else if n.cmd = exec.Command("ip", "netns", "exec", n.net.namespaceName(n.name), roost, "master", "--config",
		n.dir+".hcl"); n.sharesCgroups {
		n.cmd = exec.Command("nsenter", "--net=/run/netns/"+n.net.namespaceName(n.name), "unshare", "--mount",
			"--propagation", "slave", roost, "master", "--config", n.dir+".hcl")
	}
	if n.onlyTerminals {
		n.cmd = exec.Command("nsenter", append([]string{"--net=/run/netns/" + n.net.namespaceName(n.name)},
			SetsidCommand(roost, "master", "--config", n.dir+".hcl")...)...)
	}
	n.cmd.Env = append(os.Environ(), n.env...)
	if n.failpointDir != "" {
		n.cmd.Env = append(n.cmd.Env, "ROOST_FAULT_DIR="+filepath.Join(n.failpointDir, n.name))
	}
	if len(n.attackName) > 0 {
		var names []string
		for _, a := range n.attackName {
			names = append(names, string(a))
		}
		n.cmd.Env = append(n.cmd.Env, "ROOST_ATTACK="+strings.Join(names, ","))
	}
	n.cmd.Stdout, n.cmd.Stderr = n, n
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	n.cmd.WaitDelay = time.Second // its daemons keep the output pipe open for a moment longer
	if err := n.cmd.Start(); err != nil {
		n.Fatal(err)
	}
	cmd, done := n.cmd, make(chan struct{})
	n.done = done
	go func() {
		cmd.Wait()
		close(done)
	}()
}

// Write stores what the master prints.
func (n *testHost) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.output.Write(b)
}

// logText returns the logs of the node's master and daemons.
func (n *testHost) logText() string {
	n.mu.Lock()
	text := n.output.String()
	n.mu.Unlock()
	logs, _ := filepath.Glob(filepath.Join(n.dir, "log", "*"))
	for _, log := range logs {
		more, _ := os.ReadFile(log)
		text += fmt.Sprintf("-- %s\n%s", log, more)
	}
	return text
}

// killMaster ends the master with SIGKILL. Its daemons die with it, and starters live on.
func (n *testHost) killMaster() {
	n.cmd.Process.Kill()
	<-n.done
}

// stopMaster ends the master as systemd does, with everything that it has started.
func (n *testHost) stopMaster() {
	n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.done:
	case <-time.After(awaitTimeout):
		n.Errorf("%s does not stop\n%s", n.name, n.logText())
		n.killMaster()
	}
}

// daemonPID returns the process id of one of the node's daemons, 0 if it is not ready.
func (n *testHost) daemonPID(role string) int {
	state, _, err := master.ReadState(n.dir)
	if err != nil || state.PID != n.cmd.Process.Pid { // an earlier master's file names processes that have died
		return 0
	}
	for _, d := range state.Daemons {
		if d.Role == role && d.Ready {
			return d.PID
		}
	}
	return 0
}

// awaitTrue waits until a condition is true.
func (h *hostPool) awaitTrue(what string, is func() bool) {
	h.Helper()
	h.awaitFor(awaitTimeout, what, is)
}

func (h *hostPool) awaitFor(limit time.Duration, what string, is func() bool) {
	h.Helper()
	if !pollUntil(h.Context(), limit, is) {
		h.printLogs()
		h.Fatalf("after %v still not: %s", limit, what)
	}
}

// printLogs prints the logs of the daemons, for a failing test.
func (h *hostPool) printLogs() {
	stdout, stderr, _ := h.runAs(someone, "jobs")
	why, _, _ := h.runAs(someone, "show", "last")
	h.Logf("%s%s%s", stdout, stderr, why)
	for _, name := range slices.Sorted(maps.Keys(h.nodes)) {
		h.Logf("==== %s\n%s", name, h.nodes[name].logText())
	}
}

// runAs runs a roost command at the submit node with the rights of a user. Commands of
// someone run in the user's directory.
func (h *hostPool) runAs(who commandUser, args ...string) (stdout, stderr string, code int) {
	cmd := h.command(h.Context(), who, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		h.Fatalf("roost %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (h *hostPool) command(ctx context.Context, who commandUser, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.roost, args...)
	if h.commandHost != "" {
		enter := []string{"--net=/run/netns/" + h.net.namespaceName(h.commandHost), "setpriv", "--clear-groups",
			"--reuid", fmt.Sprint(who.uid), "--regid", fmt.Sprint(who.gid), h.roost}
		cmd = exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	}
	if cmd.Dir = "/"; who == someone {
		cmd.Dir = h.home
	}
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ROOST_DIR=" + h.nodes["submit"].dir, "HOME=" + h.home}
	if h.commandHost != "" {
		return cmd
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.uid, Gid: who.gid}}
	return cmd
}

// mustAs runs a command that must succeed, as someone.
func (h *hostPool) mustAs(args ...string) string {
	h.Helper()
	stdout, stderr, code := h.runAs(someone, args...)
	if code != 0 {
		h.printLogs()
		h.Fatalf("roost %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// queryJSON runs a command that prints JSON, and parses it.
func (h *hostPool) queryJSON(into any, args ...string) bool {
	stdout, _, code := h.runAs(someone, append(args, "--json")...)
	return code == 0 && json.Unmarshal([]byte(stdout), into) == nil
}

// querySubmitNode is like queryJSON for output of the submit node that does not depend on
// the user. It is cheap enough for polling.
func (h *hostPool) querySubmitNode(into any, args ...string) bool {
	if h.commandHost != "" {
		return h.queryJSON(into, args...) // its sockets are in another network
	}
	stdout, _, code := runInProcess(h.Context(), []string{"ROOST_DIR=" + h.nodes["submit"].dir},
		append([]string{"roost"}, append(args, "--json")...)...)
	return code == 0 && json.Unmarshal([]byte(stdout), into) == nil
}

// machineNames lists the execute nodes that the pool knows, sorted.
func (h *hostPool) machineNames() (names []string) {
	var all struct{ Nodes []struct{ Name string } }
	h.querySubmitNode(&all, "nodes")
	for _, n := range all.Nodes {
		names = append(names, n.Name)
	}
	return slices.Sorted(slices.Values(names))
}

// taskRecord is the output of roost show for a job with one task.
type taskRecord struct {
	State, Reason, Node string
	Attempt             int
	Exit                struct {
		Code          int
		Cause, Reason string
	}
}

func (h *hostPool) showTask(id string) taskRecord {
	var shown struct{ Job taskRecord }
	h.querySubmitNode(&shown, "show", id)
	return shown.Job
}

// writeUserFile writes a file of the user at the submit node.
func (h *hostPool) writeUserFile(name, text string, mode os.FileMode) string {
	h.Helper()
	path := filepath.Join(h.home, name)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		h.Fatal(err)
	}
	for _, p := range []string{dir, path} {
		if err := os.Chown(p, int(someone.uid), int(someone.gid)); err != nil {
			h.Fatal(err)
		}
	}
	return path
}

// submitJob submits a job file of one job and returns its id.
func (h *hostPool) submitJob(text string) string {
	h.Helper()
	var reply struct{ Jobs []struct{ ID string } }
	path := h.writeUserFile("job.hcl", text, 0o600)
	if out := h.mustAs("submit", "--json", path); json.Unmarshal([]byte(out), &reply) != nil || len(reply.Jobs) != 1 {
		h.Fatalf("submit printed %q", out)
	}
	return reply.Jobs[0].ID
}
