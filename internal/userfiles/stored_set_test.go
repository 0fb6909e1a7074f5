package userfiles

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/internal/wire"
)

// TestStoredSet stores files, directories and holes in one file, and receives them from
// it. A damaged one is refused, or gives the same files.
func TestStoredSet(t *testing.T) {
	agent, err := StartAgent(UserCredential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	from := t.TempDir()
	sparse := append(make([]byte, 4<<20), "end"...)
	if err := errors.Join(os.MkdirAll(filepath.Join(from, "sub", "empty"), 0o755),
		os.WriteFile(filepath.Join(from, "sub", "a"), []byte("text"), 0o640)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(from, "sparse"))
	if err == nil {
		_, err = f.WriteAt([]byte("end"), 4<<20)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	entries, err := agent.Expand(t.Context(), from, []string{"sub", "sparse"})
	if err != nil {
		t.Fatal(err)
	}
	var stored bytes.Buffer
	send, err := WriteStored(&stored, Totals(entries))
	if err == nil {
		err = SendEntries(t.Context(), send, agent, from, entries, SendOptions{SendHoles: true})
	}
	if err != nil || stored.Len() > 1<<20 {
		t.Fatalf("%d bytes, %v", stored.Len(), err)
	}
	receive := func(b []byte) (string, error) {
		to := t.TempDir()
		totals, recv, err := ReadStored(bytes.NewReader(b))
		if err == nil {
			_, _, err = ReceiveEntries(t.Context(), recv, agent, to, &TransferManifest{Totals: totals})
		}
		return to, err
	}
	check := func(what, to string) {
		t.Helper()
		a, err := os.ReadFile(filepath.Join(to, "sub", "a"))
		s, serr := os.ReadFile(filepath.Join(to, "sparse"))
		info, ierr := os.Stat(filepath.Join(to, "sub", "empty"))
		if err != nil || serr != nil || ierr != nil || string(a) != "text" || !bytes.Equal(s, sparse) || !info.IsDir() {
			t.Errorf("%s: %q and %d bytes, %v, %v, %v", what, a, len(s), err, serr, ierr)
		}
	}
	to, err := receive(stored.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	check("as it was stored", to)
	path := filepath.Join(t.TempDir(), "stored")
	if err := os.WriteFile(path, stored.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := 0
	damage.ForEach(t, path, 100, func(what string) {
		b, err := os.ReadFile(path)
		if err != nil {
			return
		}
		if _, err := receive(b); err != nil {
			refused++
		}
	})
	if refused == 0 {
		t.Error("no damage is noticed")
	}
}

// TestCopyEntries checks which transfers are passed on.
func TestCopyEntries(t *testing.T) {
	sum := newTransferSum()
	sum.add(0, []byte("ab"))
	file := func(name string) *wire.FileChunk { return &wire.FileChunk{Entry: &wire.FileEntry{Name: name, Size: 2}} }
	data := &wire.FileChunk{Data: []byte("ab")}
	end := &wire.FileChunk{Eof: true, Sha256: sum.Sum(nil)}
	dir := &wire.FileChunk{Entry: &wire.FileEntry{Name: "d", Dir: true}, Eof: true}
	for name, test := range map[string]struct {
		chunks []*wire.FileChunk
		good   bool
	}{
		"whole":        {[]*wire.FileChunk{{}, dir, file("a"), data, end}, true},
		"nothing":      {nil, true},
		"not to end":   {[]*wire.FileChunk{file("a"), data}, false},
		"too short":    {[]*wire.FileChunk{file("a"), end}, false},
		"too long":     {[]*wire.FileChunk{file("a"), data, data, end}, false},
		"wrong digest": {[]*wire.FileChunk{file("a"), data, {Eof: true, Sha256: []byte("no")}}, false},
		"twice":        {[]*wire.FileChunk{file("a"), data, end, file("a"), data, end}, false},
		"in another":   {[]*wire.FileChunk{file("a"), file("b"), data, end}, false},
		"no name":      {[]*wire.FileChunk{data, end}, false},
		"outside":      {[]*wire.FileChunk{file("../a"), data, end}, false},
	} {
		rest, passed := test.chunks, 0
		err := CopyEntries(func() (*wire.FileChunk, error) {
			if len(rest) == 0 {
				return nil, io.EOF
			}
			next := rest[0]
			rest = rest[1:]
			return next, nil
		}, &TransferManifest{}, func(*wire.FileChunk) error { passed++; return nil })
		if (err == nil) != test.good || err != nil && !errors.Is(err, roost.Invalid) {
			t.Errorf("%s: %d messages are passed on, %v", name, passed, err)
		}
	}
}
