package starterclient_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starterclient"
)

// TestBornInAFrozenGroup forks a task into a frozen cgroup, which blocks its starter. The
// startd is dead, so nothing thaws the cgroup. The starter must still end with its lease,
// and the program must never run, even if the cgroup is thawed later.
func TestBornInAFrozenGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes groups")
	}
	plain, group := newGroupedStarter(t)
	freeze := filepath.Join(group.TaskDir(), "cgroup.freeze")
	if _, err := os.Stat(freeze); err != nil {
		t.Skip("SKIPPED: tasks are born in groups of version 2 only")
	}
	plain.Release()
	b := &testStarter{t: t, dir: t.TempDir(), events: make(chan starterclient.Event, 64)}
	var err error
	b.Starter, err = starterclient.Spawn(starterclient.SpawnOptions{
		Binary: os.Getenv("ROOST_STARTER_BINARY"), Dir: b.dir, Lease: 700 * time.Millisecond,
		Events: func(e starterclient.Event) {
			b.events <- e
		}, TaskGroup: group.TaskDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if err := os.WriteFile(freeze, []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "it ran")
	o, _ := markedCmd(t, 1, "touch '"+mark+"'; sleep 60")
	pid := b.PID()
	if err := b.Start(o); err != nil {
		t.Fatal(err)
	}
	processes := func() []string {
		text, _ := os.ReadFile(filepath.Join(group.TaskDir(), "cgroup.procs"))
		return strings.Fields(string(text))
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); unix.Poll(nil, 5) {
			if time.Now().After(end) {
				t.Fatalf("%s: it did not happen; in the group are %v", what, processes())
			}
		}
	}
	await("its child is born", func() bool { return len(processes()) > 0 })
	// its child still has its open descriptors, so that no event is delivered
	await("the starter has ended with its lease", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
	if err := os.WriteFile(freeze, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	await("the child is gone, too", func() bool { return len(processes()) == 0 })
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program has run after the end of the lease")
	}
}
