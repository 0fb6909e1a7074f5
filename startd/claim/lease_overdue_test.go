package claim

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/starterclient"
)

// TestEndOverdue checks that the startd ends what a starter does not end. It finds
// processes in the task's control group by the group, and others by their mark. It leaves
// the rest of the machine alone.
func TestEndOverdue(t *testing.T) {
	cookie := fmt.Sprintf("overdue-%d", os.Getpid())
	begin := func(environment ...string) (*exec.Cmd, <-chan struct{}) {
		c := exec.Command("/bin/sleep", "60")
		c.Env = environment
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() { c.Wait(); close(gone) }()
		t.Cleanup(func() { c.Process.Kill(); <-gone })
		return c, gone
	}
	id := roost.AttemptID{Attempt: 1}
	h := &Runner{
		machine: &Machine{log: slog.New(slog.DiscardHandler),
			dirs: Dirs(t.TempDir())},
		file:    File{ID: 1, Cookie: cookie},
		starter: &starterclient.Starter{}, attempt: &Attempt{id: id},
	}
	_, marked := begin(starterclient.CookieEnvVar + "=" + cookie)
	_, other := begin(starterclient.CookieEnvVar + "=" + cookie + "0")
	groups, err := cgroup.Open(fmt.Sprintf("/roost/overdue-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	grouped := make(<-chan struct{})
	if groups.Enforcement().Freeze {
		if h.group, err = groups.MakeGroup("1", cgroup.GroupLimits{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.group.Delete(); groups.Close() })
		var c *exec.Cmd
		c, grouped = begin()
		if err := h.group.AddTask(c.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	h.endLeaseOverdue(roost.AttemptID{Attempt: 2}) // which is not there any more
	select {
	case <-marked:
		t.Error("another attempt has been ended")
	case <-grouped:
		t.Error("another attempt has been ended by its group")
	default:
	}
	h.endLeaseOverdue(id)
	late := time.After(time.Minute)
	for what, gone := range map[string]<-chan struct{}{"mark": marked, "group": grouped} {
		if what == "group" && h.group == nil {
			continue
		}
		select {
		case <-gone:
		case <-late:
			t.Errorf("what is known by its %s lives on", what)
		}
	}
	select {
	case <-other:
		t.Error("another claim's process has been ended")
	default:
	}
}
