package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/packing"
)

const (
	nodeList  = "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,65536,2,T4\nn2,8000,65536,1,G2\n"
	podHeader = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)

// readLists reads the two lists of a trace.
func readLists(t *testing.T, nodes, pods string) (n []packing.TraceNode, p []packing.TracePod, err error) {
	t.Helper()
	if n, err = packing.ReadNodes("nodes", strings.NewReader(nodes)); err != nil {
		t.Fatal(err)
	}
	p, err = packing.ReadPods("pods", strings.NewReader(pods))
	return n, p, err
}

// TestTrace checks that pods come at their creation and run for their time. They run on
// GPUs that they may use, several on one where they fit.
func TestTrace(t *testing.T) {
	nodes, pods, err := readLists(t, nodeList, podHeader+
		"p0,1000,1024,1,600,T4,LS,Running,100,160,110\n"+ // for 50 s on part of a T4
		"p1,1000,1024,1,400,T4,LS,Running,100,200,100\n"+
		"p2,1000,1024,1,1000,T4,LS,Running,100,200,100\n"+
		"p3,1000,1024,1,700,T4,Burstable,Pending,105,205,\n"+ // waits for the first
		"p4,0,1024,1,1000,G2|V100,,Failed,130,131,130\n"+
		"p5,1000,1024,8,1000,,LS,Pending,130,150,\n") // no machine has so many GPUs
	if err != nil {
		t.Fatal(err)
	}
	c, err := FromTrace(nodes, pods, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := playFor(t, c, time.Hour)
	if s := p.Sample(); s.Ended != 5 || s.Waiting != 1 || !p.IsStuck(30*time.Minute) {
		t.Fatalf("%+v; refused %v", s, p.Refused())
	}
	all := p.Outcomes()
	for i, want := range []struct{ first, ran int }{{0, 50}, {0, 100}, {0, 100}, {100, 100}, {30, 1}} {
		first, ran := all[i].FirstStarted.Round(10*time.Second),
			(all[i].LastEnded - all[i].FirstStarted).Round(time.Second)
		if first != time.Duration(want.first)*time.Second || ran != time.Duration(want.ran)*time.Second {
			t.Errorf("pod %d begins at %v and runs for %v, want %ds and %ds", i, all[i].FirstStarted, ran,
				want.first, want.ran)
		}
	}
	if c, err := FromTrace(nodes, pods, 1, 1); err != nil || len(c.Machines) != 1 {
		t.Errorf("%d machines, %v", len(c.Machines), err)
	}
	if _, err := FromTrace(nodes, pods, 3, 1); err == nil {
		t.Error("three of two nodes were taken")
	}
}

// TestTraceTimes checks that invalid or missing times are refused with their line.
func TestTraceTimes(t *testing.T) {
	for _, test := range []struct{ row, want string }{
		{"p0,1000,1024,0,0,,LS,Running,100,90,\n",
			"pods: line 2: column 34 (deletion_time): invalid request: it is before the pod was created, at 100"},
		{"p0,1000,1024,0,0,,LS,Running,100,110,120\n",
			"pods: line 2: column 34 (deletion_time): invalid request: it is before the pod was scheduled, at 120"},
		{"p0,1000,1024,0,0,,LS,Running,100,110,90\n",
			"pods: line 2: column 38 (scheduled_time): invalid request: it is before the pod was created, at 100"},
		{"p0,1000,1024,0,0,,LS,Running,1e9,110,90\n", "\"1e9\" is not a whole number"},
		{"p0,1000,1024,0,0,,LS,Running,100,,100\n",
			"line 2: invalid request: of pod p0 is not said when it came and went"},
		{"p0,1000,1024,0,0,,LS,Running,,110,\n",
			"line 2: invalid request: of pod p0 is not said when it came and went"},
	} {
		nodes, pods, err := readLists(t, nodeList, podHeader+test.row)
		if err == nil {
			_, err = FromTrace(nodes, pods, 0, 1)
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.row, err, test.want)
		}
	}
	if _, err := FromTrace(nil, []packing.TracePod{{Name: "p", CPU: roost.MilliCPU(1)}}, 0, 1); err == nil {
		t.Error("no node is a pool")
	}
}
