package criu

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	path := requireSandbox(t)
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	first := Check(t.Context(), "/proc/self/exe", path, dir, cache)
	if !first.Works || first.Version == "" || first.Path != path {
		t.Errorf("got %+v", first)
	}
	// The second call runs nothing, so a program that is no agent suffices.
	if second := Check(t.Context(), "/bin/false", path, dir, cache); second != first {
		t.Errorf("the second time: got %+v, want %+v", second, first)
	}
	if v := Check(t.Context(), "/bin/false", path, dir, ""); v.Works || v.Why == "" {
		t.Errorf("without a cache: got %+v", v)
	}
	os.Remove(cache)
	if v := Check(t.Context(), "/bin/false", path, dir, cache); v.Works || v.Why == "" {
		t.Errorf("without a self-test: got %+v", v)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if v := Check(t.Context(), "/proc/self/exe", "/bin/true", t.TempDir(), ""); v.Works ||
		!strings.Contains(v.Why, "version") {
		t.Errorf("/bin/true: got %+v", v)
	}
	anybodys := filepath.Join(t.TempDir(), "criu")
	os.WriteFile(anybodys, []byte("#!/bin/sh\n"), 0o777)
	os.Chmod(anybodys, 0o777)
	if v := Check(t.Context(), "/proc/self/exe", anybodys, t.TempDir(), ""); v.Works ||
		!strings.Contains(v.Why, "others may write") {
		t.Errorf("a program that others may write: got %+v", v)
	}
}

// TestCheckCache checks what makes a stored result invalid. That is another program in
// the same place, other rights, another boot, a file that others could have written, and
// age where the program has failed.
func TestCheckCache(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root's file counts")
	}
	dir := t.TempDir()
	program, cache := filepath.Join(dir, "criu"), filepath.Join(dir, "cache")
	install := func() checkKey {
		t.Helper()
		os.Remove(program)
		if err := os.WriteFile(program, []byte("criu"), 0o755); err != nil {
			t.Fatal(err)
		}
		key, err := newCheckKey(program)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	key, now := install(), time.Now()
	works := CheckResult{Path: program, Version: "4.2", Works: true}
	fails := CheckResult{Path: program, Why: "no module"}
	if key.Rights == "" || key.Boot == "" {
		t.Fatalf("key: %+v", key)
	}
	expect := func(what string, key checkKey, now time.Time, want CheckResult, found bool) {
		t.Helper()
		if got, ok := readCheck(cache, key, now); ok != found || found && got != want {
			t.Errorf("%s: got %+v, %v, want %+v, %v", what, got, ok, want, found)
		}
	}
	writeCheck(cache, key, now, works)
	expect("stored", key, now.Add(24*time.Hour), works, true)
	boot, rights := key, key
	boot.Boot, rights.Rights = "another", "0"
	expect("after a boot", boot, now, works, false)
	expect("with fewer rights", rights, now, works, false)
	os.Chmod(cache, 0o622)
	expect("a file that others may write", key, now, works, false)
	os.Chmod(cache, 0o600)
	os.Chown(cache, 65534, 65534)
	expect("a file of another user", key, now, works, false)
	writeCheck(cache, key, now, fails)
	expect("a failure", key, now.Add(time.Minute), fails, true)
	expect("an old failure", key, now.Add(time.Hour), fails, false)
	writeCheck(cache, key, now, works)
	expect("another program", install(), now, works, false)
	os.WriteFile(cache, []byte("{"), 0o600)
	expect("a damaged file", key, now, works, false)
}

func TestFind(t *testing.T) {
	if path, err := Find("/bin/true"); err != nil || path != "/bin/true" {
		t.Errorf("configured: got %q, %v", path, err)
	}
	if _, err := Find("/nowhere/criu"); !errors.Is(err, roost.NotFound) {
		t.Errorf("missing: got %v", err)
	}
}
