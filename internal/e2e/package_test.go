package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost/internal/config"
)

// TestPackages: packages with labels, from push to the task that reads them.
func TestPackages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root mounts packages")
	}
	p := &containerPool{t: t, home: t.TempDir(), Pool: nodePool(t, &config.Node{
		Images: &config.CheckpointServerSettings{}, Startds: twoNodes()})}
	p.checkPush()
}

// makePackage makes a directory with the files of a package.
func (p *containerPool) makePackage(text string) (dir string) {
	p.t.Helper()
	dir = filepath.Join(p.home, "package")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	p.write("package/name", text+"\n")
	return dir
}

// checkPush pushes three versions, and looks at what the pool says of them.
func (p *containerPool) checkPush() {
	p.t.Helper()
	p.expect("roost package push DIR NAME@VERSION puts one into the pool", 0, "package", "list")
	dir := p.makePackage("one")
	if err := os.Chmod(filepath.Join(dir, "name"), 0o755|os.ModeSetuid); err != nil {
		p.t.Fatal(err)
	}
	p.expect("set-user-ID bits are left out", 0, "package", "push", dir, "web@1")
	p.expect("web@1: sha256:", 0, "package", "push", dir, "web@1")
	p.makePackage("two")
	p.expect("a version never changes: choose another version", 75, "package", "push", dir, "web@1")
	p.expect("web@2: sha256:", 0, "package", "push", dir, "web@2")
	p.expect("web@live is web@1 now", 0, "package", "label", "web@live", "web@1")
	p.expect("live=1", 0, "package", "list")
	p.expect(`"from": ""`, 0, "package", "show", "web", "--json")
	for want, args := range map[string][]string{
		"a version begins with a digit":               {"push", dir, "web@beta"},
		"each has up to 100 lower-case letters":       {"push", dir, "Web@1"},
		"a version never moves":                       {"label", "web@1", "web@2"},
		"a label names a version of its own name":     {"label", "web@live", "other@2"},
		"push needs a directory and NAME@VERSION":     {"push", dir},
		"name it without version and label":           {"show", "web@1"},
		"--any-case has no meaning for roost package": {"list", "--any-case"},
	} {
		p.expect(want, 64, append([]string{"package"}, args...)...)
	}
	p.expect("its label live names it", 75, "package", "rm", "web@1")
	p.expect("no such version or label", 68, "package", "label", "web@live", "web@7")
	p.expect("is no directory that can be read", 66, "package", "push", dir+"/none", "web@9")
}
