package outputfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

var small = Bounds{Size: 64 << 10, Files: 3}

// trim trims a file, or skips the test where the file system cannot.
func trim(t *testing.T, path string, b Bounds) bool {
	t.Helper()
	trimmed, err := Trim(path, b)
	if errors.Is(err, roost.Unavailable) {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return trimmed
}

// data is what is left of a file, and where it begins.
func data(t *testing.T, path string) (start int64, text string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if start, err = DataStart(f); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(io.NewSectionReader(f, start, info.Size()-start))
	if err != nil {
		t.Fatal(err)
	}
	return start, string(all)
}

// TestTrimWhileWritten has a program append lines while the file is trimmed. What is left
// must always be whole lines without a gap up to the last one, within the bounds.
func TestTrimWhileWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const lines = 40_000
	var writing sync.WaitGroup
	done := make(chan struct{})
	writing.Go(func() {
		defer close(done)
		for i := range lines {
			if _, err := fmt.Fprintf(f, "line %d %s\n", i, strings.Repeat("x", i%97)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer writing.Wait()
	trims := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if trim(t, path, small) {
			trims++
			checkLines(t, path)
		}
	}
	if trims == 0 {
		t.Fatal("the file was never trimmed")
	}
	start, text := checkLines(t, path)
	if !strings.Contains(text, fmt.Sprintf("line %d ", lines-1)) {
		t.Errorf("the last line is lost: %.80q", text[max(len(text)-80, 0):])
	}
	if start == 0 || int64(len(text)) > int64(small.Total()) {
		t.Errorf("%d bytes are left from %d, want at most %v", len(text), start, small.Total())
	}
	if least := int64(small.Total()-small.Size) - longestLine; int64(len(text)) < least {
		t.Errorf("%d bytes are left, want at least %d", len(text), least)
	}
}

// checkLines finds the lines that are left to follow each other.
func checkLines(t *testing.T, path string) (start int64, text string) {
	t.Helper()
	start, text = data(t, path)
	next := -1
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var n int
		if _, err := fmt.Sscanf(line, "line %d", &n); err != nil || next >= 0 && n != next {
			t.Fatalf("got line %.40q, want number %d (%v)", line, next, err)
		}
		next = n + 1
	}
	return start, text
}

// TestTrim has files that are not trimmed, and lines without an end.
func TestTrim(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if _, err := Trim(path, small); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("y\n"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if trim(t, path, small) {
		t.Error("a small file was trimmed")
	}
	if start, text := data(t, path); start != 0 || len(text) != 2000 {
		t.Errorf("got %d bytes from %d, want 2000 from 0", len(text), start)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	if trimmed, _ := Trim(link, Bounds{Size: 1, Files: 2}); trimmed {
		t.Error("a symbolic link was followed")
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("y"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if !trim(t, path, small) {
		t.Error("one long line was not trimmed")
	}
	if _, text := data(t, path); len(text) != int(small.Total()-small.Size) {
		t.Errorf("%d bytes are left of one long line, want %d", len(text), small.Total()-small.Size)
	}
}

// TestSparseFile has a file of which its writer has made holes: it looks huge, and has
// little.
func TestSparseFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("end\n"), 1<<40); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	if trim(t, path, small) {
		t.Error("a file with little on disk was trimmed")
	}
	to := filepath.Join(t.TempDir(), "copy")
	start, size, err := CopyData(to, path, int64(small.Total()))
	if err != nil || start < 1<<40-longestLine || size > longestLine {
		t.Fatalf("got %d bytes from %d (%v), want the last ones", size, start, err)
	}
	if err := unix.Ftruncate(int(f.Fd()), 1<<41); err != nil {
		t.Fatal(err)
	}
	if start, size, err = CopyData(to, path, int64(small.Total())); err != nil || size > int64(small.Total()) {
		t.Fatalf("got %d bytes from %d (%v), want at most %v", size, start, err, small.Total())
	}
}

// TestCopyData copies what is left of a trimmed file.
func TestCopyData(t *testing.T) {
	dir := t.TempDir()
	path, to := filepath.Join(dir, "out"), filepath.Join(dir, "copy")
	if err := os.WriteFile(path, bytes.Repeat([]byte("0123456789\n"), 50_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if !trim(t, path, small) {
		t.Fatal("the file was not trimmed")
	}
	start, text := data(t, path)
	for _, most := range []int64{1 << 30, int64(small.Size)} {
		from, size, err := CopyData(to, path, most)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(to)
		if err != nil || int64(len(got)) != size || size > most || !strings.HasSuffix(text, string(got)) ||
			got[0] != '0' {
			t.Errorf("most %d: got %d bytes from %d (%v), want the end of %d from %d", most, size, from, err,
				len(text), start)
		}
		if from+size != 11*50_000 {
			t.Errorf("most %d: it ends at %d", most, from+size)
		}
	}
}
