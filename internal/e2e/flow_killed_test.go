package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/master"
)

// TestFlowKilled runs a flow while its schedd is killed again and again. Each part of
// each node runs once, in an order that the arcs allow.
func TestFlowKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	p := &containerPool{t: t, home: t.TempDir(), Pool: nodePool(t, &config.Node{Startds: twoNodes()})}
	const layers, width = 6, 8
	var dag, want strings.Builder
	for layer := range layers {
		names := ""
		for i := range width {
			name := fmt.Sprintf("N%d_%d", layer, i)
			names += " " + name
			fmt.Fprintf(&dag, "JOB %s node.sub\n", name)
			if i == 0 {
				fmt.Fprintf(&dag, "SCRIPT PRE %s /bin/sh pre.sh $NODE\n", name)
				fmt.Fprintf(&want, "pre %s\n", name)
			}
			fmt.Fprintf(&want, "job %s\n", name)
		}
		if layer > 0 {
			before := make([]string, width)
			for i := range before {
				before[i] = fmt.Sprintf("N%d_%d", layer-1, i)
			}
			fmt.Fprintf(&dag, "PARENT %s CHILD%s\n", strings.Join(before, " "), names)
		}
	}
	p.write("flow.dag", dag.String())
	p.write("pre.sh", "echo pre $1 >> ran\n")
	p.write("node.sub", "executable = /bin/sh\narguments = \"-c 'echo job $(JOB) >> ran; sleep 0.3'\"\n"+
		"log = nodes.log\nrequest_memory = 16MB\nshould_transfer_files = NO\nqueue\n")
	p.mustRun(t, "flow", "submit", "--use-dag-dir", "--name", "killed", filepath.Join(p.home, "flow.dag"))
	done := func() map[string]int {
		out, _, code := p.Command(t.Context(), "flow", "status", "--json", "@killed")
		var list struct {
			Flows []struct {
				Phase  string
				States map[string]int
			}
		}
		if code != 0 || json.Unmarshal([]byte(out), &list) != nil || len(list.Flows) != 1 {
			return nil
		}
		if list.Flows[0].Phase == "ended" {
			list.Flows[0].States["ended"] = 1
		}
		return list.Flows[0].States
	}
	for kill := 1; kill < layers*width/8; kill++ {
		awaitTrue(t, fmt.Sprintf("%d nodes are done", 8*kill), func() bool { return done()["done"] >= 8*kill })
		state, _, err := master.ReadState(p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range state.Daemons {
			if d.Role == "schedd" {
				syscall.Kill(d.PID, syscall.SIGKILL)
			}
		}
	}
	awaitTrue(t, "the flow has ended", func() bool { return done()["ended"] == 1 })
	if states := done(); states["done"] != layers*width {
		t.Errorf("its nodes are %v", states)
	}
	p.checkUserLog(filepath.Join(p.home, "nodes.log"), layers*width)
	text, err := os.ReadFile(filepath.Join(p.home, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	last := 0
	for line := range strings.Lines(string(text)) {
		times[strings.TrimSpace(line)]++
		var layer, i int
		if n, _ := fmt.Sscanf(line, "job N%d_%d", &layer, &i); n == 2 {
			if layer < last {
				t.Errorf("%s ran after a node of layer %d", strings.TrimSpace(line), last)
			}
			last = layer
		}
	}
	for line := range strings.Lines(want.String()) {
		if line = strings.TrimSpace(line); times[line] != 1 {
			t.Errorf("%s: ran %d times", line, times[line])
		}
		delete(times, line)
	}
	if len(times) > 0 {
		t.Errorf("ran besides: %v", slices.Sorted(maps.Keys(times)))
	}
}

// checkUserLog checks that a user log says once of each of some jobs that it was
// submitted, executed and terminated.
func (p *containerPool) checkUserLog(path string, jobs int) {
	p.t.Helper()
	var heads map[string]int
	pollUntil(p.t.Context(), awaitTimeout, func() bool {
		text, _ := os.ReadFile(path)
		heads = map[string]int{}
		for line := range strings.Lines(string(text)) {
			if number, rest, ok := strings.Cut(line, " ("); ok && len(number) == 3 {
				id, _, _ := strings.Cut(rest, ")")
				heads[number+" "+id]++
			}
		}
		return len(heads) >= 3*jobs
	})
	for head, n := range heads {
		if n != 1 {
			p.t.Errorf("the user log says %s %d times", head, n)
		}
	}
	if len(heads) != 3*jobs {
		text, _ := os.ReadFile(path)
		p.t.Errorf("the user log has %d records, want %d:\n%s", len(heads), 3*jobs, text)
	}
}
