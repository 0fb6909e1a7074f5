package appendlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/checksum"
	"github.com/roost-batch/roost/internal/damage"
)

var testID = ID{1, 2, 3}

// newLog creates a log whose first entry has number 7.
func newLog(t testing.TB) (dir string, l *Log) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	if err := Prepare(dir, testID, 7); err != nil {
		t.Fatal(err)
	}
	return dir, reopen(t, dir, 7, nil)
}

// reopen opens a log and compares its entries from a number on.
func reopen(t testing.TB, dir string, from uint64, want map[uint64]string) *Log {
	t.Helper()
	n := 0
	l, err := Open(dir, testID, from, func(number uint64, data []byte) error {
		if got := string(data); got != want[number] {
			t.Errorf("entry %d: got %q, want %q", number, got, want[number])
		}
		n++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for number := range want {
		if number < from {
			n++
		}
	}
	if n != len(want) {
		t.Fatalf("got %d entries, want %d", n, len(want))
	}
	return l
}

func appendAll(t testing.TB, l *Log, want map[uint64]string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		next := l.Next()
		err := l.Write([]byte(text))
		if err == nil {
			var n uint64
			if n, err = l.Sync(); n != next {
				t.Fatalf("got number %d, want %d", n, next)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		want[next] = text
	}
}

// TestAppend checks that entries of all sizes survive any number of reopenings. Segments
// must end where asked, and dropped entries must be gone.
func TestAppend(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	dir, l := newLog(t)
	want := map[uint64]string{}
	from := uint64(7)
	for range 300 {
		size := 1 + rng.IntN(300)
		if rng.IntN(20) == 0 {
			size = rng.IntN(3 * growth)
		}
		text := bytes.Repeat([]byte{byte(rng.Uint32())}, 1+size)
		appendAll(t, l, want, string(text))
		switch rng.IntN(12) {
		case 0:
			l.Close()
			l = reopen(t, dir, from, want)
		case 1:
			if err := l.BeginSegment(); err != nil {
				t.Fatal(err)
			}
		case 2:
			from += rng.Uint64N(l.Next() - from)
			if err := l.DropBefore(from); err != nil {
				t.Fatal(err)
			}
		case 3:
			n := l.Next() - from
			if err := l.EachEntry(from, l.Next(), func(number uint64, data []byte) error {
				if n--; string(data) != want[number] {
					t.Errorf("entry %d: got %d bytes, want %d", number, len(data), len(want[number]))
				}
				return nil
			}); err != nil || n != 0 {
				t.Fatalf("%d entries are missing: %v", n, err)
			}
		}
	}
	if err := l.EachEntry(7, 8, func(uint64, []byte) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("dropped entries: got %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) > 60 {
		t.Errorf("%d segments are left", len(files))
	}
}

// TestReadersWhileWriting reads and drops entries in other goroutines than the one that
// writes.
func TestReadersWhileWriting(t *testing.T) {
	_, l := newLog(t)
	var others sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		others.Go(func() {
			for from := l.Next(); ; from = l.Next() {
				err := l.EachEntry(from-min(from-7, 50), from, func(number uint64, data []byte) error {
					if string(data) != fmt.Sprint("entry ", number) {
						t.Errorf("entry %d: got %q", number, data)
					}
					return nil
				})
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := l.DropBefore(l.Next()); err != nil {
					t.Error(err)
				}
			}
		}
	})
	want := map[uint64]string{}
	for n := range 1000 {
		appendAll(t, l, want, fmt.Sprint("entry ", l.Next()))
		if n%20 == 0 {
			if err := l.BeginSegment(); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	others.Wait()
}

// TestIncompleteWrite loses power while the last entry is written. Any of its sectors may
// be on disk, and any part of one. The earlier entries must be there, and new ones follow
// them, also when the incomplete entry is longer.
func TestIncompleteWrite(t *testing.T) {
	dir, l := newLog(t)
	want := map[uint64]string{}
	appendAll(t, l, want, "first", strings.Repeat("second", 100))
	before, mark := readFiles(t, dir)
	last := strings.Repeat("third", 1000)
	appendAll(t, l, map[uint64]string{}, last)
	l.Close()
	after, _ := readFiles(t, dir)
	rng := rand.New(rand.NewPCG(3, 4))
	end := headerSize + entrySize(5) + entrySize(600)
	for range 200 {
		b := slices.Clone(before)
		b = append(b, make([]byte, len(after)-len(b))...)
		for at := end; at < len(after); {
			next := min(at/512*512+512, len(after))
			if rng.IntN(2) == 0 {
				copy(b[at:next], after[at:next])
			}
			at = next
		}
		if rng.IntN(3) == 0 { // a file system may also lose the new size
			b = b[:max(len(before), rng.IntN(len(b)))]
		}
		if bytes.Equal(b, after) {
			continue
		}
		writeFiles(t, dir, b, mark)
		l := reopen(t, dir, 7, want)
		now := map[uint64]string{7: want[7], 8: want[8]}
		appendAll(t, l, now, "instead of the third", "fourth")
		l.Close()
		reopen(t, dir, 7, now).Close()
	}
}

func readFiles(t testing.TB, dir string) (segment, mark []byte) {
	t.Helper()
	segment, err := os.ReadFile(segmentPath(dir, 7))
	if err == nil {
		mark, err = os.ReadFile(dir + markSuffix)
	}
	if err != nil {
		t.Fatal(err)
	}
	return segment, mark
}

func writeFiles(t testing.TB, dir string, segment, mark []byte) {
	t.Helper()
	if err := errors.Join(os.WriteFile(segmentPath(dir, 7), segment, 0o600),
		os.WriteFile(dir+markSuffix, mark, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestDamage damages a log in many ways. Opening it gives an error, or exactly what was
// written. What Inspect calls intact or corrected is what was written.
func TestDamage(t *testing.T) {
	dir, l := newLog(t)
	want := map[uint64]string{}
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 60 {
		text := make([]byte, 1+rng.IntN(200)*rng.IntN(8))
		for i := range text {
			text[i] = byte(rng.Uint32())
		}
		appendAll(t, l, want, string(text))
		if i == 40 {
			if err := l.BeginSegment(); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.Close()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// the room for further entries is not part of the log
		if err := os.WriteFile(path, bytes.TrimRight(whole, "\x00"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused, lost, corrected := 0, 0, 0
	for _, path := range append(paths, dir+markSuffix) {
		damage.ForEach(t, path, 300, func(what string) {
			what = filepath.Base(path) + ": " + what
			intact := map[uint64]string{}
			_, findings, err := Inspect(dir, &testID, 7, func(number uint64, data []byte) error {
				intact[number] = string(data)
				return nil
			})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for _, f := range findings {
				if f.Corrected && f.Data != nil {
					intact[f.First] = string(f.Data)
					corrected++
				}
			}
			for number, text := range intact {
				if text != want[number] {
					t.Fatalf("%s: entry %d is another than was written", what, number)
				}
			}
			named := 0
			for number := range want {
				if _, there := intact[number]; !there {
					lost++
					if slices.ContainsFunc(findings, func(f Finding) bool {
						return f.First <= number && number <= f.Last
					}) {
						named++
					}
				}
			}
			if named != len(want)-len(intact) {
				t.Fatalf("%s: %d of %d entries are lost, and %d named: %+v", what, len(want)-len(intact), len(want),
					named, findings)
			}
			if len(findings) == 0 {
				reopen(t, dir, 7, want).Close()
				return
			}
			refused++
			var damaged *DamageError
			if _, err := Open(dir, testID, 7, func(uint64, []byte) error { return nil }); !errors.As(err, &damaged) {
				t.Fatalf("%s: got %v", what, err)
			}
		})
	}
	t.Logf("%d were refused; %d entries were corrected, %d lost", refused, corrected, lost)
	if refused < 200 || corrected < 50 || lost > 10*refused {
		t.Error("that is not what such damages do")
	}
}

// TestOlderCopy checks that a log without its last entries is refused, as of an older
// copy. A log without its beginning or without all of it must be, too.
func TestOlderCopy(t *testing.T) {
	dir, l := newLog(t)
	want := map[uint64]string{}
	appendAll(t, l, want, "first")
	old, _ := readFiles(t, dir)
	appendAll(t, l, want, "second")
	if err := l.BeginSegment(); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, want, "third")
	l.Close()
	refused := func(words string) {
		t.Helper()
		_, err := Open(dir, testID, 7, func(uint64, []byte) error { return nil })
		var damaged *DamageError
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v", err)
		}
	}
	_, mark := readFiles(t, dir)
	if err := os.Remove(segmentPath(dir, 9)); err != nil {
		t.Fatal(err)
	}
	refused("entry 9: gone from the end")
	writeFiles(t, dir, old, mark)
	refused("entry 8: gone from the end")
	if err := os.Rename(segmentPath(dir, 7), segmentPath(dir, 8)); err != nil {
		t.Fatal(err)
	}
	refused("entry 7: gone from the beginning")
	if err := os.Remove(segmentPath(dir, 8)); err != nil {
		t.Fatal(err)
	}
	refused("entry 7: the log is gone")
}

// TestLaterFormat checks that a segment of a later format is refused with a sentence. It
// must not be taken for a damaged one.
func TestLaterFormat(t *testing.T) {
	dir, l := newLog(t)
	l.Close()
	b, _ := readFiles(t, dir)
	later := appendHeader(nil, testID, 7)
	later[11]++
	later = withChecksum(later)
	copy(b, later)
	_, mark := readFiles(t, dir)
	writeFiles(t, dir, b, mark)
	for _, read := range []func() error{
		func() error { _, err := Open(dir, testID, 7, nil); return err },
		func() error { _, _, err := Inspect(dir, nil, 7, nil); return err },
	} {
		if err := read(); !errors.Is(err, roost.BadConfig) ||
			!strings.Contains(err.Error(), "a newer version of Roost") {
			t.Errorf("got %v", err)
		}
	}
}

// TestFullDisk appends to a full disk until there is room again. Nothing acknowledged is
// lost, and no new segment is half made.
func TestFullDisk(t *testing.T) {
	disk := damage.SmallDisk(t, "", 256<<10, 0o700)
	dir := filepath.Join(disk, "log")
	if err := Prepare(dir, testID, 7); err != nil {
		t.Fatal(err)
	}
	l := reopen(t, dir, 7, nil)
	want := map[uint64]string{}
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 100<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 1000)
	for err := error(nil); err == nil; {
		if err = l.Write([]byte(text)); err == nil {
			next := l.Next()
			if _, err = l.Sync(); err == nil {
				want[next] = text
			}
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if len(want) < 100 {
		t.Errorf("only %d entries have room", len(want))
	}
	if err := l.BeginSegment(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a segment on a full disk: got %v", err)
	}
	if err := l.Write([]byte(text)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("again: got %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, want, text, "short")
	if err := l.BeginSegment(); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, want, "in a new segment")
	l.Close()
	reopen(t, dir, 7, want)
}

// BenchmarkAppend measures an entry of a usual size.
func BenchmarkAppend(b *testing.B) {
	_, l := newLog(b)
	data := make([]byte, 150)
	for b.Loop() {
		if err := l.Write(data); err != nil {
			b.Fatal(err)
		}
		if _, err := l.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func withChecksum(header []byte) []byte {
	body := header[:headerSize-checksum.Size]
	return binary.BigEndian.AppendUint32(body, checksum.Of(body))
}

// TestSyncLater checks entries without a sync of their own. They are read at once, are
// there when the log is opened again, and can be mixed with others.
func TestSyncLater(t *testing.T) {
	dir, l := newLog(t)
	want := map[uint64]string{}
	for i := range 50 {
		data := fmt.Sprint("entry ", i)
		if err := l.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
		number, err := l.SyncLater()
		switch {
		case err != nil:
			t.Fatal(err)
		case i%10 == 7:
			err = l.Flush()
		case i%10 == 8:
			err = l.BeginSegment()
		case i%10 == 9:
			appendAll(t, l, want, fmt.Sprint("synced ", i))
		}
		if err != nil {
			t.Fatal(err)
		}
		want[number] = data
		if err := l.EachEntry(number, l.Next(), func(n uint64, b []byte) error {
			if n == number && string(b) != data {
				t.Errorf("entry %d is %q", n, b)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.SyncLater(); err == nil {
		t.Error("an entry that was not written is in the log")
	}
	l.Close()
	reopen(t, dir, 7, want)
}
