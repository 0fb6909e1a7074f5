package e2e

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cli"
)

// TestMain removes the programs that tests have built. A shell that runs the tests in the
// background has them ignore Ctrl-C, and all programs that they start would do so, too.
func TestMain(m *testing.M) {
	if signal.Ignored(os.Interrupt) {
		interrupts := make(chan os.Signal, 1) // nobody reads it, which ignores them here
		signal.Notify(interrupts, os.Interrupt)
	}
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
// needs them, as linking takes three seconds of a core.
var (
	builtPrograms       = sync.OnceValues(buildNormal)
	misbehavingPrograms = sync.OnceValues(buildMisbehaving)
)

func buildNormal() (string, error) {
	dir, err := makeProgramDir("normal")
	if err != nil {
		return "", err
	}
	return Build(context.Background(), dir)
}

// buildMisbehaving builds the daemons with attacks and faults. The programs without any
// are those of the normal set.
func buildMisbehaving() (string, error) {
	normal, err := builtPrograms()
	if err != nil {
		return "", err
	}
	dir, err := makeProgramDir("misbehaving")
	if err != nil {
		return "", err
	}
	for _, program := range []string{"roost", "roost-q", "roost-sim", "roost-web"} {
		if err := os.Link(filepath.Join(filepath.Dir(normal), program), filepath.Join(dir, program)); err != nil {
			return "", err
		}
	}
	ctx, tags := context.Background(), []string{"attacks", "faults"}
	err = compile(ctx, dir, true, true, tags, "roost-accountant", "roost-daemon", "roost-negotiator", "roost-node")
	if err == nil {
		err = compile(ctx, dir, false, true, tags, "roost-starter", "roost-ranks")
	}
	return filepath.Join(dir, "roost"), err
}

func makeProgramDir(name string) (string, error) {
	dir, err := programDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, name)
	return dir, os.Mkdir(dir, 0o755)
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
// Between two polls it rests for six times as long as one took, so most of a busy machine
// is left to what it waits for, and to the other tests that wait.
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
		waitReal(ctx, min(max(6*time.Since(began), shortestRest), longestRest))
	}
}

// How long pollUntil rests between two polls.
const (
	shortestRest = 40 * time.Millisecond
	longestRest  = 500 * time.Millisecond
)
