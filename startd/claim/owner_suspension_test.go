package claim

import (
	"fmt"
	"os"
	"testing"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/starterclient"
)

// TestEasedAgain covers a guard that freezes a task for the owner during its vacate
// checkpoint. The guard does that when it hears nothing from the startd in time. The
// startd then thaws the task, or the checkpoint would wait for it until its time is over.
func TestEasedAgain(t *testing.T) {
	host, err := cgroup.Open(fmt.Sprintf("/roost/test-holding-%d", os.Getpid()))
	if err != nil || !host.Enforcement().Freeze {
		t.Skipf("SKIPPED: this machine freezes nothing for us: %v, %q", err, host.Enforcement().Missing)
	}
	defer host.Close()
	group, err := host.MakeGroup("1", cgroup.GroupLimits{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := group.Delete(); err != nil {
			t.Error(err)
		}
	}()
	held := func(when string, want bool) {
		t.Helper()
		if group.WasFrozenOutside() != want {
			t.Errorf("%s: held %v, want %v", when, !want, want)
		}
	}
	s := &OwnerSuspension{}
	s.attach(group, nil, true)
	s.Set("a key")
	held("a key", true)
	if err := s.beginDump(nil, true); err != nil {
		t.Fatal(err)
	}
	held("while it is saved to leave", false)
	if !s.quiesced() {
		t.Error("somebody waits for a task to stand still that is being saved")
	}
	held("when somebody has asked whether it stands", false)
	if err := group.FreezeForOwner(true); err != nil {
		t.Fatal(err)
	}
	s.Set("a key")
	held("when the guard's hand was seen", false)
	s.endDump()
	held("saved", true)

	s.Set("")
	if err := s.startTask(starterclient.TaskAttempt{}, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	s.Set("a key")
	if s.quiesced() {
		t.Error("what is being started stands still before it has ended")
	}
	if err := group.FreezeForOwner(true); err != nil {
		t.Fatal(err)
	}
	if s.quiesced() {
		t.Error("what is being started stands still because the guard stopped it, and cannot end")
	}
	held("while what was being started ends", false)
	s.startConfirmed()
	held("it has ended", true)
	if !s.quiesced() {
		t.Error("nothing of it is left, and it does not stand still")
	}
}
