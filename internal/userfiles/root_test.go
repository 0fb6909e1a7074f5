package userfiles

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

const nobody = 65534

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can act as another user")
	}
}

func TestAgentOfAnotherUser(t *testing.T) {
	needRoot(t)
	cred := UserCredential{UID: nobody, GID: nobody, Groups: []uint32{60123}}
	a := startAgent(t, cred)
	parent, err := os.MkdirTemp("/tmp", "roost-scratch")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	os.Chmod(parent, 0o711)
	scratch, err := MakeScratch(parent, "1.0.1", cred)
	if err != nil {
		t.Fatal(err)
	}
	w, err := a.Create(t.Context(), scratch, "d/file", CreateOptions{})
	if err == nil {
		_, err = w.Write([]byte("text"))
	}
	if err == nil {
		err = w.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(scratch + "/d/file")
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != nobody {
		t.Errorf("got %v, %v, want a file of the user", info, err)
	}
	writeTree(t, parent, map[string]string{"secret": "s"})
	os.Chmod(parent+"/secret", 0o600)
	if _, err := a.Open(t.Context(), parent, "secret", 0); !errors.Is(err, roost.NoInput) ||
		!strings.Contains(err.Error(), "permission denied") {
		t.Errorf("another's file: got %v", err)
	}
	if _, err := a.Create(t.Context(), parent, "new", CreateOptions{}); !errors.Is(err, roost.NoOutput) ||
		!strings.Contains(err.Error(), parent) {
		t.Errorf("another's directory: got %v", err)
	}
	if err := a.RemoveAll(t.Context(), scratch, "."); err != nil {
		t.Error(err)
	}
	if err := os.Remove(scratch); err != nil {
		t.Error(err)
	}
}

func TestNoSpaceLeft(t *testing.T) {
	needRoot(t)
	base, a := t.TempDir(), startAgent(t, ownCredential())
	if err := unix.Mount("tmpfs", base, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("SKIPPED: mount: %v", err)
	}
	defer unix.Unmount(base, unix.MNT_DETACH)
	w, err := a.Create(t.Context(), base, "file", CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(bytes.Repeat([]byte("x"), 1<<20))
	if !errors.Is(err, roost.NoOutput) || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v, want no space left", err)
	}
	w.Close()
	if list, err := a.Snapshot(t.Context(), base); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v, want nothing left", list, err)
	}
}

// TestNothingHidesInClosedDirectories checks that the contents of directories without
// permissions for their owner are measured and removed. The base may be such a directory,
// too.
func TestNothingHidesInClosedDirectories(t *testing.T) {
	needRoot(t)
	a := startAgent(t, UserCredential{UID: nobody, GID: nobody})
	parent, err := os.MkdirTemp("/tmp", "roost-scratch")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	os.Chmod(parent, 0o711)
	scratch, err := MakeScratch(parent, "1.0.1", UserCredential{UID: nobody, GID: nobody})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{scratch + "/closed", scratch + "/closed/deeper"} {
		writeTree(t, parent, map[string]string{strings.TrimPrefix(dir, parent+"/") +
			"/big": strings.Repeat("x", 512<<10)})
		os.Chown(dir, nobody, nobody)
	}
	for _, dir := range []string{"/closed/deeper", "/closed", ""} {
		if err := os.Chmod(scratch+dir, 0o300); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := a.Measure(t.Context(), scratch, 1000); err != nil || !got.Complete || got.DiskUsed < 1<<20 {
		t.Errorf("measured %+v, %v, want 1 MiB", got, err)
	}
	for _, dir := range []string{"", "/closed"} {
		if info, err := os.Lstat(scratch + dir); err != nil || info.Mode().Perm() != 0o300 {
			t.Errorf("afterwards: %v, %v, want its mode as it was", info, err)
		}
	}
	if err := a.RemoveAll(t.Context(), scratch, "."); err != nil {
		t.Error(err)
	}
	if err := os.Remove(scratch); err != nil {
		t.Error(err)
	}
}
