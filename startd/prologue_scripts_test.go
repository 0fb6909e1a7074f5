package startd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
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
