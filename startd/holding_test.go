package startd

import (
	"fmt"
	"os"
	"testing"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/starter"
)

// TestEasedAgain: while a checkpoint is taken that a task leaves with, another may stop the task for the owner, as the guard does when it hears nothing of the
// startd in time. When that is looked at the task is let go on, or the checkpoint would wait for it until its time is over.
func TestEasedAgain(t *testing.T) {
	host, err := cgroup.Open(fmt.Sprintf("/roost/test-holding-%d", os.Getpid()))
	if err != nil || !host.Can().Freeze {
		t.Skipf("SKIPPED: this machine freezes nothing for us: %v, %q", err, host.Can().Missing)
	}
	defer host.Close()
	group, err := host.Make("1", cgroup.Limits{})
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
		if group.Held() != want {
			t.Errorf("%s: held %v, want %v", when, !want, want)
		}
	}
	s := &holding{}
	s.equip(group, nil, true)
	s.want("a key")
	held("a key", true)
	if err := s.saving(nil, true); err != nil {
		t.Fatal(err)
	}
	held("while it is saved to leave", false)
	if !s.stands() {
		t.Error("somebody waits for a task to stand still that is being saved")
	}
	held("when somebody has asked whether it stands", false)
	if err := group.Hold(true); err != nil {
		t.Fatal(err)
	}
	s.want("a key")
	held("when the guard's hand was seen", false)
	s.saved()
	held("saved", true)

	s.want("")
	if err := s.launch(starter.Attempt{}, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	s.want("a key")
	if s.stands() {
		t.Error("what is being started stands still before it has ended")
	}
	if err := group.Hold(true); err != nil {
		t.Fatal(err)
	}
	if s.stands() {
		t.Error("what is being started stands still because the guard stopped it, and cannot end")
	}
	held("while what was being started ends", false)
	s.landed()
	held("it has ended", true)
	if !s.stands() {
		t.Error("nothing of it is left, and it does not stand still")
	}
}
