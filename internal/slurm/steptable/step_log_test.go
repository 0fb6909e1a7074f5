package steptable

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func logFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "steps.log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLog holds that the last line of a step counts, and that a reader says only once
// what is new.
func TestLog(t *testing.T) {
	path := logFile(t)
	r := &LogReader{Path: path}
	if got := r.Changed(); got != nil {
		t.Fatal(got)
	}
	for n := range uint32(3) {
		if err := Log(path, &Record{Number: n, Name: "a", Began: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Changed(); len(got) != 3 {
		t.Fatal(got)
	}
	if err := Log(path, &Record{Number: 1, Name: "a", Began: 1, Ended: 2, Code: 3}); err != nil {
		t.Fatal(err)
	}
	if got := r.Changed(); len(got) != 1 || got[0].Number != 1 || got[0].Code != 3 {
		t.Fatal(got)
	}
	if got := r.Changed(); got != nil {
		t.Fatal(got)
	}
	if got := r.All(); len(got) != 3 || got[1].Ended != 2 {
		t.Fatal(got)
	}
}

// TestHostileLog holds that nothing that a user writes there is more than bounded text.
func TestHostileLog(t *testing.T) {
	path := logFile(t)
	var b bytes.Buffer
	b.WriteString("no json\n{\"n\":-1}\n[]\n\n")
	fmt.Fprintf(&b, "{\"n\":0,\"name\":%q}\n", "a\x1b[31m"+strings.Repeat("x", 2000))
	fmt.Fprintf(&b, "{\"n\":1,\"name\":%q}\n", strings.Repeat("y", 2*maxLogLine))
	for n := 2; n < 2*MaxRecords; n++ {
		fmt.Fprintf(&b, "{\"n\":%d}\n", n)
	}
	b.WriteString("{\"n\":7,\"code\":") // not whole
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &LogReader{Path: path}
	got := r.All()
	if len(got) != MaxRecords {
		t.Fatalf("%d records", len(got))
	}
	if name := got[0].Name; len(name) > maxText || strings.Contains(name, "\x1b") {
		t.Fatalf("%q", name)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("5}\n"); err != nil {
		t.Fatal(err)
	}
	if got := r.Changed(); len(got) != 1 || got[0].Number != 7 || got[0].Code != 5 {
		t.Fatal(got)
	}
}

// TestOtherFile holds that a link or a pipe in the place of the log is not read. Nobody
// waits for it either.
func TestOtherFile(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("{\"n\":0,\"name\":\"secret\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, pipe, filepath.Join(dir, "none"), dir} {
		if got := (&LogReader{Path: path}).All(); got != nil {
			t.Errorf("%s: %v", path, got)
		}
	}
}
