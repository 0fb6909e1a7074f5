package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pilotPool is a pool with one machine, and a cluster behind a router. The router
// translates addresses, so nobody can open a connection to the nodes of the cluster.
type pilotPool struct {
	*unjoinedHosts
	home string
}

// attachCluster creates the router and one node behind it.
func (p *pilotPool) attachCluster() {
	p.Helper()
	if _, err := exec.LookPath("iptables"); err != nil {
		p.Skip("SKIPPED: there is no iptables, so that no router translates addresses; no pilots are tested")
	}
	p.net.attachHost("router", "10.111.0.30")
	router, node := p.net.namespaceName("router"), p.net.namespaceName("node")
	p.net.runIP("netns", "add", node)
	p.net.spaces = append(p.net.spaces, node)
	p.net.runIP("-n", router, "link", "add", "inside", "type", "veth", "peer", "name", "eth0", "netns", node)
	p.net.runIP("-n", router, "addr", "add", "192.168.77.1/24", "dev", "inside")
	p.net.runIP("-n", router, "link", "set", "inside", "up")
	p.net.runIP("-n", node, "addr", "add", "192.168.77.2/24", "dev", "eth0")
	p.net.runIP("-n", node, "link", "set", "eth0", "up")
	p.net.runIP("-n", node, "link", "set", "lo", "up")
	p.net.runIP("-n", node, "route", "add", "default", "via", "192.168.77.1")
	for _, line := range [][]string{{"sysctl", "-qw", "net.ipv4.ip_forward=1"},
		{"iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "eth0", "-j", "MASQUERADE"}} {
		inside := append([]string{"netns", "exec", router}, line...)
		if out, err := exec.Command("ip", inside...).CombinedOutput(); err != nil {
			p.Skipf("SKIPPED: no router that translates addresses can be made here (%s): %s; no pilots are tested",
				strings.Join(line, " "), out)
		}
	}
}

// as returns a command of a user on a host.
func (p *pilotPool) as(who commandUser, host string, args ...string) *exec.Cmd {
	line := append([]string{"--net=/run/netns/" + p.net.namespaceName(host), "setpriv", "--clear-groups", "--reuid",
		fmt.Sprint(who.uid), "--regid", fmt.Sprint(who.gid), p.roost}, args...)
	cmd := exec.CommandContext(p.Context(), "nsenter", line...)
	cmd.Dir = p.home
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + p.home, "TMPDIR=" + p.home,
		"ROOST_DIR=" + p.hostDirectory("first").Dir()}
	return cmd
}

// must runs a command of someone at the submit node that must succeed.
func (p *pilotPool) must(args ...string) string {
	p.Helper()
	cmd := p.as(someone, "first", args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		p.printLogs()
		p.Fatalf("roost %s: %v\n%s%s", strings.Join(args, " "), err, out, errs.Bytes())
	}
	return string(out)
}

// startPilot starts a pilot behind the router.
func (p *pilotPool) startPilot(key string, more ...string) (pilot *exec.Cmd, log string) {
	p.Helper()
	pilot = p.as(someone, "node", append([]string{"pilot", "--token-file", "pilot.token", "--walltime", "1h",
		"--cpus", "2", "--memory", "1GiB", "--key", key}, more...)...)
	log = filepath.Join(p.home, key+".log")
	file, err := os.Create(log)
	if err != nil {
		p.Fatal(err)
	}
	defer file.Close()
	pilot.Stdout, pilot.Stderr = file, file
	if err := pilot.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if pilot.ProcessState == nil {
			pilot.Process.Signal(syscall.SIGTERM)
			pilot.Wait()
		}
		if text, _ := os.ReadFile(log); p.Failed() {
			p.Logf("==== pilot %s\n%s", key, text)
		}
	})
	return pilot, log
}

// state returns the state of a job and the node of its task.
func (p *pilotPool) state(id string) taskRecord {
	var shown struct{ Job taskRecord }
	out, _ := p.as(someone, "first", "show", id, "--json").Output()
	json.Unmarshal(out, &shown)
	return shown.Job
}

func (p *pilotPool) await(what string, is func() bool) {
	p.Helper()
	if !pollUntil(p.Context(), awaitTimeout, is) {
		p.printLogs()
		p.Fatalf("%s: not after %v", what, awaitTimeout)
	}
}

// submit submits a job of one task with a walltime of ten minutes.
func (p *pilotPool) submit(script string) string {
	p.Helper()
	return p.submitAs(someone, `walltime = "10m"`, script)
}

// submitAs submits a job of a user.
func (p *pilotPool) submitAs(who commandUser, settings, script string) string {
	p.Helper()
	var reply struct{ Jobs []struct{ ID string } }
	cmd := p.as(who, "first", "submit", "--json", "-")
	cmd.Dir = "/"
	cmd.Stdin = strings.NewReader(fmt.Sprintf("job \"j\" {\n  command = [\"sh\", \"-c\", %q]\n  %s\n}\n", script,
		settings))
	out, err := cmd.CombinedOutput()
	if err := errors.Join(err, json.Unmarshal(out, &reply)); err != nil || len(reply.Jobs) != 1 {
		p.Fatalf("submit: %v\n%s", err, out)
	}
	return reply.Jobs[0].ID
}

// TestPilots runs the tasks of a user in an allocation that nobody can reach, while its
// connections break.
func TestPilots(t *testing.T) {
	t.Parallel()
	p := &pilotPool{&unjoinedHosts{T: t, net: newNetwork(t), dir: openDir(t), roost: program(t)}, ""}
	p.home = filepath.Join(p.dir, "home")
	if err := errors.Join(os.Mkdir(p.home, 0o700), os.Chown(p.home, int(someone.uid), int(someone.gid))); err != nil {
		t.Fatal(err)
	}
	p.net.attachHost("first", "10.111.0.1")
	p.attachCluster()
	p.mustRun("first", "init", "--name", "lab", "--root", p.hostDirectory("first").Root)
	p.startMaster("first")
	var token []byte
	p.await("a token", func() (ok bool) {
		var err error
		token, err = p.as(someone, "first", "token", "--pilots", "2", "--expires", "1h").Output()
		return err == nil
	})
	file := filepath.Join(p.home, "pilot.token")
	if err := errors.Join(os.WriteFile(file, token, 0o600),
		os.Chown(file, int(someone.uid), int(someone.gid))); err != nil {
		t.Fatal(err)
	}
	waiting := p.submit("echo from $(cat /proc/sys/kernel/hostname); exit 0")
	pilot, _ := p.startPilot("one")
	p.await("the job that has waited", func() bool { return p.state(waiting).State == "completed" })
	if node := p.state(waiting).Node; !strings.HasPrefix(node, "pilot-one-") {
		t.Errorf("it ran on %q", node)
	}
	if out := p.must("logs", waiting); !strings.HasPrefix(out, "from ") {
		t.Errorf("its output: %q", out)
	}

	long := p.submit("while ! test -e " + p.home + "/go; do sleep 0.1; done; echo gone on")
	p.await("a task runs", func() bool { return p.state(long).State == "running" })
	t.Run("others", func(t *testing.T) { part := pilotPool{p.forSubtest(t), p.home}; part.testOthers() })
	t.Run("cut", func(t *testing.T) { part := pilotPool{p.forSubtest(t), p.home}; part.testCut(long) })

	// The batch system announces the end: the task goes on elsewhere.
	again := filepath.Join(p.home, "again")
	second := p.submit(fmt.Sprintf(
		"test -e %[1]s || { trap 'exit 3' TERM; touch %[1]s; sleep 1000 & wait; }; echo again", again))
	p.await("the first attempt", func() bool {
		_, err := os.Stat(again)
		return err == nil
	})
	pilot.Process.Signal(syscall.SIGTERM)
	if err := pilot.Wait(); err != nil {
		t.Errorf("the pilot: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(p.home, "roost-pilot-*")); len(left) > 0 {
		t.Errorf("it has left %v", left)
	}
	next, _ := p.startPilot("two", "--idle", "3s", "--first-idle", "1m")
	p.await("its next attempt", func() bool { return p.state(second).State == "completed" })
	if s := p.state(second); s.Attempt != 2 || !strings.HasPrefix(s.Node, "pilot-two-") {
		t.Errorf("it ended as %+v", s)
	}
	if err := next.Wait(); err != nil { // with nothing to do it ends by itself
		t.Errorf("the idle pilot: %v", err)
	}
	third, log := p.startPilot("three")
	text := ""
	if err := third.Wait(); err == nil {
		t.Errorf("a third pilot with a token for two")
	} else if b, _ := os.ReadFile(log); !strings.Contains(string(b), "2 pilots have joined with it") {
		text = string(b)
		t.Errorf("a third pilot: %v\n%s", err, text)
	}
	members := p.mustRun("first", "token", "list", "--config", p.hostDirectory("first").NodeFile())
	if strings.Count(members, "revoked: it left") != 2 {
		t.Errorf("members:\n%s", members)
	}
	t.Run("provisioner", func(t *testing.T) { part := pilotPool{p.forSubtest(t), p.home}; part.testProvisioner() })
}

// forSubtest returns the hosts for a subtest.
func (b *unjoinedHosts) forSubtest(t *testing.T) *unjoinedHosts {
	part := *b
	part.T = t
	return &part
}

// testOthers checks that a pilot gets no tasks of another user, and none that may not end
// before it does.
func (p *pilotPool) testOthers() {
	other := commandUser{12346, 12346}
	for id, words := range map[string]string{
		p.submitAs(other, `walltime = "10m"`, "true"): `refuses: TARGET.Owner == "12345"`,
		p.submitAs(someone, "", "true"):               "its allocation ends",
	} {
		var why string
		if !pollUntil(p.Context(), awaitTimeout, func() bool {
			why = p.must("why", id)
			return strings.Contains(why, words)
		}) {
			p.Errorf("why %s:\n%s", id, why)
		}
		if s := p.state(id); s.State != "idle" {
			p.Errorf("%s is %s", id, s.State)
		}
	}
}

// testCut checks that a task goes on when its machine cannot be reached for a while. It
// also does when the relay is killed.
func (p *pilotPool) testCut(running string) {
	p.net.unplug("router")
	short := p.submit("echo short")
	p.net.replug("router")
	p.await("a task after the network was down", func() bool { return p.state(short).State == "completed" })

	pid, err := os.ReadFile(filepath.Join(p.hostDirectory("first").Dir(), "run", "master.json"))
	var state struct {
		Daemons []struct {
			Role string
			PID  int
		}
	}
	if err := errors.Join(err, json.Unmarshal(pid, &state)); err != nil {
		p.Fatal(err)
	}
	killed := false
	for _, d := range state.Daemons {
		if d.Role == "collector" {
			killed = syscall.Kill(d.PID, syscall.SIGKILL) == nil
		}
	}
	if !killed {
		p.Fatalf("no collector in %s", pid)
	}
	short = p.submit("echo short")
	p.await("a task after the relay was killed", func() bool { return p.state(short).State == "completed" })
	if s := p.state(running); s.State != "running" || s.Attempt != 1 {
		p.Errorf("the task that ran has become %+v", s)
	}
	if err := os.WriteFile(filepath.Join(p.home, "go"), nil, 0o644); err != nil {
		p.Fatal(err)
	}
	p.await("the task that ran", func() bool { return p.state(running).State == "completed" })
	if out := p.must("logs", running); out != "gone on\n" {
		p.Errorf("its output: %q", out)
	}
}

// testProvisioner has the user's provisioner get machines from another batch system. That
// is a second pool, reached by the commands that Slurm has.
func (p *pilotPool) testProvisioner() {
	bin, outer := filepath.Join(p.home, "bin"), filepath.Join(p.home, "outer")
	if err := os.Mkdir(bin, 0o755); err != nil {
		p.Fatal(err)
	}
	for _, name := range []string{"sbatch", "squeue", "scancel", "scontrol", "sinfo"} {
		if err := os.Symlink(p.roost, filepath.Join(bin, name)); err != nil {
			p.Fatal(err)
		}
	}
	there := func(env string, args ...string) *exec.Cmd {
		cmd := p.as(someone, "first", args...)
		cmd.Env = append(cmd.Env, "PATH="+bin+":/usr/sbin:/usr/bin:/sbin:/bin", env)
		return cmd
	}
	background := func(name string, cmd *exec.Cmd) {
		log, err := os.Create(filepath.Join(p.home, name+".log"))
		if err != nil {
			p.Fatal(err)
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			p.Fatal(err)
		}
		p.Cleanup(func() {
			cmd.Process.Signal(syscall.SIGINT)
			cmd.Wait()
			if text, _ := os.ReadFile(log.Name()); p.Failed() {
				p.Logf("==== %s\n%s", name, text)
			}
		})
	}
	background("outer", there("ROOST_DIR="+outer, "up", "--nodes", "1", "--cpus", "2", "--no-web"))
	p.await("the other system", func() bool {
		var all struct{ Nodes []struct{ Name string } }
		out, err := there("ROOST_DIR="+outer, "nodes", "--json").Output()
		return err == nil && json.Unmarshal(out, &all) == nil && len(all.Nodes) == 1
	})
	out, err := there("", "pilots", "add", "cluster", "--kind", "slurm", "--walltime", "30m", "--cpus", "1", "--memory",
		"512MiB", "--idle", "2s", "--program", p.roost, "--no-start", "--via", "env ROOST_DIR="+outer).CombinedOutput()
	if err != nil {
		p.Fatalf("roost pilots add: %v\n%s", err, out)
	}
	settings := filepath.Join(p.home, ".config/roost/pilots.hcl")
	text, err := os.ReadFile(settings)
	if err != nil {
		p.Fatal(err)
	}
	log := filepath.Join(p.home, "allocations.log")
	text = bytes.Replace(text, []byte("kind "),
		fmt.Appendf(nil, "wait = \"1s\"\n  before = \"exec >>%s 2>&1\"\n  kind ", log), 1)
	if err := os.WriteFile(settings, text, 0o600); err != nil {
		p.Fatal(err)
	}
	background("provisioner", there("", "pilots", "run"))
	var ids []string
	for range 3 {
		ids = append(ids, p.submit("echo done"))
	}
	for _, id := range ids {
		if !pollUntil(p.Context(), 30*time.Second, func() bool { return p.state(id).State == "completed" }) {
			shown, err := there("", "pilots", "show").CombinedOutput()
			text, _ := os.ReadFile(log)
			p.Logf("==== allocations\n%s", text)
			p.Fatalf("%s has not run on a pilot that was asked for: %v\n%s", id, err, shown)
		}
		if node := p.state(id).Node; !strings.HasPrefix(node, "pilot-rp") {
			p.Errorf("%s ran on %q", id, node)
		}
	}
	p.await("the other system has nothing left", func() bool {
		var all struct{ Jobs []struct{ ID string } }
		out, err := there("ROOST_DIR="+outer, "jobs", "--json").Output()
		return err == nil && json.Unmarshal(out, &all) == nil && len(all.Jobs) == 0
	})
}
