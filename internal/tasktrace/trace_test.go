package tasktrace

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestMarks runs a process that marks stages. A second process has no file.
func TestMarks(t *testing.T) {
	task := Task{Job: 7, Index: 3, Attempt: 2}
	if os.Getenv("ROOST_TASK_TRACE_TEST") != "" {
		Mark(Forked, task)
		Mark(Received, Task{})
		return
	}
	path := filepath.Join(t.TempDir(), "trace")
	run := func(env ...string) {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run=TestMarks")
		cmd.Env = append(os.Environ(), append(env, "ROOST_TASK_TRACE_TEST=1")...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	before := Now()
	run(FileVariable + "=" + path)
	run(FileVariable + "=")
	after := Now()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := Parse(text)
	if len(all) != 2 || all[0].Stage != Forked || all[0].Task != task || all[1].Stage != Received ||
		all[1].Task != (Task{}) {
		t.Fatalf("got %v from %q", all, text)
	}
	if !(before <= all[0].At && all[0].At <= all[1].At && all[1].At <= after) {
		t.Errorf("the times %d and %d are not between %d and %d", all[0].At, all[1].At, before, after)
	}
}

// TestParse leaves out what is no line of a trace.
func TestParse(t *testing.T) {
	one := StageRecord{12, Boxed, Task{1, 0, 1}}
	text := AppendLine(nil, one.At, one.Stage, one.Task)
	for _, bad := range []string{"", "x boxed 1 0 1\n", "12 boxed 1 0\n", "12 boxed 1 0 1 4\n", "12 boxed -1 0 1\n"} {
		if got := Parse(append([]byte(bad), text...)); !slices.Equal(got, []StageRecord{one}) {
			t.Errorf("after %q: got %v", bad, got)
		}
	}
	if got := Parse(text[:len(text)-1]); len(got) != 0 {
		t.Errorf("got %v from a line without its end", got)
	}
}
