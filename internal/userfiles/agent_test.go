package userfiles

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

func TestReadAndWrite(t *testing.T) {
	base, a := t.TempDir(), startAgent(t, ownCredential())
	want := bytes.Repeat([]byte("0123456789abcdef"), 3*ChunkSize/16+1)
	w, err := a.Create(t.Context(), base, "new/dir/file", CreateOptions{Mode: 0o640, Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(want); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(base + "/new/dir/file"); err == nil {
		t.Error("the file is there before Commit")
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, offset := range []int64{0, 1, ChunkSize, int64(len(want))} {
		r, err := a.Open(t.Context(), base, "new/dir/file", offset)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, want[offset:]) {
			t.Errorf("from %d: %d bytes, %v, want %d", offset, len(got), err, len(want)-int(offset))
		}
		r.Close()
	}
	tail, size, err := a.ReadAt(t.Context(), base, "new/dir/file", -5)
	if err != nil || string(tail) != "bcdef" || size != int64(len(want)) {
		t.Errorf("tail: got %q of %d, %v", tail, size, err)
	}
	if e, err := a.Stat(t.Context(), base, "new/dir/file"); err != nil || e.Mode != 0o640 ||
		e.Size != int64(len(want)) {
		t.Errorf("stat: got %+v, %v", e, err)
	}
}

func TestAbandonedFileGoes(t *testing.T) {
	base, a := t.TempDir(), startAgent(t, ownCredential())
	w, err := a.Create(t.Context(), base, "file", CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte("half"))
	w.Close()
	if list, err := a.Snapshot(t.Context(), base); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v, want nothing", list, err)
	}
}

func TestAppend(t *testing.T) {
	base, a := t.TempDir(), startAgent(t, ownCredential())
	writeTree(t, base, map[string]string{"file": "one\n"})
	if err := unix.Mkfifo(base+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Append(t.Context(), base, "file", []byte("two\n")); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(base + "/file"); string(text) != "one\ntwo\n" {
		t.Errorf("the file has %q", text)
	}
	for _, name := range []string{"new", "fifo"} {
		if err := a.Append(t.Context(), base, name, []byte("x")); !errors.Is(err, roost.NoOutput) {
			t.Errorf("%s: %v is not NoOutput", name, err)
		}
	}
	if _, err := os.Stat(base + "/new"); err == nil {
		t.Error("a file was made")
	}
}

// TestNoWayOut tries every operation with names and links that lead out of the base.
func TestNoWayOut(t *testing.T) {
	base, outside, a := t.TempDir(), t.TempDir(), startAgent(t, ownCredential())
	writeTree(t, outside, map[string]string{"victim": "untouched", "dir/victim": "untouched"})
	for link, to := range map[string]string{"dir": outside + "/dir", "file": outside + "/victim", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	for _, name := range []string{"../victim", "/etc/roost-test", "a/../../x", "nul\x00byte", "line\nbreak", "",
		".", "..", "dir/victim", "dir/new", "up/x", "a//b", "a/"} {
		if w, err := a.Create(ctx, base, name, CreateOptions{}); err == nil {
			w.Close()
			t.Errorf("Create %q: no error", name)
		} else if !errors.Is(err, roost.NoOutput) {
			t.Errorf("Create %q: %v is not NoOutput", name, err)
		}
		if err := a.Append(ctx, base, name, []byte("more")); !errors.Is(err, roost.NoOutput) {
			t.Errorf("Append %q: %v is not NoOutput", name, err)
		}
		if name != "" && name != "." && name[0] != '/' {
			if r, err := a.Open(ctx, base, name, 0); err == nil {
				r.Close()
				t.Errorf("Open %q: no error", name)
			}
		}
		if name != "." && name != "dir/new" && name != "dir/victim" {
			if err := a.Mkdir(ctx, base, name, 0o755); err == nil {
				t.Errorf("Mkdir %q: no error", name)
			}
		}
	}
	if _, err := a.Open(ctx, base, "file", 0); err == nil {
		t.Error("Open of a link that leads out: no error")
	}
	if err := a.Append(ctx, base, "file", []byte("more")); err == nil {
		t.Error("Append to a link that leads out: no error")
	}
	for _, name := range []string{"dir", "file", "../victim", "dir/victim"} {
		a.RemoveAll(ctx, base, name) // the links themselves may be removed
	}
	for _, victim := range []string{"victim", "dir/victim"} {
		if text, err := os.ReadFile(filepath.Join(outside, victim)); err != nil || string(text) != "untouched" {
			t.Errorf("%s: got %q, %v", victim, text, err)
		}
	}
}

func TestNoSpecialFiles(t *testing.T) {
	base, a := t.TempDir(), startAgent(t, ownCredential())
	if err := unix.Mkfifo(base+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	writeTree(t, base, map[string]string{"dir/": ""})
	for _, name := range []string{"fifo", "dir", "/dev/null", "missing"} {
		if _, err := a.Open(t.Context(), base, name, 0); !errors.Is(err, roost.NoInput) {
			t.Errorf("Open %q: got %v, want NoInput", name, err)
		}
	}
	for _, name := range []string{"fifo", "dir", "fifo/x"} {
		if _, err := a.Create(t.Context(), base, name, CreateOptions{}); !errors.Is(err, roost.NoOutput) {
			t.Errorf("Create %q: got %v, want NoOutput", name, err)
		}
	}
}

func TestRemoveAll(t *testing.T) {
	base, a := t.TempDir(), startAgent(t, ownCredential())
	writeTree(t, base, map[string]string{"a": "a", "d/e/f": "f", "locked/x": "x"})
	os.Chmod(base+"/locked", 0)
	for range 2 {
		if err := a.RemoveAll(t.Context(), base, "."); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := os.ReadDir(base); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v, want an empty directory", list, err)
	}
	if err := a.RemoveAll(t.Context(), base+"/gone", "."); err != nil {
		t.Errorf("what is not there: %v", err)
	}
}

func TestCancelledCallLeavesAgentUsable(t *testing.T) {
	base, a := t.TempDir(), startAgent(t, ownCredential())
	writeTree(t, base, map[string]string{"a": "a"})
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if r, err := a.Open(ctx, base, "a", 0); err == nil {
			r.Close()
		} else if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if e, err := a.Stat(t.Context(), base, "a"); err != nil || e.Size != 1 {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestClosedAgent(t *testing.T) {
	a := startAgent(t, ownCredential())
	a.Close()
	if _, err := a.Snapshot(t.Context(), "/"); !errors.Is(err, roost.Unavailable) {
		t.Errorf("got %v, want Unavailable", err)
	}
}

func FuzzMessage(f *testing.F) {
	var b bytes.Buffer
	writeMessage(&b, agentRequest{ID: 1, Op: opStat, Name: "x"}, []byte("data"))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		var q agentRequest
		readMessage(bytes.NewReader(b), &q)
	})
}
