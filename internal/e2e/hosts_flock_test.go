package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// flockTest is two pools of one machine each. The pool "chemistry", on the host first, is
// a guest of the pool "physics", on the host second, where it is called "chem".
type flockTest struct{ *pilotPool }

// editNode changes the node file of a host.
func (f flockTest) editNode(host string, change func(*config.Node)) {
	f.Helper()
	file := f.hostDirectory(host).NodeFile()
	n, err := config.Load(file)
	if err != nil {
		f.Fatal(err)
	}
	change(n)
	if err := os.WriteFile(file, config.Write(n), 0o600); err != nil {
		f.Fatal(err)
	}
}

// submitAt submits a job of one task at a host.
func (f flockTest) submitAt(host, settings, script string) string {
	f.Helper()
	var reply struct{ Jobs []struct{ ID string } }
	cmd := f.at(host, "submit", "--json", "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf("job \"j\" {\n  command = [\"sh\", \"-c\", %q]\n  %s\n}\n", script,
		settings))
	out, err := cmd.CombinedOutput()
	if err := errors.Join(err, json.Unmarshal(out, &reply)); err != nil || len(reply.Jobs) != 1 {
		f.Fatalf("submit: %v\n%s", err, out)
	}
	return reply.Jobs[0].ID
}

// at returns a command of someone at a host.
func (f flockTest) at(host string, args ...string) *exec.Cmd {
	cmd := f.as(someone, host, args...)
	cmd.Env = append(cmd.Env, "ROOST_DIR="+f.hostDirectory(host).Dir())
	cmd.Dir = "/"
	return cmd
}

// stateAt returns the state of a job at a host.
func (f flockTest) stateAt(host, id string) taskRecord {
	var shown struct{ Job taskRecord }
	out, _ := f.at(host, "show", id, "--json").Output()
	json.Unmarshal(out, &shown)
	return shown.Job
}

func (f flockTest) awaitState(host, id, state string) taskRecord {
	f.Helper()
	f.await(id+" at "+host+" is "+state, func() bool { return f.stateAt(host, id).State == state })
	return f.stateAt(host, id)
}

// agree has the second pool lend machines to the first.
func (f flockTest) agree() {
	f.Helper()
	second, first := f.hostDirectory("second").NodeFile(), f.hostDirectory("first").NodeFile()
	offer := filepath.Join(f.dir, "offer")
	var text string
	f.await("an offer", func() bool {
		out, _, code := f.runCommand("second", "peer", "offer", "chem", "--config", second)
		text = out
		return code == 0
	})
	if err := os.WriteFile(offer, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	changed := filepath.Join(f.dir, "changed")
	if err := os.WriteFile(changed, []byte(strings.Replace(text, "A", "B", 1)), 0o600); err != nil {
		f.Fatal(err)
	}
	f.expectRefusal("offer", "first", "peer", "accept", changed, "--config", first)
	f.expectRefusal("it was made by this pool", "second", "peer", "accept", offer, "--config", second)
	f.mustRun("first", "peer", "accept", offer, "--as", "physics", "--config", first)
	if list := f.mustRun("second", "peer", "list", "--config", second); !strings.Contains(list, "active") {
		f.Errorf("peers of the host:\n%s", list)
	}
}

// TestFlock runs tasks of one pool on machines of another one.
func TestFlock(t *testing.T) {
	t.Parallel()
	f := flockTest{&pilotPool{&unjoinedHosts{T: t, net: newNetwork(t), dir: openDir(t), roost: program(t)}, ""}}
	f.home = filepath.Join(f.dir, "home")
	if err := errors.Join(os.Mkdir(f.home, 0o777), os.Chmod(f.home, 0o777)); err != nil {
		t.Fatal(err)
	}
	for host, pool := range map[string]string{"first": "chemistry", "second": "physics"} {
		f.net.attachHost(host, map[string]string{"first": "10.111.0.1", "second": "10.111.0.2"}[host])
		f.mustRun(host, "init", "--server", "--name", pool, "--root", f.hostDirectory(host).Root)
	}
	f.editNode("first", func(n *config.Node) {
		n.Schedd.Flock, n.Schedd.FlockWait = []string{"physics"}, time.Second
		n.Startds[0].Start = `TARGET.Owner == "nobody-here"` // home has no room
	})
	f.editNode("second", func(n *config.Node) {
		n.Startds[0].Accounts.Guests = config.GuestSlots
		n.Startds[0].Resources.CPU = 2000
	})
	f.startMaster("first")
	f.startMaster("second")
	f.agree()

	// The same user of both pools is two users.
	guest := f.submitAt("first", "", "id -u; echo from the other pool")
	s := f.awaitState("first", guest, "completed")
	if !strings.HasSuffix(s.Node, "@physics") {
		t.Errorf("it ran on %q", s.Node)
	}
	out, err := f.at("first", "logs", guest).Output()
	if text := string(out); err != nil || !strings.Contains(text, "from the other pool") ||
		strings.Contains(text, "12345") || strings.HasPrefix(text, "0\n") {
		t.Errorf("its output: %v\n%s", err, text)
	}
	stays := f.submitAt("first", "flock = false", "true")
	f.await("why it stays", func() bool {
		out, _ := f.at("first", "why", stays).Output()
		return strings.Contains(string(out), "flock = false")
	})

	f.testLoad()
	f.testLedgers()
	f.testLeaderKilled()
	f.testRevoked()
}

// testLoad checks that the guest starves while the host has work, and that what the host
// counts is the guest's.
func (f flockTest) testLoad() {
	f.Helper()
	go1 := filepath.Join(f.home, "go1")
	guest := f.submitAt("first", "", "while ! test -e "+go1+"; do sleep 0.1; done")
	f.awaitState("first", guest, "running")
	f.await("the guest in the host's shares", func() bool {
		out, _ := f.at("second", "shares").Output()
		return strings.Contains(string(out), "12345@chem")
	})
	local := f.submitAt("second", "cpus = 2", "while ! test -e "+go1+"; do sleep 0.1; done")
	f.awaitState("second", local, "running") // it has preempted the guest
	f.await("the guest waits", func() bool { return f.stateAt("first", guest).State == "idle" })
	f.await("the usage of the host's own user", func() bool {
		here, _ := f.usedBy("second", "12345", "")
		return here > 0
	})
	if err := os.WriteFile(go1, nil, 0o644); err != nil {
		f.Fatal(err)
	}
	f.awaitState("second", local, "completed")
	if s := f.awaitState("first", guest, "completed"); s.Attempt < 2 {
		f.Errorf("the guest was not preempted: %+v", s)
	}
}

// usedBy returns what roost shares says of a submitter at a host: core-seconds in that
// pool and in other pools.
func (f flockTest) usedBy(host, user, group string) (here, elsewhere float64) {
	f.Helper()
	var shares ledger.ShareReport
	out, err := f.at(host, "shares", "--json").Output()
	if err := errors.Join(err, json.Unmarshal(out, &shares)); err != nil {
		f.Fatalf("shares at %s: %v\n%s", host, err, out)
	}
	for _, s := range shares.Submitters {
		if s.User == user && s.Group == group {
			return s.CoreHours * 3600, s.CoreHoursElsewhere * 3600
		}
	}
	return 0, 0
}

// testLedgers checks that the ledgers of both pools say the same of a task of ten
// seconds. They may differ in when each of them noticed its begin and its end.
func (f flockTest) testLedgers() {
	f.Helper()
	const seconds, tolerance = 10, 4.0
	homeBefore, awayBefore := f.usedBy("first", "12345", "")
	hostBefore, _ := f.usedBy("second", "12345@chem", "peer:chem")
	f.awaitState("first", f.submitAt("first", "", fmt.Sprint("sleep ", seconds)), "completed")
	var home, away, host float64
	f.await("the end of its usage in both ledgers", func() bool {
		wasAway, wasHost := away, host
		home, away = f.usedBy("first", "12345", "")
		host, _ = f.usedBy("second", "12345@chem", "peer:chem")
		return away == wasAway && host == wasHost && away > awayBefore && host > hostBefore
	})
	home, away, host = home-homeBefore, away-awayBefore, host-hostBefore
	f.Logf("core-seconds of a task of %d s: %.1f elsewhere by the ledger at home, %.1f by that of the host", seconds,
		away, host)
	if home != 0 || away < seconds || host < seconds-tolerance || away > host+tolerance || host > away+tolerance {
		f.Errorf("core-seconds: %.1f at home and %.1f elsewhere by its own ledger, %.1f by that of the host", home,
			away, host)
	}
	if here, elsewhere := f.usedBy("second", "12345", ""); here == 0 || elsewhere != 0 {
		f.Errorf("the host's user of the same name: %.1f core-seconds, %.1f elsewhere", here, elsewhere)
	}
}

// testLeaderKilled kills the leader of the host. A running task does not notice it, and
// the next one starts.
func (f flockTest) testLeaderKilled() {
	f.Helper()
	go2 := filepath.Join(f.home, "go2")
	long := f.submitAt("first", "", "while ! test -e "+go2+"; do sleep 0.1; done")
	f.awaitState("first", long, "running")
	out, err := exec.Command("pgrep", "-f", "negotiator.*"+f.hostDirectory("second").NodeFile()).Output()
	if err != nil {
		f.Fatalf("no negotiator of the host: %v", err)
	}
	exec.Command("kill", append([]string{"-KILL"}, strings.Fields(string(out))...)...).Run()
	next := f.submitAt("first", "", "true")
	f.awaitState("first", next, "completed")
	if err := os.WriteFile(go2, nil, 0o644); err != nil {
		f.Fatal(err)
	}
	if s := f.awaitState("first", long, "completed"); s.Attempt != 1 {
		f.Errorf("the running task: %+v", s)
	}
}

// testRevoked checks that a task ends with the agreement, and is not lost.
func (f flockTest) testRevoked() {
	f.Helper()
	alive := filepath.Join(f.home, "alive")
	task := f.submitAt("first", "", "while :; do touch "+alive+"; sleep 0.1; done")
	f.awaitState("first", task, "running")
	f.mustRun("second", "peer", "revoke", "chem", "--reason", "enough", "--config",
		f.hostDirectory("second").NodeFile())
	f.await("the end of its processes", func() bool {
		info, err := os.Stat(alive)
		return err == nil && time.Since(info.ModTime()) > 3*time.Second
	})
	// It may start again when its lease has ended, and no earlier.
	// Where the host has reported that end in time, it waits already.
	s := f.stateAt("first", task)
	if hasEnded := s.State == "idle" && s.Exit.Cause != ""; s.Attempt != 1 || s.State != "running" && !hasEnded {
		f.Errorf("after the revocation: %+v", s)
	}
	waiting := f.submitAt("first", "", "true")
	var why string
	defer func() {
		if f.Failed() {
			f.Logf("it waits because:\n%s", why)
		}
	}()
	f.await("why it waits", func() bool {
		out, _ := f.at("first", "why", waiting).Output()
		why = string(out)
		return strings.Contains(why, "enough")
	})
}
