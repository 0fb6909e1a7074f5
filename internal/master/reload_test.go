package master

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/internal/config"
)

// reloadNode is the node of poolFile, with a change.
func reloadNode(t *testing.T, dir string, change func(n *config.Node)) {
	t.Helper()
	n := &config.Node{
		Name: "test", Dir: dir, Collector: &config.CollectorSettings{}, Negotiator: &config.NegotiatorSettings{},
		Schedd:  &config.ScheddSettings{},
		Startds: []config.StartdSettings{{Name: "n1"}, {Name: "n2"}},
	}
	change(n)
	file := filepath.Join(dir, "node.hcl")
	write(t, file+".new", config.Write(n))
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// pids are the daemons of a state, by their titles.
func (s *NodeState) pids() map[string]int {
	all := map[string]int{}
	for _, d := range s.Daemons {
		all[strings.TrimSpace(d.Role+" "+d.Name)] = d.PID
	}
	return all
}

func mustReadState(t *testing.T, dir string) *NodeState {
	t.Helper()
	s, running, err := ReadState(dir)
	if err != nil || !running {
		t.Fatalf("state: running %v, %v", running, err)
	}
	return s
}

// TestReload: only the daemons whose settings have changed are restarted. A startd is
// killed, so that it leaves its tasks to the next one.
func TestReload(t *testing.T) {
	dir, file := poolFile(t)
	r := startMaster(t, "run", file)
	r.waitLine(r.stdout, "ready")
	before := mustReadState(t, dir).pids()

	reloadNode(t, dir, func(n *config.Node) {
		n.Schedd.MaxQueued = 77
		n.Startds[0].StopNotice = 7e9
	})
	if err := RequestReload(dir); err != nil {
		t.Fatal(err)
	}
	r.waitLine(r.log, "msg=reload", "startd n1", "schedd")
	r.waitLine(r.log, "serves")
	r.waitLine(r.log, "serves")
	state := mustReadState(t, dir)
	after := state.pids()
	for title, pid := range before {
		changed := title == "schedd" || title == "startd n1"
		if (after[title] != pid) != changed {
			t.Errorf("%s: process %d before, %d after", title, pid, after[title])
		}
	}
	if got := state.Reload; got == nil || got.Count != 1 || got.Error != "" || got.Replaced ||
		!slices.Equal(got.Restarted, []string{"startd n1", "schedd"}) {
		t.Errorf("reload %+v", got)
	}
	events := read(t, dir, "events")
	if strings.Contains(events, "startd --name n1 stops") || !strings.Contains(events, "schedd stops") {
		t.Errorf("events:\n%s", events)
	}

	// a mistake changes nothing, and is in the state
	write(t, file, []byte("schedd {\n  max_quued = 7\n}\n"))
	r.signal(syscall.SIGHUP)
	r.waitLine(r.log, "nothing is changed", "max_quued")
	if got := mustReadState(t, dir).pids(); got["schedd"] != after["schedd"] {
		t.Error("a file with a mistake restarts the schedd")
	}

	// one more startd, and one less
	reloadNode(t, dir, func(n *config.Node) {
		n.Schedd.MaxQueued = 77
		n.Startds = []config.StartdSettings{{Name: "n2"}, {Name: "n3"}}
	})
	r.signal(syscall.SIGHUP)
	r.waitLine(r.log, "removed by a reload", "startd n1")
	r.waitLine(r.log, "serves")
	r.waitLine(r.log, "serves")
	last := mustReadState(t, dir)
	got := last.pids()
	if got["startd n1"] != 0 || got["startd n3"] == 0 || got["schedd"] != after["schedd"] || last.Reload.Count != 3 ||
		!slices.Equal(last.Reload.Stopped, []string{"startd n1"}) ||
		!slices.Equal(last.Reload.Started, []string{"startd n3"}) {
		t.Errorf("state %+v, reload %+v", got, last.Reload)
	}
	if events := read(t, dir, "events"); !strings.Contains(events, "startd --name n1 stops") {
		t.Errorf("the startd that was removed is not stopped in order:\n%s", events)
	}
	r.signal(syscall.SIGTERM)
	if rest, err := r.wait(); err != nil {
		t.Fatalf("%v\n%s", err, rest)
	}
}

// TestReloadReplacesMaster: after a change that concerns all, the master is started anew
// in the same process, with all daemons. It says so in its state.
func TestReloadReplacesMaster(t *testing.T) {
	dir, file := poolFile(t, "schedd", "stay")
	r := startMaster(t, "impatient", file)
	r.waitLine(r.stdout, "ready")
	before := mustReadState(t, dir)
	reloadNode(t, dir, func(n *config.Node) { n.Pool = "other" })
	r.signal(syscall.SIGHUP)
	r.waitLine(r.log, "does not stop", "schedd")
	r.waitLine(r.log, "the master is replaced")
	r.waitLine(r.stdout, "ready")
	after := mustReadState(t, dir)
	if after.PID != before.PID || after.Reload == nil || !after.Reload.Replaced || after.Reload.Count != 1 {
		t.Errorf("before %+v, after %+v, reload %+v", before, after, after.Reload)
	}
	old := before.pids()
	for title, pid := range after.pids() {
		if pid == 0 || pid == old[title] {
			t.Errorf("%s: process %d before, %d after", title, old[title], pid)
		}
	}
	if events := read(t, dir, "events"); strings.Contains(events, "startd --name n1 stops") {
		t.Errorf("a startd was told to stop:\n%s", events)
	}
	r.signal(syscall.SIGTERM)
	if rest, err := r.wait(); err != nil {
		t.Fatalf("%v\n%s", err, rest)
	}
}

// TestProgramsOfMaster: another file of the same name is another program.
func TestProgramsOfMaster(t *testing.T) {
	program := filepath.Join(t.TempDir(), "roost-daemon")
	write(t, program, []byte("1"))
	first := programFiles(program)
	if again := programFiles(program); !slices.Equal(first, again) || len(first) != 1 {
		t.Fatalf("%+v and %+v", first, again)
	}
	write(t, program+".new", []byte("2"))
	if err := os.Rename(program+".new", program); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(first, programFiles(program)) {
		t.Error("a program was replaced, and is taken for the same")
	}
	write(t, filepath.Join(filepath.Dir(program), "roost-starter"), []byte("1"))
	if got := programFiles(program); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}
