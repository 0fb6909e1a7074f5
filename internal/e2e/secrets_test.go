package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/checkpoint/criu"
)

// secretPool is a pool whose task writes digests of its secret, and of nothing else.
type secretPool struct {
	*testing.T
	ctx    context.Context
	pool   *Pool
	dir    string
	values [][]byte
}

// TestSecrets gives a task a secret, and new versions of it: before and after its daemons
// are killed. The bytes of no version are in any file of the pool, and in no process's
// arguments or environment.
func TestSecrets(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: secrets are NOT tested as a whole: sandboxes need root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dir, pool := openDir(t), smallPool(t)
	s := &secretPool{T: t, ctx: ctx, pool: pool, dir: dir}
	s.setSecret()
	id := strings.TrimSpace(s.must("submit", s.jobFile("db")))
	s.awaitDigest()
	s.setSecret()
	s.awaitDigest()
	s.killDaemons()
	s.setSecret()
	s.awaitDigest()
	if got := len(strings.Fields(s.digests())); got != len(s.values) {
		s.Errorf("the task was told %d times of %d versions:\n%s", got, len(s.values), s.digests())
	}
	s.restoreTask(id)
	s.searchValues()
	s.must("rm", id)
	missing := strings.TrimSpace(s.must("submit", s.jobFile("nix")))
	s.awaitTrue("a job without its secret is held", func() bool {
		return strings.Contains(s.must("why", missing), "roost secret set nix")
	})
	s.must("rm", missing)
}

// restoreTask has the task saved, sets another version meanwhile, and has it restored. It
// goes on, and its file has that version.
func (s *secretPool) restoreTask(id string) {
	s.Helper()
	if _, err := criu.Find(""); err != nil {
		s.Logf("SKIPPED: no task with secrets is restored: %v", err)
		return
	}
	s.must("hold", id)
	s.awaitTrue("the task is saved and held", func() bool {
		return strings.Contains(s.must("jobs", "--json", id), `"held"`)
	})
	s.setSecret()
	s.must("release", id)
	s.awaitTrue("the task runs again", func() bool {
		return strings.Contains(s.must("jobs", "--json", id), `"running"`)
	})
	var sent time.Time
	s.awaitTrue(fmt.Sprintf("the task has version %d", len(s.values)), func() bool {
		if time.Since(sent) > signalAgain { // a signal is not repeated when its session or its attempt ends
			s.must("qsig", "-s", "HUP", id)
			sent = time.Now()
		}
		return s.hasDigest()
	})
	if got := len(strings.Fields(s.digests())); got != len(s.values) {
		s.Errorf("it began anew, or was told twice: %d times of %d versions:\n%s", got, len(s.values), s.digests())
	}
}

// signalAgain is after how long the task is sent its signal again.
const signalAgain = 20 * time.Second

func (s *secretPool) must(args ...string) string {
	s.Helper()
	stdout, stderr, code := s.pool.Command(s.ctx, args...)
	if code != 0 {
		s.Fatalf("roost %s: %d, %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

func (s *secretPool) awaitTrue(what string, ok func() bool) {
	s.Helper()
	for !ok() {
		select {
		case <-s.ctx.Done():
			report, _, _ := s.pool.Command(context.Background(), "show", "last")
			s.Fatalf("%s: it never was so; the versions that the task has read, as digests:\n%s%s%s", what, s.digests(),
				report, s.pool.Output())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// setSecret gives the secret a new random value. A leader that has just been started
// anew may not answer yet.
func (s *secretPool) setSecret() {
	s.Helper()
	value := []byte(rand.Text())
	s.awaitTrue("the secret is set", func() bool {
		cmd := exec.CommandContext(s.ctx, s.pool.Roost, "secret", "set", "db")
		cmd.Env = append(os.Environ(), "ROOST_DIR="+s.pool.Dir)
		cmd.Stdin = bytes.NewReader(value)
		return cmd.Run() == nil
	})
	s.values = append(s.values, value)
}

// jobFile writes a job that appends the digest of its secret to a file. It does so at its
// start, and whenever the secret has a new version.
func (s *secretPool) jobFile(secret string) string {
	path := filepath.Join(s.dir, secret+".hcl")
	text := fmt.Sprintf(`job "digests" {
  script = <<-EOT
    told() { sha256sum </run/secrets/%[1]s | cut -d' ' -f1 >>%[2]s/digests; }
    trap told HUP
    told
    while :; do sleep 0.1 & wait; done
  EOT
  secret %[1]q {
    on_change = "signal"
    signal    = "HUP"
  }
}
`, secret, s.dir)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

func (s *secretPool) digests() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "digests"))
	return string(text)
}

// awaitDigest waits until the task has read the present value.
func (s *secretPool) awaitDigest() {
	s.Helper()
	s.awaitTrue(fmt.Sprintf("the task has version %d", len(s.values)), s.hasDigest)
}

// hasDigest reports whether the task has read the present value.
func (s *secretPool) hasDigest() bool {
	return strings.HasSuffix(s.digests(), fmt.Sprintf("%x\n", sha256.Sum256(s.values[len(s.values)-1])))
}

// killDaemons kills all daemons at once. Their master starts them again, and the task
// goes on.
func (s *secretPool) killDaemons() {
	s.Helper()
	before, err := s.pool.State()
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range before.Daemons {
		syscall.Kill(d.PID, syscall.SIGKILL)
	}
	s.awaitTrue("all daemons are back", func() bool {
		now, err := s.pool.State()
		if err != nil || !now.Ready || len(now.Daemons) != len(before.Daemons) {
			return false
		}
		for i, d := range now.Daemons {
			if !d.Ready || d.PID == before.Daemons[i].PID {
				return false
			}
		}
		return true
	})
}

// searchValues looks for the bytes of all versions where they must not be.
func (s *secretPool) searchValues() {
	s.Helper()
	files := 0
	search := func(path string) {
		text, err := os.ReadFile(path)
		for i, v := range s.values {
			if err == nil && bytes.Contains(text, v) {
				s.Errorf("%s has version %d in the clear", path, i+1)
			}
		}
		files++
	}
	filepath.WalkDir(s.pool.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			search(path)
		}
		return nil
	})
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		search(p + "/environ")
		search(p + "/cmdline")
	}
	if files < 20 {
		s.Errorf("only %d files were searched", files)
	}
}
