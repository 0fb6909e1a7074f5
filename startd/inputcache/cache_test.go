package inputcache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
)

func openTestCache(t *testing.T, dir string, most int64) *Cache {
	t.Helper()
	c, err := Open(Options{Log: slog.New(slog.DiscardHandler), Dir: dir, MaxBytes: most})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// testFile is a file of a test with its transfer.
type testFile struct {
	name string
	text []byte
}

func (f testFile) sum() []byte {
	sum := sha256.Sum256(f.text)
	return sum[:]
}

func (f testFile) entry() *wire.FileEntry {
	return &wire.FileEntry{Name: f.name, Size: int64(len(f.text)), Mode: 0o644}
}

// whole returns the messages that bring the file, and have it cached.
func (f testFile) whole() []*wire.FileChunk {
	return []*wire.FileChunk{{Entry: f.entry(), Cacheable: true}, {Data: f.text}, {Eof: true, Sha256: f.sum()}}
}

// left returns the message in their place.
func (f testFile) left() []*wire.FileChunk {
	return []*wire.FileChunk{{Entry: f.entry(), Cached: true, Sha256: f.sum()}}
}

func newTestFile(name string, fill byte) testFile {
	return testFile{name, bytes.Repeat([]byte{fill}, userfiles.MinCachedBytes)}
}

// receive receives a transfer as a startd does, and returns the contents of the files by
// their names.
func receive(c *Cache, o Owner, messages ...[]*wire.FileChunk) (files map[string]string, missing bool, err error) {
	var all []*wire.FileChunk
	for _, m := range messages {
		all = append(all, m...)
	}
	t := c.Receive(o, func() (*wire.FileChunk, error) {
		if len(all) == 0 {
			return nil, io.EOF
		}
		m := all[0]
		all = all[1:]
		return m, nil
	})
	defer t.Close()
	files = map[string]string{}
	name := ""
	err = userfiles.CopyEntries(t.Next, &userfiles.TransferManifest{}, func(m *wire.FileChunk) error {
		if e := m.GetEntry(); e != nil {
			name = e.GetName()
		}
		files[name] += string(m.GetData())
		return nil
	})
	return files, err != nil && t.IsMissing(err), err
}

func TestReceive(t *testing.T) {
	dir := t.TempDir()
	c := openTestCache(t, dir, 10<<20)
	a, b := newTestFile("a", 'a'), newTestFile("b", 'b')
	ann := Owner{"submit", "ann"}
	if _, _, err := receive(c, ann, a.whole(), b.whole()); err != nil {
		t.Fatal(err)
	}
	again := testFile{"another name", a.text}
	c = openTestCache(t, dir, 10<<20) // as after a restart
	got, _, err := receive(c, ann, again.left(), b.left())
	if err != nil || got["another name"] != string(a.text) || got["b"] != string(b.text) {
		t.Fatalf("got %d files, %v", len(got), err)
	}
	for _, other := range []Owner{{"submit", "bob"}, {"elsewhere", "ann"}} {
		if got, missing, err := receive(c, other, a.left()); !missing || err == nil || len(got) > 0 {
			t.Errorf("%v got %d files of somebody else, %v", other, len(got), err)
		}
	}
}

// TestDamage damages a cached file. A transfer has the right contents, or the file is
// missing from then on and comes again.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	a, b := newTestFile("a", 'a'), newTestFile("b", 'b')
	ann := Owner{"submit", "ann"}
	receive(openTestCache(t, dir, 10<<20), ann, a.whole())
	list, _ := filepath.Glob(filepath.Join(dir, "*"+fileSuffix))
	if len(list) != 1 {
		t.Fatalf("the cache has %v", list)
	}
	missed := 0
	check := func(what string) {
		t.Helper()
		c := openTestCache(t, dir, 10<<20)
		got, missing, err := receive(c, ann, a.left(), b.whole())
		if err == nil && got["a"] == string(a.text) && got["b"] == string(b.text) {
			return
		}
		if !missing || c.Bytes() != 0 {
			t.Fatalf("%s: missing %v, %v; the cache has %d bytes", what, missing, err, c.Bytes())
		}
		missed++
		if _, _, err := receive(c, ann, a.whole()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	damage.ForEach(t, list[0], 60, check)
	if missed == 0 {
		t.Error("no damage was found")
	}
	whole, err := os.ReadFile(list[0])
	if err != nil {
		t.Fatal(err)
	}
	for end := len(whole) - 80; end < len(whole); end++ { // also between two messages
		if err := os.WriteFile(list[0], whole[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprintf("cut off after %d of %d bytes", end, len(whole)))
	}
}

// TestWrongDigest checks that a file with another digest than came with it is not cached.
// One that does not come completely is not cached either.
func TestWrongDigest(t *testing.T) {
	dir := t.TempDir()
	c := openTestCache(t, dir, 10<<20)
	a, b := newTestFile("a", 'a'), newTestFile("b", 'b')
	wrong := a.whole()
	wrong[2].Sha256 = b.sum()
	for _, messages := range [][]*wire.FileChunk{wrong, a.whole()[:2], a.whole()[:1]} {
		if _, missing, err := receive(c, Owner{}, messages); err == nil || missing {
			t.Errorf("missing %v, %v", missing, err)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) > 0 || c.Bytes() != 0 {
		t.Errorf("the cache has %v, %d bytes", list, c.Bytes())
	}
	short := a.left()
	short[0].Sha256 = short[0].Sha256[:8]
	if _, missing, err := receive(c, Owner{}, short); err == nil || missing {
		t.Errorf("a short digest: missing %v, %v", missing, err)
	}
}

// TestRoom checks that the file used longest ago makes room, and that what does not fit
// removes nothing.
func TestRoom(t *testing.T) {
	c := openTestCache(t, t.TempDir(), 5<<19+4096) // two files
	ann := Owner{"submit", "ann"}
	a, b, d := newTestFile("a", 'a'), newTestFile("b", 'b'), newTestFile("d", 'd')
	receive(c, ann, a.whole(), b.whole())
	receive(c, ann, a.left()) // used last
	receive(c, ann, d.whole())
	if _, _, err := receive(c, ann, a.left(), d.left()); err != nil {
		t.Error(err)
	}
	if _, missing, _ := receive(c, ann, b.left()); !missing {
		t.Error("three files are in a cache for two")
	}
	large := testFile{"large", bytes.Repeat(a.text, 3)}
	if got, _, err := receive(c, ann, large.whole()); err != nil || len(got["large"]) != len(large.text) {
		t.Errorf("a file without room in the cache: %v", err)
	}
	if _, _, err := receive(c, ann, a.left(), d.left()); err != nil {
		t.Errorf("after one without room: %v", err)
	}
}

// TestBrokenOff checks that nothing is lost by a transfer that ends while a cached file
// is read.
func TestBrokenOff(t *testing.T) {
	c := openTestCache(t, t.TempDir(), 10<<20)
	a := newTestFile("a", 'a')
	receive(c, Owner{}, a.whole())
	tr := c.Receive(Owner{}, func() (*wire.FileChunk, error) { return a.left()[0], nil })
	tr.Next()
	tr.Next()
	if tr.IsMissing(context.Canceled) {
		t.Error("it is said to be missing")
	}
	tr.Close()
	if _, _, err := receive(c, Owner{}, a.left()); err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
