package driver

import (
	"os"
	"path/filepath"
	"testing"
)

// writeProgram writes a shell program into a directory.
func writeProgram(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// readFile returns the text of a file; "" if there is none.
func readFile(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name))
	return string(text)
}

// programs puts programs in front of PATH, and returns their directory. They find it as
// $FAKE.
func programs(t *testing.T, list map[string]string) string {
	dir := t.TempDir()
	for name, text := range list {
		writeProgram(t, dir, name, text)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("FAKE", dir)
	return dir
}
