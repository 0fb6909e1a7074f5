package gpudriver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost"
)

// write makes a file below a root.
func write(t *testing.T, root, path, text string, mode os.FileMode) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// link makes a symbolic link below a root.
func link(t *testing.T, root, path, to string) {
	t.Helper()
	path = filepath.Join(root, path)
	os.Remove(path)
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// TestCopier copies what a task needs of a driver, and again after an update of it.
func TestCopier(t *testing.T) {
	root, dir := t.TempDir(), filepath.Join(t.TempDir(), "driver")
	c := NewCopier(root, dir, "")
	if _, err := c.Dir(); !errors.Is(err, roost.NotFound) {
		t.Errorf("without a driver: %v", err)
	}
	const debian = "usr/lib/x86_64-linux-gnu/nvidia/current/"
	write(t, root, debian+"libcuda.so.550.1", "cuda", 0o644)
	link(t, root, debian+"libcuda.so.1", "libcuda.so.550.1")
	link(t, root, "usr/lib/x86_64-linux-gnu/libcuda.so.1", "nvidia/current/libcuda.so.1")
	write(t, root, "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.1", "ml", 0o644)
	write(t, root, "usr/lib/x86_64-linux-gnu/libc.so.6", "no library of the driver", 0o644)
	write(t, root, "usr/lib/nvidia/current/nvidia-smi", "smi", 0o755)
	link(t, root, "usr/lib/nvidia/current/gone", "nowhere")
	os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755)
	link(t, root, "usr/bin/nvidia-smi", "../lib/nvidia/current/nvidia-smi")
	at, err := c.Dir()
	if err != nil || filepath.Base(at) != "550.1" {
		t.Fatalf("got %s, %v", at, err)
	}
	for path, want := range map[string]string{"lib64/libcuda.so.1": "cuda", "lib64/libcuda.so.550.1": "cuda",
		"lib64/libnvidia-ml.so.550.1": "ml", "bin/nvidia-smi": "smi"} {
		if text, err := os.ReadFile(filepath.Join(at, path)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if info, err := os.Stat(filepath.Join(at, "bin/nvidia-smi")); err != nil || info.Mode() != 0o755 {
		t.Errorf("nvidia-smi: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(at, "lib64/libc.so.6")); err == nil {
		t.Error("libc.so.6 was copied")
	}
	again, err := c.Dir()
	if err != nil || again != at {
		t.Errorf("again: %s, %v", again, err)
	}
	write(t, root, debian+"libcuda.so.560.2", "new", 0o644)
	link(t, root, debian+"libcuda.so.1", "libcuda.so.560.2")
	next, err := c.Dir()
	if err != nil || filepath.Base(next) != "560.2" {
		t.Fatalf("after an update: %s, %v", next, err)
	}
	if text, err := os.ReadFile(filepath.Join(next, "lib64/libcuda.so.1")); err != nil || string(text) != "new" {
		t.Errorf("after an update: %q, %v", text, err)
	}
	if _, err := os.Stat(at); err == nil {
		t.Error("the copy of the driver before is there still")
	}
}
