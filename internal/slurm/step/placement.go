package step

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Machine is a machine of an allocation.
type Machine struct {
	Name  string
	CPUs  int
	Line  int // its first line in the job's file of nodes
	Tasks int // its lines in that file
}

// Request is what a step asks for. A number that is 0 was not given.
type Request struct {
	Nodes        int
	Tasks        int
	TasksPerNode int
	CPUsPerTask  int
	NodeList     []string // only these, in this order
	Exclude      []string
	First        int // number of the first machine that it may have (--relative)
	Cyclic       bool
	Overlap      bool // it shares its processors with other steps
	Overcommit   bool // it may have more tasks than processors
}

// Placement is where the tasks of a step go.
type Placement struct {
	Machines    []int   // indexes of machines of the allocation
	Tasks       [][]int // numbers of the tasks of each
	CPUsPerTask int
	Size        int // tasks
	// Warning is what srun says about the numbers; empty: nothing.
	Warning string
}

// The errors of a step that cannot be, in Slurm's words.
var (
	ErrTooManyProcessors = errors.New("More processors requested than permitted")
	ErrNodeConfiguration = errors.New("Requested node configuration is not available")
	ErrNodeCount         = errors.New("Requested more nodes than allocated")
	ErrNodeName          = errors.New("Invalid node name specified")
	// ErrBusy says that the step fits when other steps have ended.
	ErrBusy = errors.New("Requested nodes are busy")
)

// Place chooses machines and spreads the tasks of a step over them. used has the
// processors that other steps have now, by machine. The tasks fill one machine after the
// other as its processors last, or go round if the request is cyclic. The step waits
// (ErrBusy) only if it would fit an allocation without other steps.
func Place(machines []Machine, used []int, r Request) (*Placement, error) {
	free := make([]int, len(machines))
	for i, m := range machines {
		free[i] = m.CPUs
	}
	empty, err := place(machines, free, r)
	if err != nil || r.Overlap {
		return empty, err
	}
	for i := range free {
		free[i] -= min(free[i], used[i])
	}
	p, err := place(machines, free, r)
	if err != nil {
		return nil, ErrBusy
	}
	return p, nil
}

func place(machines []Machine, free []int, r Request) (*Placement, error) {
	candidates, err := candidates(machines, r)
	if err != nil {
		return nil, err
	}
	p := &Placement{CPUsPerTask: max(r.CPUsPerTask, 1)}
	nodes, err := p.chooseSize(len(candidates), r)
	if err != nil {
		return nil, err
	}
	rooms := make([]int, len(candidates))
	for i, c := range candidates {
		rooms[i] = free[c] / p.CPUsPerTask
		if r.Overcommit {
			rooms[i] = p.Size
		}
		if r.TasksPerNode > 0 {
			rooms[i] = min(rooms[i], r.TasksPerNode)
		}
	}
	chosen := chooseMachines(rooms, nodes, p.Size, r.Nodes > 0 || len(r.NodeList) > 0)
	if chosen == nil {
		return nil, ErrTooManyProcessors
	}
	p.spread(candidates, rooms, chosen, r.Cyclic)
	return p, nil
}

// candidates are the indexes of the machines that a step may have.
func candidates(machines []Machine, r Request) (list []int, err error) {
	if r.First > 0 && r.First >= len(machines) {
		return nil, ErrNodeConfiguration
	}
	if len(r.NodeList) > 0 {
		for _, name := range r.NodeList {
			i := slices.IndexFunc(machines, func(m Machine) bool { return SameNode(m.Name, name) })
			if i < 0 {
				return nil, fmt.Errorf("%w: %s", ErrNodeName, name)
			}
			if !slices.Contains(list, i) {
				list = append(list, i)
			}
		}
	} else {
		for i := r.First; i < len(machines); i++ {
			list = append(list, i)
		}
	}
	list = slices.DeleteFunc(list, func(i int) bool {
		return slices.ContainsFunc(r.Exclude, func(n string) bool { return SameNode(machines[i].Name, n) })
	})
	if len(list) == 0 {
		return nil, ErrNodeConfiguration
	}
	return list, nil
}

// SameNode says whether two names mean one node: a name may do without its domain.
func SameNode(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	shortA, domainA, _ := strings.Cut(a, ".")
	shortB, domainB, _ := strings.Cut(b, ".")
	return (domainA == "" || domainB == "") && strings.EqualFold(shortA, shortB)
}

// chooseSize finds out how many machines and tasks a step has.
func (p *Placement) chooseSize(most int, r Request) (nodes int, err error) {
	nodes, p.Size = r.Nodes, r.Tasks
	if nodes > most {
		return 0, ErrNodeCount
	}
	if nodes == 0 && (p.Size == 0 || len(r.NodeList) > 0) {
		nodes = most
	}
	if p.Size == 0 {
		p.Size = nodes * max(r.TasksPerNode, 1)
	}
	if nodes > p.Size {
		p.Warning = fmt.Sprintf("can't run %d processes on %d nodes, setting nnodes to %d", p.Size, nodes, p.Size)
		nodes = p.Size
	}
	return nodes, nil
}

// chooseMachines chooses machines in their order: so many if nodes is given, otherwise as
// few as the tasks need. Where the number is fixed, each has at least one task. It
// returns nil if they do not fit.
func chooseMachines(rooms []int, nodes, tasks int, fixed bool) (chosen []int) {
	room := 0
	for i, n := range rooms {
		if n > 0 && (nodes == 0 || len(chosen) < nodes) {
			chosen = append(chosen, i)
			room += n
		}
		if nodes == 0 && room >= tasks {
			break
		}
	}
	if room >= tasks && (!fixed || len(chosen) == nodes) {
		return chosen
	}
	if nodes == 0 || len(chosen) < nodes {
		return nil
	}
	// the first ones are too small: the largest
	largest := make([]int, len(rooms))
	for i := range largest {
		largest[i] = i
	}
	slices.SortStableFunc(largest, func(a, b int) int { return rooms[b] - rooms[a] })
	chosen, room = slices.Clone(largest[:nodes]), 0
	slices.Sort(chosen)
	for _, i := range chosen {
		room += rooms[i]
	}
	if room < tasks {
		return nil
	}
	return chosen
}

// spread gives the chosen machines their tasks. Each has at least one; the others go to
// one machine after the other as it has room, or round and round.
func (p *Placement) spread(candidates, rooms, chosen []int, cyclic bool) {
	counts := make([]int, len(chosen))
	left := p.Size
	for i := range counts {
		counts[i]++
		left--
	}
	order := make([]int, 0, p.Size) // machine of each task, for the cyclic order
	for left > 0 {
		for i, c := range chosen {
			room := rooms[c] - counts[i]
			n := min(left, room)
			if cyclic {
				n = min(n, 1)
			}
			counts[i] += n
			left -= n
		}
	}
	if cyclic {
		given := make([]int, len(chosen))
		for len(order) < p.Size {
			for i := range chosen {
				if given[i] < counts[i] {
					given[i]++
					order = append(order, i)
				}
			}
		}
	} else {
		for i, n := range counts {
			order = append(order, slices.Repeat([]int{i}, n)...)
		}
	}
	p.Tasks = make([][]int, len(chosen))
	for task, i := range order {
		p.Tasks[i] = append(p.Tasks[i], task)
	}
	for _, c := range chosen {
		p.Machines = append(p.Machines, candidates[c])
	}
}

// CompressCounts writes counts as SLURM_TASKS_PER_NODE has them, as in "2(x3),1".
func CompressCounts(counts []int) string {
	var words []string
	for i := 0; i < len(counts); {
		n := 1
		for i+n < len(counts) && counts[i+n] == counts[i] {
			n++
		}
		word := strconv.Itoa(counts[i])
		if n > 1 {
			word += "(x" + strconv.Itoa(n) + ")"
		}
		words = append(words, word)
		i += n
	}
	return strings.Join(words, ",")
}

// ExpandCounts reads such a text.
func ExpandCounts(text string) (counts []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		number, times, repeated := strings.Cut(word, "(x")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is no list of numbers for nodes", text)
		}
		repeat := 1
		if repeated {
			if repeat, err = strconv.Atoi(strings.TrimSuffix(times, ")")); err != nil || repeat < 1 || repeat > 1<<20 {
				return nil, fmt.Errorf("%q is no list of numbers for nodes", text)
			}
		}
		for range repeat {
			counts = append(counts, n)
		}
	}
	return counts, nil
}
