package files

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
	cred := Credential{UID: nobody, GID: nobody, Groups: []uint32{60123}}
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
	write(t, parent, map[string]string{"secret": "s"})
	os.Chmod(parent+"/secret", 0o600)
	if _, err := a.Open(t.Context(), parent, "secret", 0); !errors.Is(err, roost.NoInput) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("another's file: got %v", err)
	}
	if _, err := a.Create(t.Context(), parent, "new", CreateOptions{}); !errors.Is(err, roost.NoOutput) || !strings.Contains(err.Error(), parent) {
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
	base, a := t.TempDir(), startAgent(t, own())
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
