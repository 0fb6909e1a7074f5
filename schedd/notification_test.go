package schedd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/internal/wire"
)

// TestNotice checks that the node's hook reports the end of a job to the users who asked
// for it. The notice contains what the job ended with.
func TestNotice(t *testing.T) {
	p := newPool(t)
	p.stop()
	dir := t.TempDir()
	pipe, hook := filepath.Join(dir, "pipe"), filepath.Join(dir, "hook")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\nexec cat >"+pipe+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.node.Schedd.Notify.Mail, p.node.Schedd.Notify.Hook = "none", hook
	p.start()
	p.submit("silent", 1, "")
	p.startd.exited(receiveNext(t, p.startd.activated, "an attempt").GetAttempt(), &wire.ExitStatus{}, "")
	id := p.submit("k", 1, `MailPoints = "ae"; MailUsers = "ann@example.org"; JobName = "loud"`).GetIds()[0]
	p.startd.exited(receiveNext(t, p.startd.activated, "an attempt").GetAttempt(),
		&wire.ExitStatus{Cause: wire.Cause_CAUSE_CPU_TIME, Signal: 15, Reason: "too much"}, "")
	text, err := os.ReadFile(pipe) // waits for the hook
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		To      []string
		Notices []struct {
			What, ID, Name, Reason string
			Status                 int `json:"exit_status"`
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got.Notices) != 1 || len(got.To) != 1 ||
		got.To[0] != "ann@example.org" {
		t.Fatalf("got %s, %v", text, err)
	}
	if n := got.Notices[0]; n.What != "aborted" || n.ID != id || n.Name != "loud" || n.Reason != "too much" ||
		n.Status != -28 {
		t.Errorf("got %+v", n)
	}
}
