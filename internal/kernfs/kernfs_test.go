package kernfs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/kernfs"
)

// openFIFO makes a fifo and opens both of its ends. Like a control file it can be polled,
// and returns EAGAIN if there is nothing to read, or no room.
func openFIFO(t *testing.T) (path string, fd int) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "control")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return path, fd
}

// returnsSoon fails the test if a call does not return.
func returnsSoon(t *testing.T, call func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
	return nil
}

func TestWriteComesBackWithEAGAIN(t *testing.T) {
	path, fd := openFIFO(t)
	for full := make([]byte, 4096); ; {
		if _, err := unix.Write(fd, full); err == unix.EAGAIN {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	err := returnsSoon(t, func() error { return kernfs.WriteFile(path, []byte("1")) })
	if !errors.Is(err, unix.EAGAIN) {
		t.Errorf("got %v, want EAGAIN", err)
	}
}

func TestReadComesBackWithEAGAIN(t *testing.T) {
	path, _ := openFIFO(t)
	err := returnsSoon(t, func() error { _, err := kernfs.ReadFile(path); return err })
	if !errors.Is(err, unix.EAGAIN) {
		t.Errorf("got %v, want EAGAIN", err)
	}
}

func TestReadAndWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := kernfs.WriteFile(path, []byte("1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: got %v", err)
	}
	if _, err := kernfs.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: got %v", err)
	}
	long := bytes.Repeat([]byte("line\n"), 10_000)
	if err := os.WriteFile(path, long, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := kernfs.ReadFile(path); err != nil || !bytes.Equal(got, long) {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(long))
	}
	if err := kernfs.WriteFile(path, []byte("LINE")); err != nil {
		t.Error(err)
	}
	if got, _ := kernfs.ReadFile(path); !bytes.HasPrefix(got, []byte("LINE\nline\n")) || len(got) != len(long) {
		t.Errorf("after a write: %d bytes, %.10q", len(got), got)
	}
}
