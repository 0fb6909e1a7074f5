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

// programDir is the directory of the programs under test, which every user can enter.
var programDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("/var/tmp", "roost-programs-") // tasks have a /tmp of their own
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	return dir, err
})

// The programs as users have them, and those that can misbehave. They are built when the
// first test asks for them: the linker takes three seconds of a core, and each set of
// tags a compilation of all daemons.
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

// program returns the path of roost, built with at least these tags; roost-starter lies
// beside it.
func program(t *testing.T, tags ...string) string {
	t.Helper()
	build := builtPrograms
	if len(tags) > 0 { // it does what its environment says (internal/attack, internal/failpoint), and nothing without
		build = misbehavingPrograms
	}
	roost, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return roost
}

// runInProcess runs a roost command that only reads, in this process and with its rights.
// Polls start no program so, which would take 15 ms of a core.
func runInProcess(ctx context.Context, env []string, args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = cli.New(strings.NewReader(""), &out, &errs, env).Run(ctx, args)
	return out.String(), errs.String(), code
}

// pollUntil asks until something is so, or the limit has passed, and reports whether it
// is. Between two questions it rests for three times as long as one took, so that polls
// leave most of a busy machine to what they wait for.
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

// How long a poll rests between two questions.
const (
	shortestRest = 20 * time.Millisecond
	longestRest  = 300 * time.Millisecond
)
