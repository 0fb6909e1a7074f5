package localpbs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// newLocalApp returns the program for the pool in dir and a home directory. Exec writes
// what is handed to roost into passed.
func newLocalApp(t *testing.T, dir, home string) (a *frame.App, stdout, stderr *bytes.Buffer, passed *string) {
	stdout, stderr, passed = &bytes.Buffer{}, &bytes.Buffer{}, new(string)
	a = New(strings.NewReader("#PBS -N hello\necho hello\n"), stdout, stderr,
		[]string{"ROOST_DIR=" + dir, "HOME=" + home, "PATH=/usr/bin:/bin"})
	a.Dir = t.TempDir()
	a.Exec = func(program string, line []string) error {
		if program == frame.MainProgram {
			*passed = strings.Join(line, " ")
		}
		return nil
	}
	return a, stdout, stderr, passed
}

// TestPassOn checks which command lines the program hands on, with all of the line and
// nothing printed.
func TestPassOn(t *testing.T) {
	f := &clitest.FakeSchedd{}
	dir := f.Serve(t)
	for line, passesOn := range map[string]bool{
		"/x/qstat": false, "qstat": false, "qdel --version": false, "qhold 70": false, "qselect": false,
		"qsub --help": false, "qstat roost": false, "squeue --version": false, "/x/sacct -V": false, "sinfo -V": false,
		"sattach -V": true,
		"roost-q":    true, "roost-q --version": true, "roost-q qstat": true, "roost --help": true, "roost jobs": true,
		"/x/pbsnodes --version": true, "qmgr -c list": true, "jobs": true,
	} {
		a, stdout, stderr, passed := newLocalApp(t, dir, t.TempDir())
		Run(t.Context(), a, strings.Fields(line))
		if got := *passed != ""; got != passesOn || passesOn && (*passed != line || stdout.Len()+stderr.Len() > 0) {
			t.Errorf("%s: passed on %q, stdout %q, stderr %q", line, *passed, stdout, stderr)
		}
	}
}

// TestLoginsNeedAll checks that users with a login get the program that reaches other
// nodes. So do those without a schedd here.
func TestLoginsNeedAll(t *testing.T) {
	f := &clitest.FakeSchedd{}
	dir, home := f.Serve(t), t.TempDir()
	logins := filepath.Join(home, ".config", "roost", "logins")
	if err := os.MkdirAll(logins, 0o700); err != nil {
		t.Fatal(err)
	}
	a, stdout, stderr, passed := newLocalApp(t, dir, home)
	if code := Run(t.Context(), a, []string{"qsub"}); code != 0 || *passed != "" || stdout.String() != "70.pool\n" {
		t.Errorf("exit status %d, passed on %q, stdout %q, stderr %q", code, *passed, stdout, stderr)
	}
	if n := len(f.Submitted); n != 1 || !strings.Contains(f.Submitted[0].GetJobs()[0].GetAd(), `"hello"`) {
		t.Errorf("%d submits: %v", n, f.Submitted)
	}
	if err := os.WriteFile(filepath.Join(logins, "n2.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{dir, t.TempDir()} {
		for _, line := range []string{"qsub x.sh", "qstat", "qdel 7.n2", "qhold 7"} {
			a, _, _, passed := newLocalApp(t, place, home)
			if Run(t.Context(), a, strings.Fields(line)); *passed != line {
				t.Errorf("%s: passed on %q", line, *passed)
			}
		}
	}
	if n := len(f.Submitted); n != 1 {
		t.Errorf("%d submits", n)
	}
}

// TestScriptWithoutTerminal checks that an interactive script on standard input is
// refused here. The program roost could not read it again.
func TestScriptWithoutTerminal(t *testing.T) {
	f := &clitest.FakeSchedd{}
	a, _, stderr, passed := newLocalApp(t, f.Serve(t), t.TempDir())
	a.Stdin = strings.NewReader("#PBS -I\n")
	if code := Run(t.Context(), a, []string{"qsub"}); code != 1 || *passed != "" || len(f.Submitted) > 0 ||
		!strings.Contains(stderr.String(), "must be a terminal") {
		t.Errorf("exit status %d, passed on %q, %d submits, stderr %q", code, *passed, len(f.Submitted), stderr)
	}
}
