package sitescript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrusted: nothing is run with our rights that somebody else can write.
func TestTrusted(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := UntrustedReason(path); err != nil {
		t.Errorf("own: %v", err)
	}
	link := filepath.Join(dir, "link")
	os.Symlink(path, link)
	for _, test := range []struct {
		path      string
		file, dir os.FileMode
		says      string
	}{
		{path, 0o775, 0o755, "others may write"}, {path, 0o755, 0o777, "others may write"},
		{path, 0o644, 0o755, "cannot be executed"},
		{link, 0o755, 0o755, "no regular file"}, {dir, 0o755, 0o755, "no regular file"},
		{dir + "/no", 0o755, 0o755, "no such file"},
	} {
		os.Chmod(path, test.file)
		os.Chmod(dir, test.dir)
		if err := UntrustedReason(test.path); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s %v %v: got %v, want %q", test.path, test.file, test.dir, err, test.says)
		}
	}
}
