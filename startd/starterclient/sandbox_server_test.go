package starterclient_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// TestSandboxServerIsKilled kills the process that creates a starter's sandboxes. A task
// that runs goes on, and the next one gets a new process. One of wrapped sandboxes is
// gone by itself when no task follows.
func TestSandboxServerIsKilled(t *testing.T) {
	b := newSandboxedStarter(t, time.Minute)
	servers := func(than int) (list []int) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", b.PID(), b.PID()))
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid != than {
				list = append(list, pid)
			}
		}
		return list
	}
	killed := 0
	kill := func(than int) {
		t.Helper()
		list := servers(than)
		if len(list) > 1 {
			t.Fatalf("there are servers %v", list)
		}
		for _, pid := range list {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(name) != proto.SandboxServer+"\n" {
				t.Errorf("a server has the name %q", name)
			}
			unix.Kill(pid, unix.SIGKILL)
			killed++
		}
	}
	for n := range uint32(6) {
		o := asNobody(n+1, "sleep 0.1; echo done")
		pid := b.begin(o)
		if n%3 == 0 { // while the task runs
			kill(pid)
		}
		exit := b.end()
		if out := b.read(o.Attempt, false); exit.Code != 0 || exit.Signal != 0 || exit.Step != 0 || out != "done\n" {
			t.Errorf("task %d: %+v, %q", n, exit, out)
		}
		if n%3 == 1 { // without one; after the next task it is there
			kill(0)
		}
		b.DiscardAttempt(o.Attempt)
	}
	if killed < 3 {
		t.Errorf("%d servers were there to be killed", killed)
	}
	var own [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &own[0]); err != nil {
		t.Fatal(err)
	}
	if own[0].Effective>>unix.CAP_SYS_RESOURCE&1 == 1 {
		return // no user namespaces
	}
	for deadline := time.Now().Add(time.Minute); len(servers(0)) > 0; unix.Poll(nil, 5) {
		if time.Now().After(deadline) {
			t.Fatal("the server does not end")
		}
	}
}
