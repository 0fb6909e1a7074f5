package criu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"errors"

	"github.com/roost-batch/roost"
)

func TestCheck(t *testing.T) {
	path := requireSandbox(t)
	dir := t.TempDir()
	first := Check(t.Context(), "/proc/self/exe", path, dir)
	if !first.Works || first.Version == "" || first.Path != path {
		t.Errorf("got %+v", first)
	}
	// The second call runs nothing, so a program that is no agent suffices.
	if second := Check(t.Context(), "/bin/false", path, dir); second != first {
		t.Errorf("the second time: got %+v, want %+v", second, first)
	}
	os.Remove(filepath.Join(dir, cachedCheckName))
	if v := Check(t.Context(), "/bin/false", path, dir); v.Works || v.Why == "" {
		t.Errorf("without a self-test: got %+v", v)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if v := Check(t.Context(), "/proc/self/exe", "/bin/true", t.TempDir()); v.Works ||
		!strings.Contains(v.Why, "version") {
		t.Errorf("/bin/true: got %+v", v)
	}
	anybodys := filepath.Join(t.TempDir(), "criu")
	os.WriteFile(anybodys, []byte("#!/bin/sh\n"), 0o777)
	os.Chmod(anybodys, 0o777)
	if v := Check(t.Context(), "/proc/self/exe", anybodys, t.TempDir()); v.Works ||
		!strings.Contains(v.Why, "others may write") {
		t.Errorf("a program that others may write: got %+v", v)
	}
}

func TestFind(t *testing.T) {
	if path, err := Find("/bin/true"); err != nil || path != "/bin/true" {
		t.Errorf("configured: got %q, %v", path, err)
	}
	if _, err := Find("/nowhere/criu"); !errors.Is(err, roost.NotFound) {
		t.Errorf("missing: got %v", err)
	}
}
