package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// shellsAreTheOwners checks that only its owner and root can enter a task on another
// host, with its owner's rights. What runs there dies with the daemon that supervises it.
func (h *hostPool) shellsAreTheOwners() {
	id, g := h.submitGated("entered", "exec1", "60s", 8)
	who := fmt.Sprintf("%d %d %d exec1\n", someone.uid, someone.gid, someone.gid)
	const look = `echo $(id -u) $(id -g) $(id -G) $ROOST_NODE`
	for _, tt := range []struct {
		user commandUser
		code int
		out  string
	}{
		{someone, 0, who},
		{commandUser{0, 0}, 0, who},
		{commandUser{54321, 12345}, 77, ""},
		{commandUser{65534, 65534}, 77, ""},
	} {
		stdout, stderr, code := h.runAs(tt.user, "ssh", id, "sh", "-c", look)
		if code != tt.code || stdout != tt.out ||
			code == 77 && !strings.Contains(stderr, "only its owner may enter it") {
			h.Errorf("uid %d: exit %d, want %d\n%s%s", tt.user.uid, code, tt.code, stdout, stderr)
		}
	}
	stdout, _, _ := h.runAs(someone, "ssh", id, "grep", "-E", "^(CapEff|NoNewPrivs):", "/proc/self/status")
	if stdout != "CapEff:\t0000000000000000\nNoNewPrivs:\t1\n" {
		h.Errorf("a shell has\n%s", stdout)
	}
	h.shellIsOrphaned(id)
	h.shellOfANodeThatIsAway(id)
	g.openGate()
	h.awaitCompleted(id, "entered", 8)
}

// shellIsOrphaned kills the startd under an open shell.
func (h *hostPool) shellIsOrphaned(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), awaitTimeout)
	defer cancel()
	cmd := h.command(ctx, someone, "ssh", id, "sh", "-c", "echo in; exec sleep 424242")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 3)); err != nil {
		h.Fatal(err)
	}
	before := h.nodes["exec1"].daemonPID("startd")
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		h.Fatal(err)
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 69 {
		h.Errorf("the shell's exit status is %d, want 69", cmd.ProcessState.ExitCode())
	}
	h.awaitTrue("nothing is left of the shell", func() bool { return !hasCommandLine("sleep\x00424242") })
	h.awaitTrue("another startd serves", func() bool {
		now := h.nodes["exec1"].daemonPID("startd")
		return now != 0 && now != before
	})
	h.awaitTrue("the task can be entered again", func() bool {
		stdout, _, _ := h.runAs(someone, "ssh", id, "echo", "again")
		return stdout == "again\n"
	})
}

// shellOfANodeThatIsAway asks for a shell while the node's daemons are stopped.
func (h *hostPool) shellOfANodeThatIsAway(id string) {
	n := h.nodes["exec1"]
	n.killMaster()
	h.awaitTrue("the schedd sees that the node is away", func() bool {
		_, stderr, code := h.runAs(someone, "ssh", id, "true")
		return code == 69 && strings.Contains(stderr, "exec1")
	})
	n.start()
	h.awaitTrue("the task can be entered again", func() bool {
		stdout, _, _ := h.runAs(someone, "ssh", id, "echo", "again")
		return stdout == "again\n"
	})
}

// hasCommandLine reports whether a process has that command line.
func hasCommandLine(line string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if args, _ := os.ReadFile(file); strings.HasPrefix(string(args), line) {
			return true
		}
	}
	return false
}
