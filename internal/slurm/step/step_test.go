package step

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func machines(cpus ...int) (list []Machine) {
	for i, n := range cpus {
		list = append(list, Machine{Name: fmt.Sprintf("n%d.cs", i+1), CPUs: n})
	}
	return list
}

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		name string
		cpus []int
		used []int
		r    Request
		want string // machines and tasks
		err  error
	}{
		{"one a node", []int{2, 2}, nil, Request{}, "0:[0] 1:[1]", nil},
		{"block", []int{2, 2}, nil, Request{Tasks: 3}, "0:[0 1] 1:[2]", nil},
		{"as few machines as needed", []int{2, 2}, nil, Request{Tasks: 2}, "0:[0 1]", nil},
		{"a number of machines", []int{2, 2}, nil, Request{Tasks: 2, Nodes: 2}, "0:[0] 1:[1]", nil},
		{"cyclic", []int{2, 2}, nil, Request{Tasks: 4, Cyclic: true}, "0:[0 2] 1:[1 3]", nil},
		{"cpus", []int{4, 4}, nil, Request{Tasks: 3, CPUsPerTask: 2}, "0:[0 1] 1:[2]", nil},
		{"tasks per node", []int{4, 4}, nil, Request{TasksPerNode: 2, Nodes: 2}, "0:[0 1] 1:[2 3]", nil},
		{"too many", []int{2}, nil, Request{Tasks: 3}, "", ErrTooManyProcessors},
		{"too many, overcommitted", []int{2}, nil, Request{Tasks: 3, Overcommit: true}, "0:[0 1 2]", nil},
		{"more nodes", []int{2}, nil, Request{Nodes: 2}, "", ErrNodeCount},
		{"by name", []int{2, 2}, nil, Request{NodeList: []string{"n2"}}, "1:[0]", nil},
		{"no such name", []int{2, 2}, nil, Request{NodeList: []string{"n7"}}, "", ErrNodeName},
		{"excluded", []int{2, 2}, nil, Request{Tasks: 1, Exclude: []string{"n1.cs"}}, "1:[0]", nil},
		{"relative", []int{2, 2}, nil, Request{Tasks: 1, First: 1}, "1:[0]", nil},
		{"none is left", []int{2, 2}, nil, Request{First: 2}, "", ErrNodeConfiguration},
		{"next to another", []int{2, 2}, []int{2, 0}, Request{Tasks: 1}, "1:[0]", nil},
		{"waits", []int{2, 2}, []int{2, 2}, Request{Tasks: 1}, "", ErrBusy},
		{"overlaps", []int{2, 2}, []int{2, 2}, Request{Tasks: 1, Overlap: true}, "0:[0]", nil},
		{"fewer tasks than machines", []int{2, 2}, nil, Request{Tasks: 1, Nodes: 2}, "0:[0]", nil},
		{"the larger machine", []int{1, 4}, nil, Request{Tasks: 3, Nodes: 1}, "1:[0 1 2]", nil},
	} {
		used := c.used
		if used == nil {
			used = make([]int, len(c.cpus))
		}
		p, err := Place(machines(c.cpus...), used, c.r)
		got := ""
		if err == nil {
			var words []string
			for i, m := range p.Machines {
				words = append(words, fmt.Sprintf("%d:%v", m, p.Tasks[i]))
			}
			got = strings.Join(words, " ")
		}
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
}

// TestRandomPlacement holds what is true of every placement.
func TestRandomPlacement(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	placed := 0
	for range 20000 {
		cpus, used := make([]int, 1+random.IntN(4)), make([]int, 4)
		for i := range cpus {
			cpus[i] = 1 + random.IntN(6)
			used[i] = random.IntN(cpus[i] + 1)
		}
		r := Request{Nodes: random.IntN(4), Tasks: random.IntN(9), TasksPerNode: random.IntN(3),
			CPUsPerTask: random.IntN(3), Cyclic: random.IntN(2) == 0}
		p, err := Place(machines(cpus...), used[:len(cpus)], r)
		if err != nil {
			continue
		}
		placed++
		var all []int
		for i, m := range p.Machines {
			all = append(all, p.Tasks[i]...)
			if n := len(p.Tasks[i]); n == 0 || n*p.CPUsPerTask > cpus[m]-used[m] ||
				r.TasksPerNode > 0 && n > r.TasksPerNode {
				t.Fatalf("%v, %v: %+v gives %+v", cpus, used, r, p)
			}
		}
		slices.Sort(all)
		for i, n := range all {
			if i != n {
				t.Fatalf("%+v gives tasks %v", r, all)
			}
		}
		if r.Tasks > 0 && len(all) != r.Tasks || len(all) != p.Size {
			t.Fatalf("%+v gives %d tasks", r, len(all))
		}
	}
	if placed < 5000 {
		t.Fatalf("only %d of 20000 were placed", placed)
	}
}

func TestCounts(t *testing.T) {
	for text, want := range map[string][]int{"2(x3),1": {2, 2, 2, 1}, "1": {1}, "4,3(x2)": {4, 3, 3}} {
		got, err := ExpandCounts(text)
		if err != nil || !slices.Equal(got, want) || CompressCounts(want) != text {
			t.Errorf("%q: %v, %v, %q", text, got, err, CompressCounts(want))
		}
	}
	for _, bad := range []string{"", "x", "2(x", "2(x0)", "-1", "1(x9999999999)"} {
		if got, err := ExpandCounts(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func TestExits(t *testing.T) {
	var list []MachineExits
	list = AddExit(list, "n1", 1, TaskExit{Code: 7})
	list = AddExit(list, "n1", 0, TaskExit{Code: 7})
	list = AddExit(list, "n2", 2, TaskExit{})
	list = AddExit(list, "n2", 3, TaskExit{Signal: 9})
	list = AddExit(list, "n2", 5, TaskExit{Signal: 11, Core: true})
	var lines []string
	for _, x := range list {
		lines = append(lines, x.String())
	}
	want := "error: n1: tasks 0-1: Exited with exit code 7|error: n2: task 3: Killed|" +
		"error: n2: task 5: Segmentation fault (core dumped)"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("got %s", got)
	}
}

// FuzzFrames holds that frames come back from any pieces, and that nothing else crashes.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("Oxxx"), 3)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var r FrameReader
		_, _ = r.Add(data)
		_, _ = ReadFrame(bytes.NewReader(data))
		frames := []Frame{{FrameOutput, 3, data}, {FrameExit, AllTasks, []byte{}}}
		var text []byte
		for _, x := range frames {
			text = x.Append(text)
		}
		cut = min(max(cut, 0), len(text))
		r = FrameReader{}
		first, err1 := r.Add(text[:cut])
		second, err2 := r.Add(text[cut:])
		all := append(first, second...)
		if err1 != nil || err2 != nil || len(all) != 2 || !bytes.Equal(all[0].Data, data) || all[1].Task != AllTasks {
			t.Fatalf("%v, %v, %v", all, err1, err2)
		}
	})
}
