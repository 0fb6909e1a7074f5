package userlog

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// at is when the events of these tests happen.
var at = time.Date(2026, 11, 29, 12, 0, 5, 0, time.Local).UnixNano()

func entry(what queue.EventType, tasks ...queue.UserLogTask) queue.UserLogEntry {
	return queue.UserLogEntry{Path: "/home/alice/log", Job: roost.JobID{Seq: 12, Host: "login1"}, Time: at, Type: what,
		Tasks: tasks}
}

// TestRecords checks the records of each kind of event.
func TestRecords(t *testing.T) {
	exit := &queue.AttemptExit{Code: 3, User: 3725e9, System: 1e9}
	for _, test := range []struct {
		e    queue.UserLogEntry
		want string
	}{
		{entry(queue.Submitted, queue.UserLogTask{}), "000 (012.000.000) 2026-11-29 12:00:05 Job submitted from " +
			"host: <login1>\n...\n"},
		{entry(queue.Started, queue.UserLogTask{Index: 7, Node: "exec1"}), "001 (012.007.000) 2026-11-29 12:00:05 " +
			"Job executing on host: <exec1>\n...\n"},
		{entry(queue.Ended, queue.UserLogTask{State: roost.Completed, Exit: exit}), "005 (012.000.000) 2026-11-29 " +
			"12:00:05 Job terminated.\n\t(1) Normal termination (return value 3)\n" +
			"\t\tUsr 0 01:02:05, Sys 0 00:00:01  -  Run Remote Usage\n" +
			"\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage\n" +
			"\t\tUsr 0 01:02:05, Sys 0 00:00:01  -  Total Remote Usage\n" +
			"\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage\n" + byteLines + "...\n"},
		{entry(queue.Ended, queue.UserLogTask{State: roost.Removed, Reason: "by alice"}), "009 (012.000.000) " +
			"2026-11-29 12:00:05 Job was aborted.\n\tby alice\n...\n"},
		{entry(queue.Held, queue.UserLogTask{Reason: "a\n...\n005 (1"}), "012 (012.000.000) 2026-11-29 12:00:05 Job " +
			"was held.\n\ta ... 005 (1\n\tCode 1 Subcode 0\n...\n"},
		{entry(queue.Released, queue.UserLogTask{}), "013 (012.000.000) 2026-11-29 12:00:05 Job was released.\n" +
			"\tno reason was given\n...\n"},
		{entry(queue.Checkpointed, queue.UserLogTask{}), ""},
	} {
		text := ""
		for _, r := range Records(test.e) {
			if text += r.Text; !strings.HasPrefix(r.Text, r.Head+" ") {
				t.Errorf("head %q of %q", r.Head, r.Text)
			}
		}
		if text != test.want {
			t.Errorf("got %q, want %q", text, test.want)
		}
	}
	killed := Records(entry(queue.Ended, queue.UserLogTask{State: roost.Completed,
		Exit: &queue.AttemptExit{Signal: 9}}))
	if len(killed) != 1 || !strings.Contains(killed[0].Text,
		"\t(0) Abnormal termination (signal 9)\n\t(0) No core file\n") {
		t.Errorf("got %q", killed)
	}
	unstarted := Records(entry(queue.Ended, queue.UserLogTask{State: roost.Completed, Node: "exec1", Unstarted: true}))
	if len(unstarted) != 2 || !strings.HasPrefix(unstarted[0].Text, "001 (012.000.000) ") {
		t.Errorf("got %q", unstarted)
	}
	never := Records(entry(queue.Ended, queue.UserLogTask{State: roost.Idle, Unstarted: true}))
	if len(never) > 0 {
		t.Errorf("got %q", never)
	}
	again := Records(entry(queue.Ended, queue.UserLogTask{State: roost.Idle}))
	if len(again) != 1 || !strings.HasPrefix(again[0].Text, "004 (012.000.000) ") {
		t.Errorf("got %q", again)
	}
}

// TestMissing checks which records are appended after a restart.
func TestMissing(t *testing.T) {
	started := Records(entry(queue.Started, queue.UserLogTask{Node: "exec1"},
		queue.UserLogTask{Index: 1, Node: "exec1"}))
	ended := Records(entry(queue.Ended, queue.UserLogTask{State: roost.Completed}))
	all := append(append([]Record(nil), started...), ended...)
	end := "Run Local Usage\n...\n" + started[1].Text + "005 (012.000.000)\n005 (012.000\n"
	got := Missing(end, all)
	if len(got) != 2 || got[0] != started[0] || got[1] != ended[0] {
		t.Errorf("missing are %v", got)
	}
	if got := Missing(started[0].Text+started[1].Text+ended[0].Text, all); len(got) > 0 {
		t.Errorf("missing are %v", got)
	}
}
