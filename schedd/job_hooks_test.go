package schedd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// hookedPool is a pool whose schedd runs hooks, which write below log.
type hookedPool struct {
	*testPool
	log string
}

// newHookedPool starts a pool whose hooks are shell scripts. Their files are in $log.
func newHookedPool(t *testing.T, start, end string) *hookedPool {
	t.Helper()
	p := &hookedPool{testPool: newPool(t)}
	p.stop()
	p.log = filepath.Join(p.node.Dir, "log") // the hooks are nobody's, and may write there only
	if err := os.Mkdir(p.log, 0o777); err != nil {
		t.Fatal(err)
	}
	os.Chmod(p.log, 0o777)
	p.node.Schedd.Hooks = config.JobHooks{Start: p.hook("start", start), End: p.hook("end", end),
		Timeout: 30 * time.Second, AtOnce: 2, User: "nobody"}
	p.start()
	return p
}

// hook writes a hook; the empty text is none.
func (p *hookedPool) hook(name, text string) (path string) {
	p.Helper()
	if text == "" {
		return ""
	}
	path = filepath.Join(p.node.Dir, "hook-"+name)
	text = fmt.Sprintf("#!/bin/sh\nlog=%s\n%s\n", p.log, text)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		p.Fatal(err)
	}
	return path
}

// awaitFile waits for a file below log that has a text, and returns all of it.
func (p *hookedPool) awaitFile(name, has string) string {
	p.Helper()
	var text []byte
	for end := time.Now().Add(time.Minute); time.Now().Before(end); syscall.Select(0, nil, nil, nil,
		&syscall.Timeval{Usec: 10_000}) {
		if text, _ = os.ReadFile(filepath.Join(p.log, name)); strings.Contains(string(text), has) {
			return string(text)
		}
	}
	p.Fatalf("%s has %q, want %q", name, text, has)
	return ""
}

// run has the next attempt start and succeed.
func (p *hookedPool) run(what string) *wire.Activate {
	p.Helper()
	a := receiveNext(p, p.startd.activated, what)
	p.startd.started(a.GetAttempt())
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Wall: int64(3 * time.Second)}, "")
	return a
}

// TestHooksSee checks what the hooks are told of a job that runs, and whose rights they
// have.
func TestHooksSee(t *testing.T) {
	p := newHookedPool(t, `cat >$log/start.tmp; id -u >$log/uid; mv $log/start.tmp $log/start`,
		`cat >$log/end.tmp; mv $log/end.tmp $log/end`)
	p.submit("k", 1, `JobName = "a \" name"; Queue = "short"`)
	p.run("the attempt")
	var start, end map[string]any
	for name, into := range map[string]*map[string]any{"start": &start, "end": &end} {
		if err := json.Unmarshal([]byte(p.awaitFile(name, "}")), into); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []map[string]any{start, end} {
		for key, want := range map[string]any{"version": 1., "node": hostName, "attempt": 1., "machine": nodeName,
			"name": `a " name`, "job": "1." + hostName, "task": "1." + hostName, "uid": float64(os.Getuid())} {
			if d[key] != want {
				t.Errorf("%v: %s is %v, want %v", d["event"], key, d[key], want)
			}
		}
	}
	if ad, _ := start["ad"].(map[string]any); ad["Cmd"] != "/bin/true" {
		t.Errorf("the ad is %v", start["ad"])
	}
	exit, _ := end["exit"].(map[string]any)
	if exit["cause"] != "exited" || exit["wall_seconds"] != 3. || end["state"] != "completed" {
		t.Errorf("the end is %v", end)
	}
	if uid, _ := os.ReadFile(p.log + "/uid"); os.Getuid() == 0 && string(uid) != "65534\n" {
		t.Errorf("it ran as %s", uid)
	}
}

// TestStartHookDecides checks that a start hook can refuse a task and hold it. Nothing of
// that reaches the machine.
func TestStartHookDecides(t *testing.T) {
	p := newHookedPool(t, `case $(cat) in
*'"name":"refused"'*) echo "no licence is left" >&2; exit 1;;
*'"name":"held"'*) [ -e $log/open ] || { echo "the project is closed"; exit 2; };;
*'"name":"flood"'*) head -c 30000000 /dev/zero | tr '\0' x; exit 1;;
esac`, `cat >>$log/ends; echo >>$log/ends`)
	refused := p.submit("k1", 1, `JobName = "refused"; Rerunnable = false`).GetIds()[0]
	st := p.await(refused, "completed 1 failed 1")
	if st.GetExit().GetCause() != wire.Cause_CAUSE_REFUSED ||
		!strings.Contains(st.GetExit().GetReason(), "the start hook of "+hostName+" refused it: no licence is left") {
		t.Errorf("refused: %v", st)
	}
	held := p.submit("k2", 1, `JobName = "held"; Rerunnable = false`).GetIds()[0]
	if st := p.await(held, "held 1"); !strings.Contains(st.GetReason(), "the project is closed") {
		t.Errorf("held: %v", st)
	}
	why, err := p.client.Why(p.ctx(), &wire.WhyRequest{Id: held})
	if err != nil || !strings.Contains(why.GetSummary()+strings.Join(why.GetAdvice(), " "), "the project is closed") {
		t.Errorf("why: %v, %v", why, err)
	}
	flood := p.await(p.submit("k3", 1, `JobName = "flood"`).GetIds()[0], "completed 1 failed 1")
	if n := len(flood.GetExit().GetReason()); n < 1000 || n > 1200 {
		t.Errorf("the reason has %d bytes", n)
	}
	p.awaitFile("ends", `"state":"held"`)
	if err := os.WriteFile(p.log+"/open", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := p.act(wire.ActRequest_RELEASE, held); r.GetError() != "" {
		t.Fatal(r)
	}
	if a := p.run("the attempt of the job that was released"); a.GetAttempt().GetAttempt() != 2 {
		t.Errorf("got %v", a)
	}
	p.await(held, "completed 1")
	select {
	case a := <-p.startd.activated:
		t.Errorf("also started: %v", a)
	default:
	}
}

// TestHangingStartHook checks that nothing waits for a hook that hangs. Its processes end
// when the job is removed.
func TestHangingStartHook(t *testing.T) {
	p := newHookedPool(t, `trap '' TERM; echo $$ >$log/pid; while :; do sleep 1000; done`, `cat >>$log/ends`)
	id := p.submit("k1", 1, "").GetIds()[0]
	var pid int
	fmt.Sscan(p.awaitFile("pid", "\n"), &pid)
	p.await(id, "starting 1")
	why, err := p.client.Why(p.ctx(), &wire.WhyRequest{Id: id})
	if err != nil || !strings.Contains(why.GetSummary(), "waits for the start hook of the site") {
		t.Errorf("why: %v, %v", why, err)
	}
	other := p.submit("k2", 1, "HoldOnSubmit = true").GetIds()[0]
	p.await(other, "held 1")
	if r := p.act(wire.ActRequest_REMOVE, id); r.GetError() != "" {
		t.Fatal(r)
	}
	p.await(id, "removed 1")
	p.awaitFile("ends", `"state":"removed"`)
	if syscall.Kill(pid, 0) == nil {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if !strings.Contains(string(text), ") Z ") && len(text) > 0 {
			t.Errorf("the hook lives on: %s", text)
		}
	}
	select {
	case v := <-p.startd.vacated:
		t.Errorf("the machine was told to end what it never got: %v", v)
	default:
	}
}

// TestFailingStartHook checks that a hook that fails once is run again. The job loses
// nothing, though it may not be run twice.
func TestFailingStartHook(t *testing.T) {
	p := newHookedPool(t, `cat >/dev/null; [ -e $log/once ] && exit 0; : >$log/once; kill -9 $$`, "")
	id := p.submit("k1", 1, "Rerunnable = false").GetIds()[0]
	if a := p.run("the attempt"); a.GetAttempt().GetAttempt() != 1 {
		t.Errorf("got %v", a)
	}
	p.await(id, "completed 1")
}

// TestHooksAtOnce checks that no more hooks run than may, however many tasks start.
func TestHooksAtOnce(t *testing.T) {
	p := newHookedPool(t, `cat >/dev/null; d=$log/run.$$; mkdir $d; set -- $log/run.*; echo $# >>$log/counts
sleep 0.05; rmdir $d`, "")
	const tasks = 12
	p.submit("k1", tasks, "")
	for range tasks {
		p.run("an attempt")
	}
	for line := range strings.Lines(p.awaitFile("counts", "1")) {
		if n := strings.TrimSpace(line); n != "1" && n != "2" {
			t.Errorf("%s ran at once, 2 may", n)
		}
	}
}

// TestEndHookAfterRestart checks that an end hook is run after a restart of the schedd,
// if it was not done before.
func TestEndHookAfterRestart(t *testing.T) {
	p := newHookedPool(t, "", `cat >/dev/null; echo begun >>$log/begun; [ -e $log/good ] || sleep 1000; echo $1 >>$log/done`)
	p.submit("k1", 1, "")
	p.run("the attempt")
	p.awaitFile("begun", "begun\n")
	p.stop()
	if text, err := os.ReadFile(p.log + "/done"); err == nil {
		t.Fatalf("it was done: %s", text)
	}
	if err := os.WriteFile(p.log+"/good", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.start()
	if got := p.awaitFile("done", "end\n"); got != "end\n" {
		t.Errorf("got %q", got)
	}
}

// TestRestartDuringStartHook checks that no job is lost when the schedd ends while its
// start hook runs. It was not run, so it may not be run twice and still is run.
func TestRestartDuringStartHook(t *testing.T) {
	p := newHookedPool(t, `cat >/dev/null; echo begun >>$log/begun; [ -e $log/good ] || sleep 1000`, "")
	id := p.submit("k1", 1, "Rerunnable = false").GetIds()[0]
	p.awaitFile("begun", "begun\n")
	p.stop()
	if err := os.WriteFile(p.log+"/good", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.startd.setReportedClaims(&wire.ClaimState{Claim: 1, Grant: 1, Epoch: 1})
	p.start()
	if a := p.run("another attempt"); a.GetAttempt().GetAttempt() != 2 {
		t.Errorf("got %v", a)
	}
	p.await(id, "completed 1")
}

// BenchmarkWithoutHooks measures what each start and end costs where the site has no
// hooks.
func BenchmarkWithoutHooks(b *testing.B) {
	s, ended := &Schedd{}, queue.JobEvent{Type: queue.Ended}
	b.ReportAllocs()
	for b.Loop() {
		if holdForHook(s, dispatch.ActivateClaim{}) {
			b.Fatal("it is held")
		}
		noteHookEnd(s, &ended, endingNode(s, &ended))
	}
}
