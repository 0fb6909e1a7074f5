package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cli"
)

// TestMain removes the programs that tests have built.
func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := programDir(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// programDir returns the directory of the tested programs, which every user can enter.
var programDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("/var/tmp", "roost-programs-") // tasks have a private /tmp
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	return dir, err
})

// The normal programs, and those that can misbehave. They are built when the first test
// needs them: linking takes three seconds of a core, and each set of tags a compilation
// of all daemons.
var (
	builtPrograms       = buildOnce()
	misbehavingPrograms = buildOnce("attacks", "faults")
)

func buildOnce(tags ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := programDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(dir, "tags-"+strings.Join(tags, "-"))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "", err
		}
		return Build(context.Background(), dir, tags...)
	})
}

// program returns the path of roost, built with at least these tags; roost-starter is
// beside it.
func program(t *testing.T, tags ...string) string {
	t.Helper()
	build := builtPrograms
	if len(tags) > 0 { // they misbehave only as their environment says (internal/attack, internal/failpoint)
		build = misbehavingPrograms
	}
	roost, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return roost
}

// runInProcess runs a roost command that only reads, in this process and with its rights.
// Polling this way starts no program, which would take 15 ms of a core.
func runInProcess(ctx context.Context, env []string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = cli.New(strings.NewReader(""), &out, &errs, env, nil).Run(ctx, args)
	return out.String(), errs.String(), code
}

// pollUntil polls until a condition is true or the limit has passed, and reports which.
// Between two polls it rests for three times as long as one took, so most of a busy
// machine is left to what it waits for.
func pollUntil(ctx context.Context, limit time.Duration, is func() bool) bool {
	late := time.Now().Add(limit)
	for {
		began := time.Now()
		if is() {
			return true
		}
		if ctx.Err() != nil || began.After(late) {
			return false
		}
		waitReal(ctx, min(max(3*time.Since(began), shortestRest), longestRest))
	}
}

// How long pollUntil rests between two polls.
const (
	shortestRest = 20 * time.Millisecond
	longestRest  = 300 * time.Millisecond
)
