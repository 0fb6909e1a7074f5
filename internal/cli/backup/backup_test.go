package backup

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
)

// newNode makes the directory of a node without daemons, and returns its node file.
func newNode(t *testing.T) (dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "node")
	for path, text := range map[string]string{
		"etc/node.hcl":      "name = \"n1\"\ndir = \"..\"\ncollector {}\n",
		"etc/key.pem":       "secret",
		"authority/ca.key":  strings.Repeat("key", 100_000),
		"log/collector.log": "a line",
		"run/master.json":   "{",
		"startd/claims/1":   "a claim",
		"empty":             "",
	} {
		path = filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750),
			os.WriteFile(path, []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err := errors.Join(err, os.Symlink("ca.key", filepath.Join(dir, "authority", "link")),
		os.Chmod(filepath.Join(dir, "authority", "ca.key"), 0o400)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return dir, filepath.Join(dir, "etc", "node.hcl")
}

// run runs a command, and returns what it printed and its exit status.
func run(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	a, out, errs := clitest.NewApp(t, t.TempDir(), frame.WithCommonFlags([]*frame.Command{Command(), RestoreCommand()}))
	status = a.Run(t.Context(), append([]string{"roost"}, args...))
	return out.String(), errs.String(), status
}

// tree describes the files below a directory.
func tree(t *testing.T, dir string) (text string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		link, _ := os.Readlink(path)
		var content []byte
		if d.Type().IsRegular() {
			content, err = os.ReadFile(path)
		}
		text += fmt.Sprintf("%s %v %s %.20s %d\n", strings.TrimPrefix(path, dir), info.Mode(), link, content,
			len(content))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRestore checks that what comes out of an archive is what went in. Logs, what
// startds store and sockets are left out.
func TestRestore(t *testing.T) {
	dir, file := newNode(t)
	archive := filepath.Join(t.TempDir(), "b.tar.gz")
	if _, errs, status := run(t, "backup", "--config", file, archive); status != 0 {
		t.Fatal(errs)
	}
	if info, err := os.Stat(archive); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive: %v, %v", info.Mode(), err)
	}
	lost := dir + ".lost"
	if err := os.Rename(dir, lost); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := run(t, "restore", archive); status != 0 {
		t.Fatal(errs)
	}
	for _, gone := range []string{"log", "run", "startd", "s"} {
		if _, err := os.Lstat(filepath.Join(dir, gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", gone, err)
		}
		if err := os.RemoveAll(filepath.Join(lost, gone)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := tree(t, dir), tree(t, lost); got != want {
		t.Errorf("restored:\n%swant:\n%s", got, want)
	}
	if _, errs, status := run(t, "restore", archive); status != 75 || !strings.Contains(errs, "is there already") {
		t.Errorf("once more: %d, %s", status, errs)
	}
}

// TestDamagedArchive checks that no damage of an archive is restored, and that nothing is
// left of the attempt.
func TestDamagedArchive(t *testing.T) {
	dir, file := newNode(t)
	archive := filepath.Join(t.TempDir(), "b.tar.gz")
	if _, errs, status := run(t, "backup", "--config", file, archive); status != 0 {
		t.Fatal(errs)
	}
	whole, err := os.ReadFile(archive)
	if err := errors.Join(err, os.Rename(dir, dir+".lost")); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "d.tar.gz")
	try := func(what string, text []byte) {
		t.Helper()
		if err := os.WriteFile(damaged, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs, status := run(t, "restore", damaged); status != 65 || errs == "" {
			t.Errorf("%s: %d, %s", what, status, errs)
		}
		for _, path := range []string{dir, dir + stagingSuffix} {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%s: it left %s", what, path)
			}
		}
	}
	for n := 0; n < len(whole); n += max(1, len(whole)/40) {
		try(fmt.Sprint("cut after ", n), whole[:n])
	}
	content, err := unpacked(whole)
	if err != nil {
		t.Fatal(err)
	}
	for n := 10; n < len(whole); n += max(1, len(whole)/60) {
		flipped := bytes.Clone(whole)
		flipped[n] ^= 0x10
		if same, err := unpacked(flipped); err == nil && bytes.Equal(same, content) {
			continue // a bit that fills up the last byte of the compressed data, and means nothing
		}
		try(fmt.Sprint("a flipped bit at ", n), flipped)
	}
}

// unpacked returns what is compressed in an archive.
func unpacked(archive []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// TestManifests checks which manifests are refused.
func TestManifests(t *testing.T) {
	good := Manifest{Version: 1, Dir: "/d", NodeFile: "/d/etc/node.hcl",
		Files: []StoredFile{{Path: "/d/x", Mode: 0o600}}}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(m *Manifest){
		"a later format":     func(m *Manifest) { m.Version = 2 },
		"no format":          func(m *Manifest) { m.Version = 0 },
		"no directory":       func(m *Manifest) { m.Dir = "" },
		"a relative path":    func(m *Manifest) { m.Files[0].Path = "d/x" },
		"a path that climbs": func(m *Manifest) { m.Files[0].Path = "/d/../etc/x" },
		"a device":           func(m *Manifest) { m.Files[0].Mode |= fs.ModeDevice },
		"a setuid program":   func(m *Manifest) { m.Files[0].Mode |= fs.ModeSetuid },
		"a negative size":    func(m *Manifest) { m.Files[0].Size = -1 },
	} {
		m := good
		m.Files = []StoredFile{good.Files[0]}
		if change(&m); m.check() == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}
