package steps

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/slurm/step"
)

// TestParseMpiexec reads command lines of Hydra's mpiexec (mpiexec(1) of MPICH).
func TestParseMpiexec(t *testing.T) {
	job := &allocation{machines: []step.Machine{{Name: "n1", CPUs: 4, Tasks: 2}, {Name: "n2.lab", CPUs: 4, Tasks: 2}}}
	for _, tt := range []struct {
		line string
		want string // nodes, tasks, tasks per node, export and variables; or the error
	}{
		{"prog", "0 4 0  []"},
		{"-n 3 prog -n 9", "0 3 0  []"},
		{"--np=3 prog", "0 3 0  []"},
		{"-ppn 1 prog", "0 2 1  []"},
		{"-ppn 2 -n 3 prog", "2 3 2  []"},
		{"-ppn 2 -n 2 prog", "1 2 2  []"},
		{"-ppn 1 -n 4 prog", "0 4 2  []"},
		{"-ppn 1 -n 5 prog", "0 5 3  []"},
		{"-n 1 a : -n 2 b", "0 3 0  []"},
		{"-hosts n2 prog", "0 2 0  []"},
		{"-genv A 1 -genv B=2 prog", "0 4 0  [A=1 B=2]"},
		{"-genv A=1 prog x=2", "0 4 0  [A=1]"},
		{"-genv A x=y prog", "0 4 0  [A=x=y]"},
		{"-genvnone prog", "0 4 0 NONE []"},
		{"-genvnone -genv A 1 prog", "0 4 0 A [A=1]"},
		{"-genvlist PATH,HOME -genv A 1,2 prog", "0 4 0 PATH,HOME,A [A=1,2]"},
		{"-genv A 1 -genvlist PATH prog", "0 4 0 PATH,A [A=1]"},
		{"-n 0 prog", `option -n: "0" is no number from 1 on`},
		{"-n", "option -n: something is missing behind it"},
		{"-genv A", "option -genv: something is missing behind it"},
		{"-n 2 a : -n 2", "there is no program to run: roost mpiexec -n 4 PROGRAM"},
		{"-nosuch prog", "option -nosuch is not known: roost-mpiexec(1) lists them"},
		{"-s some prog", "option -s: -s some: standard input goes to all, to none or to one rank by its number"},
		{"-hosts n3 prog", "the job has the machines n1, n2.lab, and not all of n3"},
	} {
		o, err := parseMpiexec(strings.Fields(tt.line))
		got := ""
		if err == nil {
			s := o.stepOptions()
			if err = o.complete(s, job); err == nil {
				r := s.request
				got = fmt.Sprintf("%d %d %d %s %v", r.Nodes, r.Tasks, r.TasksPerNode, s.export, o.environment)
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.line, got, tt.want)
		}
	}
}

// TestMpiexecCommands has each program of a line for its ranks, with its own variables
// and directory.
func TestMpiexecCommands(t *testing.T) {
	o, err := parseMpiexec(strings.Fields("-n 1 -env A=1 -wdir /d a x : -n 2 b"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range o.commands(3) {
		got = append(got, strings.Join(c, " "))
	}
	if want := []string{"/usr/bin/env -C /d A=1 a x", "b", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
