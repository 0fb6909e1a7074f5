package startd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
)

// newScriptedStartd is a place whose startd runs these scripts, which write into a log.
func newScriptedStartd(t *testing.T, prologue, epilogue string) (p *testStartd, log func() string) {
	p = newTestStartd(t)
	p.stop()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\nexec 3>>"+dir+"/log\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p.node.Startds[0].Scripts = config.AttemptScripts{Prologue: file("prologue", prologue),
		Epilogue: file("epilogue", epilogue), Within: 2 * time.Second}
	p.start()
	return p, func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "log"))
		return string(text)
	}
}

// TestScripts checks when prologue and epilogue run and what they get. The prologue runs
// before the job. The epilogue runs after it and before its end is reported. Each gets
// its arguments, and nothing of the job's environment.
func TestScripts(t *testing.T) {
	p, log := newScriptedStartd(t, `echo "prologue $# $*" >&3; env | grep -c EVIL >&3; true`,
		`echo "epilogue $# $* exit ${10} $PBS_JOBID" >&3`)
	s := p.connect("host1", 1)
	program := s.shell("exit 5")
	program.JobName, program.User, program.PbsId, program.Queue, program.Account = "a name", "ann", "7.host1",
		"short", "optics"
	program.Environment = append(program.Environment, words("EVIL=1", "LD_PRELOAD=/evil.so")...)
	program.WalltimeNs = int64(90 * time.Minute)
	if x := s.run(s.claim(), program).GetStatus(); x.GetCode() != 5 || x.GetCause() != wire.Cause_CAUSE_EXITED {
		t.Fatalf("got %v", x)
	}
	want := regexp.MustCompile(`^prologue 7 7.host1 ann \S+ a name ncpus=\S+,walltime=01:30:00 short optics
0
epilogue 10 7.host1 ann \S+ a name 0 ncpus=\S+ cput=00:00:\d\d,mem=\d+kb,walltime=00:00:\d\d short optics 5 exit 5 7.host1
$`)
	if got := log(); !want.MatchString(got) {
		t.Errorf("got %q", got)
	}
}

// TestPrologueFails checks what a failed prologue means. Exit status 1 refuses the job.
// Any other status, or no end in time, refuses its machine. The epilogue runs in each
// case.
func TestPrologueFails(t *testing.T) {
	for _, test := range []struct {
		name, prologue string
		cause          wire.Cause
		reason         string
	}{
		{"refused", "echo no licence; exit 1", wire.Cause_CAUSE_REFUSED,
			"the machine's prologue refused the job: no licence"},
		{"failed", "echo disk; exit 2", wire.Cause_CAUSE_MACHINE,
			"the machine's prologue has failed: exit status 2: disk"},
		{"slow", "echo first; sleep 60 & sleep 60", wire.Cause_CAUSE_MACHINE, "was not done in 2s: first"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, log := newScriptedStartd(t, test.prologue, "echo epilogue >&3")
			s := p.connect("host1", 1)
			x := s.run(s.claim(), s.shell("echo ran")).GetStatus()
			if x.GetCause() != test.cause || !strings.Contains(x.GetReason(), test.reason) {
				t.Errorf("got %v", x)
			}
			if got := log(); got != "epilogue\n" {
				t.Errorf("log: %q", got)
			}
		})
	}
}

// TestEpilogueAfterRestart: also a job that has ended while there was no startd has its
// epilogue, once.
func TestEpilogueAfterRestart(t *testing.T) {
	p, log := newScriptedStartd(t, "true", "echo epilogue >&3")
	s := p.connect("host1", 1)
	a := s.activate(s.claim(), s.shell("sleep 0.3; exit 3"), false)
	s.awaitStarted(a)
	p.kill()
	p.start()
	s = p.connect("host1", 2)
	x := s.awaitExit(a)
	if x.GetStatus().GetCode() != 3 || log() != "epilogue\n" {
		t.Errorf("got %v, log %q", x.GetStatus(), log())
	}
}

// TestScriptsOfUsers checks whose rights prologue and epilogue have.
func TestScriptsOfUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP: only root can run scripts of others")
	}
	for name, want := range map[string]string{
		"":       "0:0:0 0:0:0",
		"nobody": "65534:65534:65534 65534:65534:65534",
		"job":    "4242:4242:4242 4242:4242:4242",
	} {
		t.Run("user "+name, func(t *testing.T) {
			p, _ := newScriptedStartd(t, "", "")
			p.stop()
			dir, err := os.MkdirTemp("", "roost-scripts") // others may enter it, unlike t.TempDir
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			os.Chmod(dir, 0o755)
			file, log := filepath.Join(dir, "script"), filepath.Join(dir, "log")
			text := "#!/bin/sh\necho $(id -u):$(id -g):$(id -G | tr ' ' ,) >> " + log + "\n"
			if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			os.WriteFile(log, nil, 0o666)
			os.Chmod(log, 0o666)
			p.node.Startds[0].Scripts = config.AttemptScripts{Prologue: file, Epilogue: file, Within: 10 * time.Second,
				User: name}
			p.start()
			s := p.connect("host1", 1)
			s.uid = 4242
			if x := s.run(s.claim(), s.shell("true")).GetStatus(); x.GetCause() != wire.Cause_CAUSE_EXITED {
				t.Fatalf("got %v", x)
			}
			got, _ := os.ReadFile(log)
			if strings.Join(strings.Fields(string(got)), " ") != want {
				t.Errorf("the scripts ran as %q, want %q", got, want)
			}
		})
	}
}

// TestUnknownScriptUser checks that a startd does not begin with scripts that it could
// run for nobody.
func TestUnknownScriptUser(t *testing.T) {
	own := &config.StartdSettings{Name: "n1", Dir: t.TempDir(),
		Scripts: config.AttemptScripts{Prologue: "/bin/true", User: "no-such-user"}}
	_, err := claim.OpenScripts(own, slog.New(slog.DiscardHandler))
	if !errors.Is(err, roost.BadConfig) || !strings.Contains(err.Error(), "no-such-user") {
		t.Errorf("got %v", err)
	}
}

// TestScriptLeftByKill checks that what a prologue has begun ends when the startd that
// was killed during it starts again.
func TestScriptLeftByKill(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("SKIP: there is no setsid")
	}
	p, log := newScriptedStartd(t, `setsid sh -c 'echo $$ >&3; exec sleep 1000' & sleep 1000`, "true")
	p.node.Startds[0].Scripts.Within = time.Hour
	p.stop()
	p.start()
	s := p.connect("host1", 1)
	s.activate(s.claim(), s.shell("true"), false)
	pid := 0
	for end := time.Now().Add(20 * time.Second); pid == 0 && time.Now().Before(end); runtime.Gosched() {
		pid, _ = strconv.Atoi(strings.TrimSpace(log()))
	}
	if pid == 0 {
		t.Fatal("the prologue was not begun")
	}
	p.kill()
	p.start()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil && !strings.Contains(string(text), ") Z ") {
		syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("process %d of the prologue lives on: %s", pid, text)
	}
}
