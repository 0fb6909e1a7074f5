package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// ownState is a job whose program saves its own state, and finds it when it is started
// again.
const ownState = `job "own" {
  script   = "if [ -e state/n ]; then echo found it; exit 0; fi; trap 'mkdir state; echo 1 > state/n; exit 85' USR2; echo up; while :; do sleep 0.05; done"
  transfer = "always"
  memory   = "64MiB"
  checkpoint {
    method    = "self"
    signal    = "USR2"
    exit_code = 85
    files     = ["state"]
  }
}
`

func twoNodes() []config.StartdSettings {
	r := roost.Resources{CPU: 2000, Memory: roost.GiB, Disk: roost.GiB}
	return []config.StartdSettings{{Name: "n1", Resources: r}, {Name: "n2", Resources: r}}
}

// storedImages lists the images below a directory.
func storedImages(t *testing.T, dir string) (files []string) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && (d.Name() == ".blobs" || d.Name() == ".packages") { // container images
			return filepath.SkipDir
		}
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return nil
	})
	return files
}

// awaitNoImages waits until no image is stored.
func awaitNoImages(t *testing.T, dir string) {
	t.Helper()
	if !pollUntil(t.Context(), awaitTimeout, func() bool { return len(storedImages(t, dir)) == 0 }) {
		t.Fatalf("there are still %q", storedImages(t, dir))
	}
}

// mustRun runs a command that must succeed.
func (p *Pool) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := p.Command(t.Context(), args...)
	if code != 0 {
		t.Fatalf("roost %s ended with %d: %s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// vacateAndResume runs ownState and vacates it. It returns a function that lets the task
// complete.
func (p *Pool) vacateAndResume(t *testing.T) (finish func()) {
	t.Helper()
	file := filepath.Join(openDir(t), "own.hcl")
	if err := os.WriteFile(file, []byte(ownState), 0o644); err != nil {
		t.Fatal(err)
	}
	p.mustRun(t, "submit", file)
	p.awaitOutput(t, "up", "logs", "@own")
	p.mustRun(t, "hold", "@own")
	p.awaitOutput(t, "held", "jobs", "@own")
	return func() {
		p.mustRun(t, "release", "@own")
		p.awaitSuccess(t, "own")
		if got := p.mustRun(t, "logs", "@own"); got != "up\nfound it\n" {
			t.Errorf("it printed %q", got)
		}
	}
}

// TestCheckpointServer checks that images go to the server and not to the submit node.
// Tasks resume from there on another machine, and the images are removed in the end.
func TestCheckpointServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	p := nodePool(t, &config.Node{Images: &config.CheckpointServerSettings{}, Startds: twoNodes()})
	images, spool := filepath.Join(p.Dir, "checkpoint-server"), filepath.Join(p.Dir, "schedd", "checkpoints")
	finish := p.vacateAndResume(t)
	if here, there := storedImages(t, images), storedImages(t, spool); len(here) != 1 || len(there) != 0 {
		t.Fatalf("the server has %q, and the submit node %q", here, there)
	}
	finish()
	awaitNoImages(t, images)

	end := p.sleepersOf(t, "dumped", "")
	p.awaitOutput(t, "  started  ", "show", "@dumped")
	if stdout, _, code := p.Command(t.Context(), "checkpoint", "@dumped"); code != 0 {
		end()
		t.Skipf("SKIP: this machine takes no checkpoints of processes: %s", stdout)
	}
	if here := storedImages(t, images); len(here) != 1 {
		t.Fatalf("the server has %q", here)
	}
	p.killStarters(t)
	p.awaitOutput(t, "\n2        n", "show", "@dumped")
	end()
	p.awaitSuccess(t, "dumped")
	if got := p.mustRun(t, "show", "@dumped"); !strings.Contains(got, "checkpoint 1 of attempt 1") {
		t.Errorf("it did not go on from its image:\n%s", got)
	}
	awaitNoImages(t, images)
}

// TestNoCheckpointServer checks that without a reachable server images go to the submit
// node, and that this is logged.
func TestNoCheckpointServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	p := nodePool(t, &config.Node{ImageServer: "unix:/var/tmp/roost-no-such-server.sock", Startds: twoNodes()})
	spool := filepath.Join(p.Dir, "schedd", "checkpoints")
	finish := p.vacateAndResume(t)
	if got := storedImages(t, spool); len(got) != 1 {
		t.Fatalf("the submit node has %q", got)
	}
	var logs strings.Builder
	for _, name := range []string{"n1", "n2"} {
		text, err := os.ReadFile(filepath.Join(p.Dir, "log", "startd-"+name+".log"))
		if err != nil {
			t.Fatal(err)
		}
		logs.Write(text)
	}
	if !strings.Contains(logs.String(), "the checkpoint server did not take an image") {
		t.Errorf("the logs say nothing of it:\n%s", logs.String())
	}
	finish()
	awaitNoImages(t, spool)
}

// killStarters kills the pool's starters that have a task, as a failing machine does.
func (p *Pool) killStarters(t *testing.T) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		args, _ := os.ReadFile(file)
		if !strings.Contains(string(args), "roost-starter") || !strings.Contains(string(args), p.Dir) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
