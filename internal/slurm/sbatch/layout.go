package sbatch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/slurm/hostlist"
)

// layout is the machines, tasks and processors of a job.
type layout struct {
	nodes, tasks, perNode, cpus int // cpus: of each task
	hasTasks                    bool
	megabytes                   int64 // of each node; 0: none is asked for
	gpus                        int   // of each node
	gpuKind                     string
	hosts                       []string
	exclusive                   bool
}

// readLayout reads the options that say what the job runs on.
func (s *submission) readLayout() (l layout, err error) {
	number := func(option string) int {
		text := s.value(option)
		if text == "" || err != nil {
			return 0
		}
		n, parseErr := strconv.Atoi(text)
		if parseErr != nil || n < 1 || n > 1<<20 {
			err = &Failure{fmt.Sprintf("sbatch: error: Invalid numeric value %q for --%s.\n", text, option), 1}
		}
		return n
	}
	if l.nodes, err = parseNodes(s.value("nodes")); err != nil {
		return l, err
	}
	l.tasks, l.perNode, l.cpus = number("ntasks"), number("ntasks-per-node"), max(number("cpus-per-task"), 1)
	l.hasTasks = l.tasks > 0 || l.perNode > 0
	if err != nil {
		return l, err
	}
	if list := s.value("nodelist"); list != "" {
		if l.hosts, err = hostlist.Expand(list); err != nil {
			return l, fail("Invalid node list in --nodelist: %v", err)
		}
		l.nodes = max(l.nodes, len(l.hosts))
	}
	if l.exclusive, err = s.readExclusive(); err != nil {
		return l, err
	}
	l.setCounts()
	if err := s.readGPUs(&l); err != nil {
		return l, err
	}
	return l, s.readMemory(&l)
}

// parseNodes reads --nodes: a number, or the least and the most. The least is asked for.
func parseNodes(text string) (nodes int, err error) {
	if text == "" {
		return 0, nil
	}
	least, most, isRange := strings.Cut(text, "-")
	nodes, err = strconv.Atoi(least)
	if err != nil || nodes < 1 {
		return 0, &Failure{fmt.Sprintf("sbatch: error: %q is not a valid node count\n", text), UsageStatus}
	}
	if !isRange {
		return nodes, nil
	}
	limit, err := strconv.Atoi(most)
	switch {
	case err != nil || limit < 1:
		return 0, &Failure{fmt.Sprintf("sbatch: error: %q is not a valid node count\n", text), UsageStatus}
	case limit < nodes:
		return 0, &Failure{fmt.Sprintf("sbatch: error: Maximum node count %d is less than minimum node count %d\n",
			limit, nodes), UsageStatus}
	}
	return nodes, nil
}

// setCounts completes the numbers: one task a node unless said, and one node unless said.
func (l *layout) setCounts() {
	switch {
	case l.tasks == 0:
		l.nodes = max(l.nodes, 1)
		l.tasks = l.nodes * max(l.perNode, 1)
	case l.perNode > 0 && l.nodes == 0:
		l.nodes = (l.tasks + l.perNode - 1) / l.perNode
	case l.nodes == 0:
		l.nodes = 1
	}
	if l.nodes > l.tasks {
		l.nodes = l.tasks
	}
}

// tasksOf is how many tasks a node has.
func (l *layout) tasksOf(node int) int {
	n := l.tasks / l.nodes
	if node < l.tasks%l.nodes {
		n++
	}
	return n
}

// readMemory reads what each node needs. 0 is the memory of the whole node in Slurm, and
// no request here.
func (s *submission) readMemory(l *layout) error {
	for _, option := range []string{"mem", "mem-per-cpu", "mem-per-gpu"} {
		text := s.value(option)
		if text == "" {
			continue
		}
		n, ok := ParseMegabytes(text)
		if !ok {
			return invalid(option)
		}
		if option == "mem-per-cpu" {
			n *= int64(l.tasksOf(0) * l.cpus)
		}
		if option == "mem-per-gpu" {
			n *= int64(max(l.gpus, 1))
		}
		l.megabytes = n
	}
	return nil
}

// readGPUs reads how many GPUs each node has.
func (s *submission) readGPUs(l *layout) error {
	for _, option := range []string{"gres", "gpus-per-node", "gpus-per-task", "gpus"} {
		text := s.value(option)
		if text == "" || text == "none" {
			continue
		}
		for word := range strings.SplitSeq(text, ",") {
			if option == "gres" {
				rest, isGPU := strings.CutPrefix(strings.TrimPrefix(word, "gres:"), "gpu")
				if !isGPU {
					return fail("Invalid generic resource (gres) specification")
				}
				if word = strings.TrimPrefix(rest, ":"); word == "" {
					word = "1"
				}
			}
			n, kind, ok := parseGPUs(word)
			if !ok {
				return fail("Invalid generic resource (gres) specification")
			}
			switch option {
			case "gpus-per-task":
				n *= l.tasksOf(0)
			case "gpus":
				n = (n + l.nodes - 1) / l.nodes
			}
			l.gpus, l.gpuKind = n, kind
		}
	}
	return nil
}

// selectText is the layout in the words of qsub -l select.
func (l *layout) selectText() string {
	var parts []string
	for i := 0; i < l.nodes; {
		tasks, n := l.tasksOf(i), 1
		for i+n < l.nodes && l.tasksOf(i+n) == tasks && len(l.hosts) == 0 {
			n++
		}
		part := fmt.Sprintf("%d:ncpus=%d:mpiprocs=%d", n, tasks*l.cpus, tasks)
		if l.megabytes > 0 {
			part += fmt.Sprintf(":mem=%dmb", l.megabytes)
		}
		if l.gpus > 0 {
			part += fmt.Sprintf(":ngpus=%d", l.gpus)
		}
		if i < len(l.hosts) {
			part += ":host=" + l.hosts[i]
		}
		parts = append(parts, part)
		i += n
	}
	return strings.Join(parts, "+")
}
