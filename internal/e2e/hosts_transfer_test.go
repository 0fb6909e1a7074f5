package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// bulk is how much travels while something breaks, in bytes: enough that it is under way when that happens.
const bulk = 40_000_000

// Whatever breaks while files travel, they arrive, and the task runs to its end once: the link, the startd, the submit node, in each direction.
func (h *hosts) transfersAreBroken() {
	in := filepath.Join(h.home, "bulk.in")
	if err := os.WriteFile(in, []byte(strings.Repeat("0123456789", bulk/10)), 0o644); err != nil {
		h.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		upset func()
	}{
		{"link", func() { h.net.cut("exec1"); h.net.mend("exec1") }},
		{"startd", func() { syscall.Kill(h.nodes["exec1"].daemon("startd"), syscall.SIGKILL) }},
		{"schedd", func() { syscall.Kill(h.nodes["submit"].daemon("schedd"), syscall.SIGKILL) }},
	} {
		id := h.submit(fmt.Sprintf(`job %q {
  script       = "cat bulk.in bulk.in > bulk-%s; sha256sum bulk.in; exit 8"
  inputs       = ["bulk.in"]
  outputs      = ["bulk-%s"]
  requirements = machine.name == "exec1"
  lease        = "60s"
}`, tt.name, tt.name, tt.name))
		h.await("input is under way", func() bool { return h.drafts(filepath.Join(h.dir, "exec1", "startd", "exec1", "scratch", "*", "job")) })
		tt.upset()
		h.await("output is under way", func() bool { return h.drafts(h.home) })
		tt.upset()
		h.await(tt.name+" ends", func() bool { return h.show(id).State == "failed" })
		if got := h.show(id); got.Exit.Code != 8 || got.Exit.Cause != "exited" {
			h.Errorf("%s: it ended with code %d, cause %s (%s)", tt.name, got.Exit.Code, got.Exit.Cause, got.Exit.Reason)
		}
		whole := sha256.Sum256([]byte(h.read("bulk.in") + h.read("bulk.in")))
		if got := sha256.Sum256([]byte(h.read("bulk-" + tt.name))); got != whole {
			h.Errorf("%s: the output is not whole", tt.name)
		}
		if got, want := h.must("logs", id), fmt.Sprintf("%x  bulk.in\n", sha256.Sum256([]byte(h.read("bulk.in")))); got != want {
			h.Errorf("%s: the task read %q, want %q", tt.name, got, want)
		}
	}
	if h.drafts(h.home) {
		h.Error("drafts are left in the user's directory")
	}
}

// drafts reports whether a file is being written in a directory.
func (h *hosts) drafts(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, ".roost-*.tmp"))
	return len(found) > 0
}
