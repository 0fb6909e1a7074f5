// Package imagetest makes small container images for tests.
package imagetest

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/roost-batch/roost/internal/image/erofs"
	"github.com/roost-batch/roost/internal/store"
)

// CopyPrograms copies programs of the machine and their libraries below a root.
func CopyPrograms(t testing.TB, root string, programs ...string) {
	t.Helper()
	for _, program := range programs {
		out, err := exec.Command("ldd", program).CombinedOutput()
		if err != nil {
			t.Fatalf("ldd %s: %v\n%s", program, err, out)
		}
		files := []string{program}
		for _, m := range libraryPath.FindAllStringSubmatch(string(out), -1) {
			files = append(files, m[1])
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			to := filepath.Join(root, f)
			if err == nil {
				err = os.MkdirAll(filepath.Dir(to), 0o755)
			}
			if err == nil {
				err = os.WriteFile(to, text, 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// libraryPath is a library in the output of ldd(1).
var libraryPath = regexp.MustCompile(`(/\S+) \(0x`)

// StoreTree makes an image of what is below a root, and stores it. All of it is root's.
func StoreTree(t testing.TB, to *store.Directory, root string) store.Digest {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := erofs.NewWriter(f)
	if err := w.Finish(readTree(t, w, root)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	manifest, err := to.Add(context.Background(), f, "test")
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Digest()
}

func readTree(t testing.TB, w *erofs.Writer, dir string) *erofs.Node {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := erofs.NewDirectory(0o755)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.IsDir():
			child := readTree(t, w, path)
			child.Mode = erofs.TypeDirectory | uint16(info.Mode().Perm())
			n.Children[e.Name()] = child
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				t.Fatal(err)
			}
			n.Children[e.Name()] = &erofs.Node{Mode: erofs.TypeSymlink | 0o777, Target: target}
		default:
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			block, err := w.WriteData(bytes.NewReader(text), int64(len(text)))
			if err != nil {
				t.Fatal(err)
			}
			n.Children[e.Name()] = &erofs.Node{Mode: erofs.TypeRegular | uint16(info.Mode().Perm()),
				Size: int64(len(text)), Block: block}
		}
	}
	return n
}
