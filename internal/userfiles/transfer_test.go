package userfiles

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

func TestSendAndReceive(t *testing.T) {
	from, to, a := t.TempDir(), t.TempDir(), startAgent(t, ownCredential())
	big := bytes.Repeat([]byte("big"), ChunkSize)
	writeTree(t, from, map[string]string{"a": "aa", "empty": "", "dir/sub/": "", "dir/big": string(big)})
	os.Chmod(from+"/a", 0o755)
	entries, err := a.Expand(t.Context(), from, []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	chunks := []*wire.FileChunk{{Schedd: "s"}}
	send := func(c *wire.FileChunk) error { chunks = append(chunks, c); return nil }
	if err := SendEntries(t.Context(), send, a, from, entries, SendOptions{}); err != nil {
		t.Fatal(err)
	}
	listed := []*wire.FileEntry{}
	for _, e := range entries {
		listed = append(listed, WireEntry(e))
	}
	files, size, err := ReceiveEntries(t.Context(), replayChunks(chunks), a, to, &TransferManifest{Entries: listed})
	if err != nil || files != 5 || size != int64(2+len(big)) {
		t.Errorf("got %d files, %d bytes, %v", files, size, err)
	}
	if got, err := os.ReadFile(to + "/dir/big"); err != nil || !bytes.Equal(got, big) {
		t.Errorf("dir/big: %d bytes, %v", len(got), err)
	}
	if info, err := os.Stat(to + "/a"); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("a: %v, %v, want mode 0755", info, err)
	}
	for _, dir := range []string{"/dir/sub", "/empty"} {
		if _, err := os.Stat(to + dir); err != nil {
			t.Error(err)
		}
	}
}

func replayChunks(chunks []*wire.FileChunk) func() (*wire.FileChunk, error) {
	return func() (*wire.FileChunk, error) {
		if len(chunks) == 0 {
			return nil, io.EOF
		}
		c := chunks[0]
		chunks = chunks[1:]
		return c, nil
	}
}

func TestBadStreams(t *testing.T) {
	sum := sha256.Sum256([]byte("data"))
	entry := func(name string) *wire.FileChunk {
		return &wire.FileChunk{Entry: &wire.FileEntry{Name: name, Size: 4, Mode: 0o644}}
	}
	data, end := &wire.FileChunk{Data: []byte("data")}, &wire.FileChunk{Eof: true, Sha256: sum[:]}
	for _, test := range []struct {
		name   string
		chunks []*wire.FileChunk
		kind   roost.ErrorKind // 0: no error
	}{
		{"good", []*wire.FileChunk{entry("f"), data, end}, 0},
		{"nothing", nil, 0},
		{"short", []*wire.FileChunk{entry("f"), data}, roost.Invalid},
		{"no data", []*wire.FileChunk{entry("f"), end}, roost.Invalid},
		{"twice the data", []*wire.FileChunk{entry("f"), data, data, end}, roost.Invalid},
		{"no digest", []*wire.FileChunk{entry("f"), data, {Eof: true}}, roost.Invalid},
		{"data first", []*wire.FileChunk{data, end}, roost.Invalid},
		{"one in another", []*wire.FileChunk{entry("f"), data, entry("g"), data, end}, roost.Invalid},
		{"up", []*wire.FileChunk{entry("../f"), data, end}, roost.Invalid},
		{"absolute", []*wire.FileChunk{entry("/tmp/f"), data, end}, roost.Invalid},
		{"nul", []*wire.FileChunk{entry("f\x00"), data, end}, roost.Invalid},
		{"no name", []*wire.FileChunk{entry(""), data, end}, roost.Invalid},
		{"over a directory", []*wire.FileChunk{entry("dir"), data, end}, roost.NoOutput},
		{"through a link", []*wire.FileChunk{entry("link/f"), data, end}, roost.NoOutput},
	} {
		t.Run(test.name, func(t *testing.T) {
			base, outside, a := t.TempDir(), t.TempDir(), startAgent(t, ownCredential())
			writeTree(t, base, map[string]string{"dir/": ""})
			if err := os.Symlink(outside, base+"/link"); err != nil {
				t.Fatal(err)
			}
			_, _, err := ReceiveEntries(t.Context(), replayChunks(test.chunks), a, base, &TransferManifest{})
			if test.kind == 0 && err != nil || test.kind != 0 && !errors.Is(err, test.kind) {
				t.Fatalf("got %v, want %v", err, test.kind)
			}
			list, _ := a.Snapshot(t.Context(), base)
			if want := map[bool]int{true: 2, false: 1}[test.name == "good"]; len(list) != want {
				t.Errorf("got %v: a broken file has its name, or a draft is left", list)
			}
			if left, _ := os.ReadDir(outside); len(left) != 0 {
				t.Errorf("outside there is %v now", left)
			}
		})
	}
}
