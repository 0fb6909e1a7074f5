package stepgroup

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/pmi"
	"github.com/roost-batch/roost/internal/slurm/step"
)

// gathered is what a group has emitted.
type gathered struct {
	mu     sync.Mutex
	output map[uint32]string
	errors map[uint32]string
	exits  map[uint32]step.TaskExit
	wrote  chan uint32
}

func (g *gathered) emit(f step.Frame) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch f.Kind {
	case step.FrameOutput:
		g.output[f.Task] += string(f.Data)
		g.wrote <- f.Task
	case step.FrameError:
		g.errors[f.Task] += string(f.Data)
	case step.FrameExit:
		var e step.TaskExit
		if err := json.Unmarshal(f.Data, &e); err != nil {
			panic(err)
		}
		g.exits[f.Task] = e
	}
}

func newGathered() *gathered {
	return &gathered{output: map[uint32]string{}, errors: map[uint32]string{}, exits: map[uint32]step.TaskExit{},
		wrote: make(chan uint32, 1000)}
}

func shellTasks(programs ...string) *step.TaskGroup {
	g := &step.TaskGroup{Environment: []string{"PATH=" + os.Getenv("PATH"), "A=1"}, Umask: -1, Size: len(programs),
		Machines: 1}
	for i, p := range programs {
		g.Tasks = append(g.Tasks, step.Task{Number: i, Command: []string{"sh", "-c", p}, Environment: []string{"N=" +
			string(rune('0'+i))}})
	}
	return g
}

// waitGroup waits for the end of a group.
func waitGroup(t *testing.T, g *Group) {
	t.Helper()
	ended := make(chan struct{})
	go func() { g.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		g.Signal(syscall.SIGKILL)
		t.Fatal("the tasks do not end")
	}
}

func TestGroup(t *testing.T) {
	spec := shellTasks("echo $A$N; echo err >&2; exit 3", "cat; kill -9 $$", "sleep 1000 & echo left")
	spec.Tasks = append(spec.Tasks, step.Task{Number: 3, Command: []string{"no-such-program"}})
	got := newGathered()
	g := Start(spec, Streams{}, got.emit)
	g.Apply(step.Frame{Kind: step.FrameInput, Task: step.AllTasks, Data: []byte("input")})
	g.Apply(step.Frame{Kind: step.FrameInputEnd, Task: step.AllTasks})
	waitGroup(t, g)
	for i, want := range []string{"10\n", "input", "left\n", ""} {
		if got.output[uint32(i)] != want {
			t.Errorf("task %d wrote %q, not %q", i, got.output[uint32(i)], want)
		}
	}
	for i, want := range []step.TaskExit{{Code: 3}, {Signal: 9}, {},
		{Code: 2}} {
		if got.exits[uint32(i)] != want {
			t.Errorf("task %d ended with %+v, not %+v", i, got.exits[uint32(i)], want)
		}
	}
	if want := "slurmstepd: error: execve(): no-such-program: No such file or directory\n"; got.errors[3] != want {
		t.Errorf("it says %q", got.errors[3])
	}
	if got.errors[0] != "err\n" {
		t.Errorf("standard error: %q", got.errors[0])
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out")
	spec := shellTasks("cat; echo err >&2", "cat")
	spec.Tasks[1].Input, spec.Tasks[1].Output = filepath.Join(dir, "in"), file
	spec.Tasks[0].Input = filepath.Join(dir, "in")
	spec.Tasks[0].Output, spec.Tasks[0].Error = file, file
	if err := os.WriteFile(spec.Tasks[0].Input, []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := newGathered()
	waitGroup(t, Start(spec, Streams{}, got.emit))
	text, err := os.ReadFile(file)
	if lines := strings.Split(string(text), "\n"); err != nil || len(lines) != 4 ||
		strings.Count(string(text), "text\n") != 2 {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestSignal(t *testing.T) {
	got := newGathered()
	g := Start(shellTasks("trap 'exit 5' USR1; echo; while :; do sleep 0.01; done"), Streams{}, got.emit)
	<-got.wrote // the trap is there
	g.Signal(syscall.SIGUSR1)
	waitGroup(t, g)
	if got.exits[0] != (step.TaskExit{Code: 5}) {
		t.Errorf("it ended with %+v", got.exits[0])
	}
}

// TestRanks holds that ranks of a group get each other's keys by way of a collector.
func TestRanks(t *testing.T) {
	program := `
read_answer() { read -r answer <&3; case $answer in *rc=0*|*barrier_out*) ;; *) exit 9;; esac; }
echo "cmd=init pmi_version=1 pmi_subversion=1" >&3; read_answer
echo "cmd=put kvsname=k key=k$PMI_RANK value=v$PMI_RANK" >&3; read_answer
echo "cmd=barrier_in" >&3; read -r answer <&3
echo "cmd=get kvsname=k key=k$((1 - PMI_RANK))" >&3; read_answer; echo "$answer"
echo "cmd=finalize" >&3; read -r answer <&3`
	spec := shellTasks(program, program)
	spec.KeySpace = "k"
	got := newGathered()
	collector := pmi.NewCollector(1)
	messages := make(chan []byte, 100)
	g := Start(spec, Streams{}, func(f step.Frame) {
		if f.Kind == step.FrameRanks {
			messages <- f.Data
			return
		}
		got.emit(f)
	})
	go func() {
		for data := range messages {
			m, _ := pmi.DecodeMessage(data)
			for _, e := range collector.Apply(0, m) {
				g.Apply(step.Frame{Kind: step.FrameRanks, Data: e.Message.Append(nil)})
			}
		}
	}()
	waitGroup(t, g)
	close(messages)
	for i, want := range []string{"value=v1", "value=v0"} {
		if !strings.Contains(got.output[uint32(i)], want) {
			t.Errorf("rank %d: %q, %+v", i, got.output[uint32(i)], got.exits)
		}
	}
}

// TestServe holds that an agent runs what it is sent, and ends it when srun has gone.
func TestServe(t *testing.T) {
	in, toAgent := io.Pipe()
	fromAgent, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(in, out, slices.Clone[[]string]) }()
	if f, err := step.ReadFrame(fromAgent); err != nil || f.Kind != step.FrameHello {
		t.Fatalf("%+v, %v", f, err)
	}
	spec := shellTasks("echo there; sleep 1000")
	spec.Directory = t.TempDir()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := toAgent.Write(step.Frame{Kind: step.FrameBegin, Data: text}.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if f, err := step.ReadFrame(fromAgent); err != nil || string(f.Data) != "there\n" {
		t.Fatalf("%+v, %v", f, err)
	}
	toAgent.Close()
	f, err := step.ReadFrame(fromAgent)
	var e step.TaskExit
	if err != nil || json.Unmarshal(f.Data, &e) != nil || e.Signal != int(syscall.SIGTERM) {
		t.Fatalf("%+v, %v, %+v", f, err, e)
	}
	if err := <-served; err == nil {
		t.Error("it does not say that srun has gone")
	}
}
