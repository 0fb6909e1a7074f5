package e2e

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// workScript is the transferred program. It prints its input, and writes files of all
// sizes with their digests in its output.
const workScript = `#!/bin/sh
set -e
echo "node $ROOST_NODE"
echo "ids $(id -u) $(id -g) $(id -G)"
echo "stdin $(cat)"
echo "table $(cat table.csv)"
echo "data $(cat in/data.txt)"
mkdir -p deep/$1/er
head -c 5000000 /dev/urandom > big-$1.bin
echo small > result-$1.txt
echo one > deep/$1/one
head -c 300000 /dev/urandom > deep/$1/er/two
: > deep/$1/er/empty
echo unwanted > unwanted-$1
sha256sum big-$1.bin result-$1.txt deep/$1/one deep/$1/er/two deep/$1/er/empty
echo "to stderr" >&2
`

// filesAreTransferred checks that input files and the program go to each node. Every file
// that a task names comes back to the user's directory, complete and owned by the user.
func (h *hostPool) filesAreTransferred() {
	h.writeUserFile("bin/work.sh", workScript, 0o755)
	h.writeUserFile("table.csv", "a,b", 0o600)
	h.writeUserFile("in/data.txt", "payload", 0o600)
	h.writeUserFile("in/keys.txt", "typed", 0o600)
	id := h.submitJob(`job "travel" {
  for_each     = ["exec1", "exec2"]
  requirements = machine.name == each.value
  command      = ["bin/work.sh", each.value]
  inputs       = ["table.csv", "in/data.txt"]
  stdin        = "in/keys.txt"
  outputs      = ["big-${each.value}.bin", "result-*.txt", "deep/${each.value}"]
  stdout       = "out.${each.value}"
  stderr       = "err.${each.value}"
}`)
	h.mustAs("wait", "--timeout", "1m", "-q", id)
	for _, node := range []string{"exec1", "exec2"} {
		answer := h.readOutputFile("out." + node)
		for _, want := range []string{"node " + node, "ids 12345 12345 12345\n", "stdin typed", "table a,b",
			"data payload"} {
			if !strings.Contains(answer, want) {
				h.Errorf("%s: %q is not in\n%s", node, want, answer)
			}
		}
		if got := h.readOutputFile("err." + node); got != "to stderr\n" {
			h.Errorf("%s: stderr is %q", node, got)
		}
		if n := h.checkDigests(answer); n != 5 {
			h.Errorf("%s: %d digests in\n%s", node, n, answer)
		}
		if _, err := os.Stat(filepath.Join(h.home, "unwanted-"+node)); err == nil {
			h.Errorf("%s: a file came back that was not named", node)
		}
	}
}

func (h *hostPool) readOutputFile(name string) string {
	text, err := os.ReadFile(filepath.Join(h.home, name))
	if err != nil {
		h.Error(err)
	}
	return string(text)
}

// checkDigests compares the files at the submit side with the task's lines of sha256sum,
// and checks their owners.
func (h *hostPool) checkDigests(answer string) (n int) {
	for line := range strings.Lines(answer) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || len(sum) != 64 {
			continue
		}
		n++
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(h.readOutputFile(name)))); got != sum {
			h.Errorf("%s came back as %s, want %s", name, got, sum)
		}
		info, err := os.Stat(filepath.Join(h.home, name))
		if err != nil {
			continue
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != someone.uid || st.Gid != someone.gid {
			h.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
	return n
}

// undeclaredOutput checks a job without outputs. New files at the top come back, and
// output without a file name is stored, however large it is.
func (h *hostPool) undeclaredOutput() {
	id := h.submitJob(`job "kept" {
  script = <<-END
    echo new > fresh.txt
    i=0; while [ $i -lt 3000 ]; do echo "line $i of a long output that does not come along with the news"; i=$((i+1)); done
    echo "the end" >&2
  END
}`)
	h.mustAs("wait", "--timeout", "1m", "-q", id)
	if got := h.readOutputFile("fresh.txt"); got != "new\n" {
		h.Errorf("fresh.txt is %q", got)
	}
	out := h.mustAs("logs", id)
	if n := strings.Count(out, "\n"); n < 3000 || !strings.Contains(out, "line 2999 of") {
		h.Errorf("%d lines were kept", n)
	}
	if errs := h.mustAs("logs", "--stderr", id); !strings.Contains(errs, "the end") {
		h.Errorf("stderr is %q", errs)
	}
}

// outputIsFollowed checks that a task on another host can be followed while it runs.
func (h *hostPool) outputIsFollowed() {
	gate := h.newGate("follow")
	id := h.submitJob(fmt.Sprintf(`job "follow" {
  script = "echo before; %s; echo after"
}`, gate.wait))
	follow := h.command(h.Context(), someone, "logs", "-f", id)
	out, err := follow.StdoutPipe()
	if err != nil {
		h.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		h.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "before" {
		h.Errorf("got %q first", lines.Text())
	}
	// The start of a task is reported with its end, if that comes within moments, and
	// else a moment later.
	h.awaitTrue("the task is shown as running", func() bool { return h.showTask(id).State == "running" })
	gate.openGate()
	if !lines.Scan() || lines.Text() != "after" {
		h.Errorf("got %q then", lines.Text())
	}
	if lines.Scan() {
		h.Errorf("got %q at last", lines.Text())
	}
	if err := follow.Wait(); err != nil {
		h.Errorf("logs -f: %v", err)
	}
}

// fixedFilesJobWaits checks that a job whose files must not be transferred waits, and
// says why.
func (h *hostPool) fixedFilesJobWaits() {
	id := h.submitJob("job \"never\" {\n  command  = [\"true\"]\n  transfer = \"never\"\n}")
	h.awaitTrue("roost why speaks of the files", func() bool {
		why, _, _ := h.runAs(someone, "why", id)
		return strings.Contains(why, "transfer = \"never\" lets it run only where the files of submit are seen")
	})
	if got := h.showTask(id).State; got != "idle" {
		h.Errorf("it is %s", got)
	}
	h.Log(h.mustAs("why", id))
	h.mustAs("rm", id)
}

// inputIsMissing checks that an input file that is missing at the start holds the job,
// with the file's name.
func (h *hostPool) inputIsMissing() {
	path := h.writeUserFile("soon-gone", "x", 0o600)
	id := h.submitJob("job \"missing\" {\n  command = [\"cat\", \"soon-gone\"]\n  inputs  = [\"soon-gone\"]\n  " +
		"hold = true\n}")
	if err := os.Remove(path); err != nil {
		h.Fatal(err)
	}
	h.mustAs("release", id)
	h.awaitTrue("the job is held for its input", func() bool {
		return h.showTask(id).State == "held" && strings.Contains(h.showTask(id).Reason, path)
	})
	h.Log(h.showTask(id).Reason)
	h.writeUserFile("soon-gone", "here again\n", 0o600)
	h.mustAs("release", id)
	h.mustAs("wait", "--timeout", "1m", "-q", id)
	if got := h.mustAs("logs", id); got != "here again\n" {
		h.Errorf("it printed %q", got)
	}
}

// taskGate is what a task waits for until the test opens it. It is a file, because all
// hosts are really one machine.
type taskGate struct {
	hosts *hostPool
	path  string
	wait  string // a line of shell
}

func (h *hostPool) newGate(name string) *taskGate {
	path := filepath.Join(h.dir, "gate-"+name)
	return &taskGate{h, path, fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", path)}
}

func (g *taskGate) openGate() {
	if err := os.WriteFile(g.path, nil, 0o644); err != nil {
		g.hosts.Error(err)
	}
}
