package bucket

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/internal/store"
)

// dyingObjects kills its process before or after a change of the object store.
type dyingObjects struct {
	store.Objects
	left    int // changes until then
	isAfter bool
}

func (d *dyingObjects) change(change func() error) error {
	if d.left--; d.left == 0 && !d.isAfter {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	err := change()
	if d.left == 0 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return err
}

func (d *dyingObjects) Put(ctx context.Context, name string, data []byte) error {
	return d.change(func() error { return d.Objects.Put(ctx, name, data) })
}

func (d *dyingObjects) Remove(ctx context.Context, name string) error {
	return d.change(func() error { return d.Objects.Remove(ctx, name) })
}

const (
	crashVariable = "ROOST_TEST_CRASH" // change, "before" or "after", "push" or "remove", directory, URL
	crashSeed     = 9
	crashBytes    = store.ChunkBytes + 700
)

// TestCrashChild is the process that dies in TestCrashes.
func TestCrashChild(t *testing.T) {
	args := strings.Fields(os.Getenv(crashVariable))
	if len(args) != 5 {
		return // it is a test of its own only there
	}
	objects := &dyingObjects{Objects: openBucket(t, args[4]), isAfter: args[1] == "after"}
	d := open(t, args[3], store.Options{Objects: objects})
	if args[2] == "push" {
		objects.left, _ = strconv.Atoi(args[0])
		add(t, d, randomBytes(crashSeed, crashBytes), "uid 7")
		sync(t, d)
		return
	}
	digest := add(t, d, randomBytes(crashSeed, crashBytes), "uid 7")
	sync(t, d)
	objects.left, _ = strconv.Atoi(args[0])
	if err := d.Remove(digest); err != nil {
		t.Fatal(err)
	}
	sync(t, d)
}

// runCrash runs the process until it dies, and reports whether it did.
func runCrash(t *testing.T, args ...string) (died bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), crashVariable+"="+strings.Join(args, " "), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return false
}

// TestCrashes kills the process before and after each change of the object store. A blob
// moves there, or one is removed, and the next process finishes both.
func TestCrashes(t *testing.T) {
	data := randomBytes(crashSeed, crashBytes)
	m, err := open(t, t.TempDir(), store.Options{}).Add(t.Context(), bytes.NewReader(data), "")
	if err != nil {
		t.Fatal(err)
	}
	digest := m.Digest()
	for _, what := range []string{"push", "remove"} {
		for _, when := range []string{"before", "after"} {
			died := 0
			for n := 1; ; n++ {
				s, dir := startObjects(t), t.TempDir()
				if !runCrash(t, strconv.Itoa(n), when, what, dir, s.URL) {
					break
				}
				died++
				d := open(t, dir, store.Options{Objects: s})
				if what == "push" {
					checkBlob(t, d, digest, data)
				} else if list := d.List(); len(list) != 0 {
					t.Errorf("%s change %d of a removal: it is still there: %v", when, n, list)
				}
				sync(t, d)
				d.Close()
				if names := s.names(); what == "push" && len(names) != 4 || what == "remove" && len(names) != 0 {
					t.Errorf("%s change %d of a %s: the objects are %q", when, n, what, names)
				}
				after := open(t, t.TempDir(), store.Options{Objects: s})
				sync(t, after)
				if what == "push" {
					checkBlob(t, after, digest, data)
				}
				after.Close()
			}
			if died < 4 {
				t.Errorf("%s: it died %s %d changes", what, when, died)
			}
		}
	}
}

// TestInterruptedRemoval opens directories in which a removal was noted and no more. A
// blob that the object store has goes; one that came again after the removal stays.
func TestInterruptedRemoval(t *testing.T) {
	s := startObjects(t)
	path := t.TempDir()
	d := open(t, path, store.Options{Objects: s})
	stored := add(t, d, randomBytes(1, 500), "")
	sync(t, d)
	again := add(t, d, randomBytes(2, 500), "")
	d.Close()
	for _, digest := range []store.Digest{stored, again} {
		name := strings.TrimPrefix(string(digest), "sha256:")
		if err := os.WriteFile(filepath.Join(path, "removed", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d = open(t, path, store.Options{Objects: s})
	sync(t, d)
	if list := d.List(); len(list) != 1 || list[0].Digest != again {
		t.Errorf("left: %v", list)
	}
	if names := s.names(); len(names) != 3 || !strings.HasPrefix(names[0], testObject(again, "")) {
		t.Errorf("objects: %q", names)
	}
}
