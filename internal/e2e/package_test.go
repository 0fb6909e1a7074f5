package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
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
	p.checkPackageJobs()
	p.checkNamedImage()
	p.checkEarlyFetch()
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

// checkPackageJobs runs jobs with the package. A label that moves while a job waits does
// not change the job.
func (p *containerPool) checkPackageJobs() {
	p.t.Helper()
	head := "  directory = \"" + p.home + "\"\n  cpus = 0.1\n  memory = \"16MiB\"\n" +
		"  package \"web@live\" { at = \"/roost-app\" }\n"
	job := p.write("package.hcl", "job \"reads\" {\n"+head+`  script = <<-END
    cat /roost-app/name
    echo mine 2>/dev/null >/roost-app/name || echo read-only
    test -u /roost-app/name || echo no set-user-ID bit
    ls -d /etc /usr
  END
}
`)
	const rest = "\nread-only\nno set-user-ID bit\n/etc\n/usr\n"
	p.mustRun(p.t, "submit", "--hold", job)
	p.mustRun(p.t, "package", "label", "web@live", "web@2")
	p.mustRun(p.t, "submit", job)
	p.mustRun(p.t, "wait", "2")
	p.expect("two"+rest, 0, "logs", "2")
	p.mustRun(p.t, "release", "1")
	p.mustRun(p.t, "wait", "1")
	p.expect("one"+rest, 0, "logs", "1")
	p.expect("web@live at /roost-app, pinned to web@1", 0, "show", "1")
	if _, err := os.Lstat("/roost-app"); err == nil {
		p.t.Error("the machine has /roost-app")
	}
	p.mustRun(p.t, "package", "label", "web@live", "web@1")
	p.expect(`"to": "1"`, 0, "package", "show", "web", "--json")
	for want, text := range map[string]string{
		`package "none": not found`: "none@live\" { at = \"/x\" }",
		"no such version or label":  "web@7\" { at = \"/x\" }",
	} {
		bad := p.write("bad.hcl", "job \"bad\" {\n  command = [\"true\"]\n  package \""+text+"\n}\n")
		p.expect(want, 68, "submit", bad)
	}
}

// checkNamedImage names an image, which jobs have without its archive from then on.
func (p *containerPool) checkNamedImage() {
	p.t.Helper()
	p.makeImage("blue")
	archive := "docker-archive:" + p.home + "/image.tar"
	p.mustRun(p.t, "image", "pull", "--name", "shell@1", archive)
	p.mustRun(p.t, "package", "label", "shell@live", "shell@1")
	if err := os.Remove(p.home + "/image.tar"); err != nil {
		p.t.Fatal(err)
	}
	job := p.write("named.hcl", "job \"named\" {\n  image = \"shell@live\"\n  image_entrypoint = true\n"+
		"  directory = \""+p.home+"\"\n  cpus = 0.1\n  memory = \"16MiB\"\n"+
		"  package \"web@live\" { at = \"/data/web\" }\n"+
		"  command = [\"/bin/sh\", \"-c\", \"echo $COLOR; cat /name /data/web/name\"]\n}\n")
	p.mustRun(p.t, "submit", job)
	p.awaitSuccess(p.t, "named")
	p.expect("entered\nblue\nfrom the image\none\n", 0, "logs", "@named")
	p.expect("it is a package and no container image", 65, "submit", p.write("wrong.hcl",
		"job \"wrong\" {\n  image = \"web@live\"\n  command = [\"true\"]\n}\n"))
	p.expect("--name is for roost image pull, with one image", 64, "image", "inspect", "--name", "x@1", archive)
}

// checkEarlyFetch updates a service to another package. The machine of the task that
// waits for the canary has the package already.
func (p *containerPool) checkEarlyFetch() {
	p.t.Helper()
	revision := func(version string) (job string) {
		return p.write("early.hcl", `job "early" {
  directory = "`+p.home+`"
  count     = 2
  cpus      = 1.5
  memory    = "16MiB"
  script    = "cat /roost-app/name; exec sleep 1000"
  package "`+version+`" { at = "/roost-app" }
  service {
    drain = "0s"
  }
  update {
    settle  = "0.1s"
    canary  = 1
    promote = "manual"
  }
}
`)
	}
	p.makePackage("three")
	p.mustRun(p.t, "package", "push", filepath.Join(p.home, "package"), "web@3")
	p.mustRun(p.t, "submit", revision("web@1"))
	p.mustRun(p.t, "wait", "--ready", "@early")
	if n := p.machinesWith("web@3"); n != 0 {
		p.t.Errorf("%d machines have a package that nobody uses", n)
	}
	p.expect("its machines fetch 1 new images and packages before they need them", 0, "update", revision("web@3"))
	awaitTrue(p.t, "both machines have the new package", func() bool { return p.machinesWith("web@3") == 2 })
	awaitTrue(p.t, "one task is at the old revision", func() bool {
		return strings.Contains(p.mustRun(p.t, "show", "--json", "@early"), `"waiting-promote"`)
	})
	p.mustRun(p.t, "rm", "--yes", "@early")
}

// machinesWith returns how many machines have fetched a version of a package.
func (p *containerPool) machinesWith(version string) int {
	p.t.Helper()
	name, number, _ := strings.Cut(version, "@")
	var shown struct {
		Versions []struct{ Version, Digest string }
	}
	if err := json.Unmarshal([]byte(p.mustRun(p.t, "package", "show", name, "--json")), &shown); err != nil {
		p.t.Fatal(err)
	}
	for _, v := range shown.Versions {
		if v.Version == number {
			hex := strings.TrimPrefix(v.Digest, "sha256:")
			found, _ := filepath.Glob(filepath.Join(p.Dir, "startd", "*", "containers", "blobs", "blobs", "*", hex))
			return len(found)
		}
	}
	p.t.Fatalf("there is no %s", version)
	return 0
}
