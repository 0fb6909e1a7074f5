package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWrite: the text and the mode are the new ones, and nothing else is left behind.
func TestWrite(t *testing.T) {
	for name, write := range map[string]func(string, []byte, os.FileMode) error{
		"Write": Write, "WriteDurable": WriteDurable,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "state")
		for _, text := range []string{"first", "second, which is longer", ""} {
			if err := write(path, []byte(text), 0o640); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, err := os.ReadFile(path)
			info, _ := os.Stat(path)
			if err != nil || string(got) != text || info.Mode().Perm() != 0o640 {
				t.Errorf("%s: got %q, %v, %v", name, got, info.Mode(), err)
			}
		}
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("%s: got %d files, want one", name, len(files))
		}
	}
}

// TestWriteFails checks that the old file stays where no file can take the name. The new
// file is removed.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("text"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("got %d files, want the directory alone", len(files))
	}
	if err := WriteDurable(filepath.Join(dir, "none", "state"), nil, 0o600); err == nil {
		t.Error("a file was written into no directory")
	}
}
