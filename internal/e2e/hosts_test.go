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
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/internal/pki"
)

// Patience is how long one thing may take that should happen at once.
const patience = time.Minute

// someone is an ordinary user that no host has an account for.
var someone = user{12345, 12345}

// user is whose rights a command has.
type user struct{ uid, gid uint32 }

// hosts is a pool of several hosts: each is a network namespace with a directory of its own, a file system domain of its own and a certificate of
// its own. The users' commands reach the submit node by its socket.
//
//	central 10.111.0.1   collector, negotiator
//	submit  10.111.0.2   schedd
//	exec1   10.111.0.11  startd
//	exec2   10.111.0.12  startd
type hosts struct {
	*testing.T
	net   *network
	roost string
	dir   string // all of it is below
	home  string // the user's directory at the submit node
	nodes map[string]*host
	space string // the host in whose network commands are run; empty: in the machine's own, where only sockets of the pool can be reached

	special
}

// special is how a pool differs from what is usual.
type special struct {
	grouped bool // its daemons see the machine's control groups, which "ip netns exec" hides
	root    bool // jobs of root are taken

	env    []string // of its daemons, beside this process's
	tags   []string // that the programs are built with, at least
	points string   // the directory of the named instants at which a host's daemons kill themselves (internal/fault), one below it for each; empty: there are none
}

// host is one node and the master on it.
type host struct {
	*hosts
	name, dir string
	node      *config.Node
	attack    []attack.Attack // what its daemons do to the others; the pool's programs are built with -tags attacks then
	private   bool            // it has terminals, and nothing else that a person could touch; see Apart

	mu     sync.Mutex
	output bytes.Buffer
	cmd    *exec.Cmd
	done   chan struct{}
}

const (
	collectorAddr  = "10.111.0.1:9701"
	negotiatorAddr = "10.111.0.1:9702"
)

// startHosts builds the programs, the network and the pool, and waits until everybody is there.
func startHosts(t *testing.T) *hosts { return startHostsAs(t, special{}) }

func startHostsAs(t *testing.T, as special) *hosts {
	h := bareHosts(t, as)
	ca := filepath.Join(h.dir, "ca")
	h.execute("exec1", "10.111.0.11", h.issue(ca, "exec1", auth.Startd))
	h.execute("exec2", "10.111.0.12", h.issue(ca, "exec2", auth.Startd))
	for _, name := range []string{"central", "submit", "exec1", "exec2"} {
		h.nodes[name].start()
	}
	h.await("both execute nodes", func() bool { return slices.Equal(h.machines(), []string{"exec1", "exec2"}) })
	return h
}

// bareHosts makes the central manager and the submit node, and the authority below ca. Nothing runs yet.
func bareHosts(t *testing.T, as special) *hosts {
	dir := openDir(t) // it goes after all that runs
	h := &hosts{T: t, net: newNetwork(t), dir: dir, nodes: map[string]*host{}, special: as}
	h.roost, h.home = program(t, as.tags...), filepath.Join(h.dir, "home")
	if err := os.Mkdir(h.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(h.home, int(someone.uid), int(someone.gid)); err != nil {
		t.Fatal(err)
	}
	ca := h.authority("ca")
	h.add("central", "10.111.0.1", h.issue(ca, "central", auth.Collector, auth.Negotiator), func(n *config.Node) {
		n.Collector = &config.Collector{Listen: []string{collectorAddr}}
		n.Negotiator = &config.Negotiator{Listen: []string{negotiatorAddr}, Cycle: 5 * time.Second}
	})
	h.add("submit", "10.111.0.2", h.issue(ca, "submit", auth.Schedd), func(n *config.Node) {
		n.Schedd = &config.Schedd{SocketMode: 0o666, AllowRoot: as.root}
	})
	return h
}

// in is the pool for a part of the test.
func (h *hosts) in(t *testing.T) *hosts {
	part := *h
	part.T = t
	return &part
}

// openDir makes a directory that every user can enter, as t.TempDir's are not.
func openDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/var/tmp", "roost-hosts-") // tasks have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (h *hosts) authority(name string) string {
	dir := filepath.Join(h.dir, name)
	if err := pki.Init(dir, "hosts"); err != nil {
		h.Fatal(err)
	}
	return dir
}

func (h *hosts) issue(ca, name string, roles ...auth.Role) *config.TLS {
	files, err := pki.IssueTo(ca, name, roles)
	if err != nil {
		h.Fatal(err)
	}
	return &files
}

// add makes a node's namespace, directory and file. Its master is not started.
func (h *hosts) add(name, address string, tls *config.TLS, roles func(*config.Node)) *host {
	n := &host{hosts: h, name: name, dir: filepath.Join(h.dir, name)}
	n.node = &config.Node{
		Name: name, Pool: "hosts", Dir: n.dir, FileSystemDomain: name, TLS: tls,
		Collectors: []string{collectorAddr}, Negotiators: []string{negotiatorAddr},
	}
	roles(n.node)
	if h.net != nil {
		h.net.attach(name, address)
	}
	if err := os.WriteFile(n.dir+".hcl", config.Write(n.node), 0o600); err != nil {
		h.Fatal(err)
	}
	h.nodes[name] = n
	return n
}

func (h *hosts) execute(name, address string, tls *config.TLS) *host {
	return h.add(name, address, tls, func(n *config.Node) {
		d := config.Startd{Name: name, Listen: []string{address + ":9703"}, AllowRoot: h.root}
		d.Resources.CPU, d.Resources.Memory, d.Resources.Disk = 8000, 8<<30, 8<<30
		n.Startds = []config.Startd{d}
	})
}

// start starts the node's master inside of its namespace, or on the machine itself if it has none.
func (n *host) start() {
	if n.net == nil {
		n.cmd = exec.Command(n.roost, "master", "--config", n.dir+".hcl")
	} else if n.cmd = exec.Command("ip", "netns", "exec", n.net.space(n.name), n.roost, "master", "--config", n.dir+".hcl"); n.grouped {
		n.cmd = exec.Command("nsenter", "--net=/run/netns/"+n.net.space(n.name), n.roost, "master", "--config", n.dir+".hcl")
	}
	if n.private {
		n.cmd = exec.Command("nsenter", append([]string{"--net=/run/netns/" + n.net.space(n.name)}, Apart(n.roost, "master", "--config", n.dir+".hcl")...)...)
	}
	n.cmd.Env = append(os.Environ(), n.env...)
	if n.points != "" {
		n.cmd.Env = append(n.cmd.Env, "ROOST_FAULT_DIR="+filepath.Join(n.points, n.name))
	}
	if len(n.attack) > 0 {
		var names []string
		for _, a := range n.attack {
			names = append(names, string(a))
		}
		n.cmd.Env = append(n.cmd.Env, "ROOST_ATTACK="+strings.Join(names, ","))
	}
	n.cmd.Stdout, n.cmd.Stderr = n, n
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	n.cmd.WaitDelay = time.Second // its daemons hold the pipe of its output for a moment longer
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

// Write keeps what the master prints.
func (n *host) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.output.Write(b)
}

// said is what the node's master and daemons have written to their logs.
func (n *host) said() string {
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

// kill ends the master with SIGKILL; its daemons die with it, and starters live on.
func (n *host) kill() {
	n.cmd.Process.Kill()
	<-n.done
}

// stop ends the master as systemd does, and everything that it has started.
func (n *host) stop() {
	n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.done:
	case <-time.After(patience):
		n.Errorf("%s does not stop\n%s", n.name, n.said())
		n.kill()
	}
}

// daemon is the process id of one of the node's daemons, 0 while it is not ready.
func (n *host) daemon(role string) int {
	state, _, err := master.ReadState(n.dir)
	if err != nil || state.PID != n.cmd.Process.Pid { // that of the start before names processes that have died
		return 0
	}
	for _, d := range state.Daemons {
		if d.Role == role && d.Ready {
			return d.PID
		}
	}
	return 0
}

// await waits until something is so.
func (h *hosts) await(what string, is func() bool) {
	h.Helper()
	h.awaitFor(patience, what, is)
}

func (h *hosts) awaitFor(limit time.Duration, what string, is func() bool) {
	h.Helper()
	if !poll(h.Context(), limit, is) {
		h.tell()
		h.Fatalf("after %v still not: %s", limit, what)
	}
}

// tell prints what the daemons have said, for a test that fails.
func (h *hosts) tell() {
	stdout, stderr, _ := h.as(someone, "jobs")
	why, _, _ := h.as(someone, "show", "last")
	h.Logf("%s%s%s", stdout, stderr, why)
	for _, name := range slices.Sorted(maps.Keys(h.nodes)) {
		h.Logf("==== %s\n%s", name, h.nodes[name].said())
	}
}

// as runs a roost command at the submit node with the rights of a user, someone's in the user's directory.
func (h *hosts) as(who user, args ...string) (stdout, stderr string, code int) {
	cmd := h.command(h.Context(), who, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		h.Fatalf("roost %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (h *hosts) command(ctx context.Context, who user, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.roost, args...)
	if h.space != "" {
		enter := []string{"--net=/run/netns/" + h.net.space(h.space), "setpriv", "--clear-groups", "--reuid", fmt.Sprint(who.uid), "--regid", fmt.Sprint(who.gid), h.roost}
		cmd = exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	}
	if cmd.Dir = "/"; who == someone {
		cmd.Dir = h.home
	}
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ROOST_DIR=" + h.nodes["submit"].dir, "HOME=" + h.home}
	if h.space != "" {
		return cmd
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.uid, Gid: who.gid}}
	return cmd
}

// must runs a command that has to succeed, as someone.
func (h *hosts) must(args ...string) string {
	h.Helper()
	stdout, stderr, code := h.as(someone, args...)
	if code != 0 {
		h.tell()
		h.Fatalf("roost %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// ask runs a command that prints JSON, and reads it.
func (h *hosts) ask(into any, args ...string) bool {
	stdout, _, code := h.as(someone, append(args, "--json")...)
	return code == 0 && json.Unmarshal([]byte(stdout), into) == nil
}

// look is like ask for what the submit node tells everybody alike. It is cheap enough to be asked again and again.
func (h *hosts) look(into any, args ...string) bool {
	if h.space != "" {
		return h.ask(into, args...) // its sockets are in another network
	}
	stdout, _, code := inProcess(h.Context(), []string{"ROOST_DIR=" + h.nodes["submit"].dir}, append([]string{"roost"}, append(args, "--json")...)...)
	return code == 0 && json.Unmarshal([]byte(stdout), into) == nil
}

// machines lists the execute nodes that the pool knows, sorted.
func (h *hosts) machines() (names []string) {
	var all struct{ Nodes []struct{ Name string } }
	h.look(&all, "nodes")
	for _, n := range all.Nodes {
		names = append(names, n.Name)
	}
	return slices.Sorted(slices.Values(names))
}

// task is what roost show prints of a job with one task.
type task struct {
	State, Reason, Node string
	Attempt             int
	Exit                struct {
		Code          int
		Cause, Reason string
	}
}

func (h *hosts) show(id string) task {
	var shown struct{ Job task }
	h.look(&shown, "show", id)
	return shown.Job
}

// file writes a file of the user's at the submit node.
func (h *hosts) file(name, text string, mode os.FileMode) string {
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

// submit submits a job file of one job and returns its id.
func (h *hosts) submit(text string) string {
	h.Helper()
	var reply struct{ Jobs []struct{ ID string } }
	path := h.file("job.hcl", text, 0o600)
	if out := h.must("submit", "--json", path); json.Unmarshal([]byte(out), &reply) != nil || len(reply.Jobs) != 1 {
		h.Fatalf("submit printed %q", out)
	}
	return reply.Jobs[0].ID
}
