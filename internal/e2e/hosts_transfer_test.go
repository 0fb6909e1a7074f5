package e2e

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// largeInputBytes is the size of a transfer during which something fails: long enough to
// be in progress then.
const largeInputBytes = 40_000_000

// transfersAreBroken breaks the link, the startd and the submit node during file
// transfers in each direction. The files must arrive, and the task must run to its end
// once.
func (h *hostPool) transfersAreBroken() {
	in := filepath.Join(h.home, "bulk.in")
	if err := os.WriteFile(in, []byte(strings.Repeat("0123456789", largeInputBytes/10)), 0o644); err != nil {
		h.Fatal(err)
	}
	inputDigest, outputDigest := h.digestFiles("bulk.in"), h.digestFiles("bulk.in", "bulk.in")
	for _, tt := range []struct {
		name  string
		upset func()
	}{
		{"link", func() { h.net.unplug("exec1"); h.net.replug("exec1") }},
		{"startd", func() { syscall.Kill(h.nodes["exec1"].daemonPID("startd"), syscall.SIGKILL) }},
		{"schedd", func() { syscall.Kill(h.nodes["submit"].daemonPID("schedd"), syscall.SIGKILL) }},
	} {
		id := h.submitJob(fmt.Sprintf(`job %q {
  script       = "cat bulk.in bulk.in > bulk-%s; sha256sum bulk.in; exit 8"
  inputs       = ["bulk.in"]
  outputs      = ["bulk-%s"]
  requirements = machine.name == "exec1"
  lease        = "60s"
}`, tt.name, tt.name, tt.name))
		h.awaitTrue("input is under way", func() bool {
			return h.hasPartialFile(filepath.Join(h.dir, "exec1", "startd", "exec1", "scratch", "*", "job"))
		})
		tt.upset()
		h.awaitTrue("output is under way", func() bool { return h.hasPartialFile(h.home) })
		tt.upset()
		h.awaitTrue(tt.name+" ends", func() bool { return h.showTask(id).State == "failed" })
		if got := h.showTask(id); got.Exit.Code != 8 || got.Exit.Cause != "exited" {
			h.Errorf("%s: it ended with code %d, cause %s (%s)", tt.name, got.Exit.Code, got.Exit.Cause,
				got.Exit.Reason)
		}
		if got := h.digestFiles("bulk-" + tt.name); got != outputDigest {
			h.Errorf("%s: the output is not whole", tt.name)
		}
		if got, want := h.mustAs("logs", id), inputDigest+"  bulk.in\n"; got != want {
			h.Errorf("%s: the task read %q, want %q", tt.name, got, want)
		}
	}
	if h.hasPartialFile(h.home) {
		h.Error("drafts are left in the user's directory")
	}
}

// digestFiles returns the SHA-256 of some files of the user, one after the other.
func (h *hostPool) digestFiles(names ...string) string {
	sum := sha256.New()
	for _, name := range names {
		f, err := os.Open(filepath.Join(h.home, name))
		if err != nil {
			h.Error(err)
			continue
		}
		if _, err := io.Copy(sum, f); err != nil {
			h.Error(err)
		}
		f.Close()
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// hasPartialFile reports whether a file is being written in a directory.
func (h *hostPool) hasPartialFile(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, ".roost-*.tmp"))
	return len(found) > 0
}
