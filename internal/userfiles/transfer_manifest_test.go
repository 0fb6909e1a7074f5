package userfiles

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// fileMessages returns a sender's messages of one file.
func fileMessages(name, text string) []*wire.FileChunk {
	sum := sha256.Sum256([]byte(text))
	return []*wire.FileChunk{{Entry: &wire.FileEntry{Name: name, Size: int64(len(text)), Mode: 0o6755}},
		{Data: []byte(text)}, {Eof: true, Sha256: sum[:]}}
}

func directoryMessage(name string) []*wire.FileChunk {
	return []*wire.FileChunk{{Entry: &wire.FileEntry{Name: name, Dir: true, Mode: 0o755}, Eof: true}}
}

// TestReceiveCompares checks that a transfer which is not what was announced leaves no
// files. Its error must say what was wrong.
func TestReceiveCompares(t *testing.T) {
	announced := []*wire.FileEntry{{Name: "result", Size: 4}, {Name: "dir", Dir: true}, {Name: "dir/more", Size: 3}}
	longer := fileMessages("result", "data")
	longer[1].Data = []byte("data and more")
	shorter := fileMessages("result", "dat")
	shorter[0].Entry.Size = 4
	good := slices.Concat(fileMessages("result", "data"), directoryMessage("dir"), fileMessages("dir/more", "mor"))
	for _, test := range []struct {
		name, want string
	}{{"good", ""}, {"extra", `"sub/.ssh/authorized_keys": nobody has asked for it`},
		{"twice", `"result": it came twice`}, {"longer", `"result": 4 bytes were announced, and more came`},
		{"shorter", `"result": 4 bytes were announced, and 3 came`},
		{"other size", `"result": 4 bytes were announced, and 5 came`},
		{"kind", `"dir": a directory was announced, and a file came`},
		{"missing", `"dir/more": it was announced, and did not come`},
		{"hole back", `"result": 4 bytes were announced, and more came`}} {
		t.Run(test.name, func(t *testing.T) {
			chunks := map[string][]*wire.FileChunk{
				"good": good, "extra": slices.Concat(fileMessages("result", "data"),
					fileMessages("sub/.ssh/authorized_keys", "key"), good),
				"twice":  slices.Concat(good, fileMessages("result", "data")),
				"longer": slices.Concat(longer, good[3:]), "shorter": slices.Concat(shorter, good[3:]),
				"other size": slices.Concat(fileMessages("result", "data!"), good[3:]),
				"kind":       slices.Concat(good[:3], fileMessages("dir", "")), "missing": good[:4],
				"hole back": {good[0], {Hole: -1, Data: []byte("data!")}},
			}[test.name]
			base, a := t.TempDir(), startAgent(t, ownCredential())
			writeTree(t, base, map[string]string{"result": "old"})
			_, _, err := ReceiveEntries(t.Context(), replayChunks(chunks), a, base,
				&TransferManifest{Entries: announced})
			there, _ := a.Snapshot(t.Context(), base)
			if test.want == "" {
				if info, serr := os.Stat(base + "/result"); err != nil || len(there) != 2 || serr != nil ||
					info.Size() != 4 || info.Mode() != 0o755 {
					t.Errorf("got %v, %v, %v", there, info, err)
				}
				return
			}
			var wrong *MismatchError
			if !errors.As(err, &wrong) || !errors.Is(err, roost.Invalid) || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if text, _ := os.ReadFile(base + "/result"); len(there) != 1 || string(text) != "old" {
				t.Errorf("it left %v, and %q in result", there, text)
			}
		})
	}
}

// TestReceiveBounds checks that totals and the number of bytes are compared, too.
func TestReceiveBounds(t *testing.T) {
	a := startAgent(t, ownCredential())
	for _, test := range []struct {
		m    TransferManifest
		kind error
	}{
		{TransferManifest{}, nil}, {TransferManifest{Bytes: 4, Totals: &wire.TransferTotals{Files: 1, Bytes: 4}}, nil},
		{TransferManifest{Bytes: 3}, roost.Exhausted},
		{TransferManifest{Totals: &wire.TransferTotals{Files: 2, Bytes: 4}}, roost.Invalid},
		{TransferManifest{Totals: &wire.TransferTotals{Files: 1, Bytes: 5}}, roost.Invalid},
		{TransferManifest{IsAsked: AskedFilter([]string{"other"})}, roost.Invalid},
		{TransferManifest{IsAsked: AskedFilter([]string{"r*"})}, nil},
	} {
		base := t.TempDir()
		_, _, err := ReceiveEntries(t.Context(), replayChunks(fileMessages("result", "data")), a, base, &test.m)
		if there, _ := a.Snapshot(t.Context(), base); !errors.Is(err, test.kind) || (err == nil) != (len(there) == 1) {
			t.Errorf("%+v: got %v, and there is %v", &test.m, err, there)
		}
	}
	for what, list := range map[string][]*wire.FileEntry{
		"twice": {{Name: "a"}, {Name: "a"}}, "below a file": {{Name: "a"}, {Name: "a/b"}},
		"a file above": {{Name: "a/b"}, {Name: "a"}},
		"negative":     {{Name: "a", Size: -1}}, "too long": {{Name: "a", Size: MaxSparse}, {Name: "b", Size: 1}},
		"up": {{Name: "../a"}}, "itself": {{Name: "."}},
	} {
		err := (&TransferManifest{}).Compare(list)
		_, mismatch := errors.AsType[*MismatchError](err)
		// a job can cause the others on an honest node
		if bySender := what == "twice" || what == "negative" || what == "up"; err == nil || mismatch != bySender {
			t.Errorf("%s: got %v, a mismatch: %v", what, err, mismatch)
		}
	}
}

// TestReceiveEnds checks that an interrupted transfer, or one whose agent ends, leaves no
// files.
func TestReceiveEnds(t *testing.T) {
	base, a := t.TempDir(), startAgent(t, ownCredential())
	ctx, cancel := context.WithCancel(t.Context())
	chunks := slices.Concat(fileMessages("sub/a", "data"), directoryMessage("empty"), fileMessages("b", "data"))
	recv := replayChunks(chunks)
	left := len(chunks)
	if _, _, err := ReceiveEntries(ctx, func() (*wire.FileChunk, error) {
		if left--; left == 0 {
			cancel()
		}
		return recv()
	}, a, base, &TransferManifest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// after the request that removes the files
	if there, err := a.Snapshot(t.Context(), base); err != nil || len(there) != 0 {
		t.Errorf("it left %v, %v", there, err)
	}
}

// TestHoles sends a file with holes. It has them at the other end, costs only its data,
// and arrives as a whole if the receiver does not accept holes.
func TestHoles(t *testing.T) {
	const size, piece = 1 << 30, 64 << 10
	from, a := t.TempDir(), startAgent(t, ownCredential())
	f, err := os.Create(from + "/sparse")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 1 << 20, 700<<20 + 4096} {
		if _, err := f.WriteAt(bytes.Repeat([]byte("x"), piece), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Truncate(size), f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(from + "/sparse"); err != nil || info.Sys().(*syscall.Stat_t).Blocks*blockSize > 1<<20 {
		t.Skipf("SKIPPED: the file system has no holes (%v)", err)
	}
	writeTree(t, from, map[string]string{"dense": "dense"})
	if f, err = os.Create(from + "/hole"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil {
		t.Fatal(err)
	}
	entries, err := a.Expand(t.Context(), from, []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	var chunks []*wire.FileChunk
	sent := 0
	send := func(c *wire.FileChunk) error { chunks = append(chunks, c); sent += len(c.GetData()); return nil }
	if err := SendEntries(t.Context(), send, a, from, entries, SendOptions{SendHoles: true}); err != nil ||
		sent > 1<<20 {
		t.Fatalf("%d bytes were sent, %v", sent, err)
	}
	to := t.TempDir()
	if _, _, err := ReceiveEntries(t.Context(), replayChunks(chunks), a, to,
		&TransferManifest{Bytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sparse", "hole", "dense"} {
		was, err := os.Stat(filepath.Join(from, name))
		is, terr := os.Stat(filepath.Join(to, name))
		if err != nil || terr != nil || is.Size() != was.Size() || is.Sys().(*syscall.Stat_t).Blocks*blockSize > 1<<20 {
			t.Errorf("%s: %v, %v, %v", name, is, err, terr)
		}
	}
	got, err := os.Open(to + "/sparse")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	buf := make([]byte, 2*piece)
	if _, err := got.ReadAt(buf, 700<<20+4096-piece); err != nil ||
		!bytes.Equal(buf, append(make([]byte, piece), bytes.Repeat([]byte("x"), piece)...)) {
		t.Errorf("what is around its last piece is not what it was: %v", err)
	}
	os.Truncate(from+"/sparse", 2<<20)
	entries, _ = a.Expand(t.Context(), from, []string{"sparse"})
	sent, chunks = 0, nil
	if err := SendEntries(t.Context(), send, a, from, entries, SendOptions{}); err != nil || sent != 2<<20 {
		t.Errorf("%d bytes were sent to who takes no holes, %v", sent, err)
	}
}

// TestSendOfChangedFiles checks that a file whose length has changed since it was listed
// is not sent.
func TestSendOfChangedFiles(t *testing.T) {
	for _, test := range []struct {
		name  string
		size  int
		late  bool // it changes when its entry has been sent
		grows bool
		bad   bool
	}{{"as it was", 600 << 10, false, false, false}, {"shrunk", 10, false, false, true},
		{"grown", 700 << 10, false, false, true}, {"shrinks", 10, true, false, true},
		{"grows", 700 << 10, true, false, true}, {"may grow", 700 << 10, true, true, false},
		{"may have grown", 700 << 10, false, true, false}, {"may not shrink", 10, true, true, true}} {
		t.Run(test.name, func(t *testing.T) {
			from, a := t.TempDir(), startAgent(t, ownCredential())
			writeTree(t, from, map[string]string{"f": strings.Repeat("x", 600<<10)})
			entries, err := a.Expand(t.Context(), from, []string{"f"})
			if err != nil {
				t.Fatal(err)
			}
			change := func() {
				if err := os.Truncate(from+"/f", int64(test.size)); err != nil {
					t.Error(err)
				}
			}
			if !test.late {
				change()
			}
			var chunks []*wire.FileChunk
			err = SendEntries(t.Context(), func(c *wire.FileChunk) error {
				if chunks = append(chunks, c); c.GetEntry() != nil && test.late {
					change()
				}
				return nil
			}, a, from, entries, SendOptions{MayGrow: test.grows})
			if test.bad {
				if want := "f: cannot read: it changed while it was sent: it had 614400 bytes, and now "; !errors.Is(
					err, roost.NoInput,
				) || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got %v, want %s…", err, want)
				}
				return
			}
			if _, _, rerr := ReceiveEntries(t.Context(), replayChunks(chunks), a, t.TempDir(),
				&TransferManifest{}); err != nil || rerr != nil {
				t.Errorf("got %v, %v", err, rerr)
			}
		})
	}
}

// TestAsked checks which names patterns request.
func TestAsked(t *testing.T) {
	for _, test := range []struct{ patterns, yes, no string }{
		{"result.txt", "result.txt result.txt/below", "result.txt2 .ssh/authorized_keys sub/result.txt result"},
		{"./out/*.dat", "out/a.dat out/.dat out/a.dat/x", "out/a.txt out/sub/a.dat a.dat out"},
		{"a[1].txt", "a[1].txt a1.txt", "a2.txt a"},
		{"dir/", "dir dir/a dir/b/c", "di dirs/a"},
		{".", "a .b c/d", ""},
		{"a => b", "b b/x", "a"}, {"a* => b", "b b/a1 b/ax/y", "a1 b2"}, {"x/a => b/", "b/a b/a/y", "b b/x"},
		{"dir => .", "a .b c/d", ""}, {"a* => [b]/", "[b]/a1", "b/a1 [b] [b]/b1"},
		{"/tmp/x/log", "log x/log", "tmp log2 y/log"}, {"../up/*.c", "a.c up/a.c", "up a.h"},
		{"", "", "a .a"},
	} {
		asked := AskedFilter(strings.Split(test.patterns, "; "))
		if test.patterns == "" {
			asked = AskedFilter(nil)
		}
		for name := range strings.FieldsSeq(test.yes) {
			if !asked(&wire.FileEntry{Name: name}) {
				t.Errorf("%q does not ask for %q", test.patterns, name)
			}
		}
		for name := range strings.FieldsSeq(test.no) {
			if asked(&wire.FileEntry{Name: name}) {
				t.Errorf("%q asks for %q", test.patterns, name)
			}
		}
	}
}

// TestAskedForAllThatIsExpanded checks that everything that patterns match counts as
// requested, so that an honest node is never refused.
func TestAskedForAllThatIsExpanded(t *testing.T) {
	// patterns lead up, but not out of the test's own directory
	base, a := t.TempDir()+"/p/q/r/z", startAgent(t, ownCredential())
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatal(err)
	}
	writeTree(t, base, map[string]string{"a": "", "a1": "1", "ab/x1": "1", "ab/sub/y": "y", "b[1]/a1": "1", ".h/x": "x",
		"c/a/b": "b", "*": "1"})
	words := []string{"a", "a*", "ab", "*", "?1", "b[1]", "b\\[1]", "[ab]*", ".", "..", "sub", "x1", ".h", "c", "",
		base + "/c"}
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 3000 {
		var parts []string
		for range 1 + r.IntN(3) {
			if w := words[r.IntN(len(words))]; w != "" || len(parts) > 0 {
				parts = append(parts, w)
			}
		}
		pattern := strings.Join(parts, "/")
		if r.IntN(4) == 0 {
			pattern += " => " + []string{"x", "x/", "x/y", ".", "./x/"}[r.IntN(5)]
		}
		entries, err := a.Expand(t.Context(), base, []string{pattern})
		if err != nil {
			continue
		}
		if dir, _, _ := strings.Cut(pattern, " => "); path.Clean(dir) == base || dir == "../*" {
			continue // the name of the directory itself means all its contents, which the sender expresses differently
		}
		asked := AskedFilter([]string{pattern})
		for _, e := range entries {
			if found++; e.Name != "." && !asked(&wire.FileEntry{Name: e.Name}) {
				t.Fatalf("%q finds %q, and does not ask for it", pattern, e.Name)
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d names were found", found)
	}
}
