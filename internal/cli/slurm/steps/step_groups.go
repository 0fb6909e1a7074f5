package steps

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/step"
	"github.com/roost-batch/roost/internal/slurm/steptable"
)

// stepPlan is a step whose place is known.
type stepPlan struct {
	c         *frame.Invocation
	caller    string // whose messages these are; empty: srun
	options   *stepOptions
	job       *allocation
	placement *step.Placement
	number    uint32
	programs  [][]string       // of --multi-prog, by task; nil: all run the command
	claim     *steptable.Claim // nil: of a node of the release before
}

// id is the name of the step, as in "5.0".
func (p *stepPlan) id() string { return p.job.id + "." + strconv.Itoa(int(p.number)) }

// groups are the tasks of each machine of the step, in the order of the placement.
func (p *stepPlan) groups() []*step.TaskGroup {
	directory := p.c.AbsolutePath(cmp.Or(p.options.directory, "."))
	base := p.environment()
	umask := syscall.Umask(0)
	syscall.Umask(umask)
	var list []*step.TaskGroup
	for i := range p.placement.Machines {
		g := &step.TaskGroup{Directory: directory, Environment: base, Umask: umask, Size: p.placement.Size,
			Machines: len(p.placement.Machines)}
		if p.options.ranks && (p.placement.Size > 1 || len(p.placement.Machines) > 1) && !p.options.request.Cyclic {
			g.KeySpace = "kvs_" + p.id()
		}
		for local, task := range p.placement.Tasks[i] {
			t := step.Task{Number: task, Command: p.options.command, Append: p.options.append}
			if p.programs != nil {
				t.Command = p.programs[task]
			}
			t.Environment = p.taskEnvironment(i, local, task)
			t.Input = p.taskFile(p.options.input, i, local, task, true)
			t.Output = p.taskFile(p.options.output, i, local, task, false)
			if t.Error = p.taskFile(p.options.errors, i, local, task, false); p.options.errors == "" {
				t.Error = t.Output
			}
			g.Tasks = append(g.Tasks, t)
		}
		list = append(list, g)
	}
	return list
}

// sharedFile is the file of all tasks that a pattern names. It is empty for a stream of
// srun, and where tasks have files of their own.
func (p *stepPlan) sharedFile(pattern string) string {
	if isStreamWord(pattern) || isTaskPattern(pattern) {
		return ""
	}
	return p.c.AbsolutePath(filepath.Join(p.options.directory, p.expandPattern(pattern, 0, 0, 0)))
}

// isStreamWord says whether the value of --output or --input means a stream of srun. It
// may be that of all tasks, of none, or of one.
func isStreamWord(pattern string) bool {
	_, err := strconv.ParseUint(pattern, 10, 31)
	return pattern == "" || pattern == "all" || pattern == "none" || err == nil
}

// isTaskPattern says whether a pattern gives each task or machine a file of its own.
func isTaskPattern(pattern string) bool {
	if strings.Contains(pattern, `\`) {
		return false
	}
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] != '%' {
			continue
		}
		for i++; i+1 < len(pattern) && pattern[i] >= '0' && pattern[i] <= '9'; i++ {
		}
		if strings.IndexByte("tnN", pattern[i]) >= 0 {
			return true
		}
	}
	return false
}

// taskFile is the file of a task's own that a pattern names; empty: a stream of srun.
func (p *stepPlan) taskFile(pattern string, machine, local, task int, isInput bool) string {
	only, err := strconv.ParseUint(pattern, 10, 31)
	switch {
	case pattern == "none", err == nil && int(only) != task:
		return os.DevNull
	case isStreamWord(pattern), !isInput && !isTaskPattern(pattern):
		return ""
	}
	return p.c.AbsolutePath(filepath.Join(p.options.directory, p.expandPattern(pattern, machine, local, task)))
}

// expandPattern replaces the letters behind % in the name of a file of a step ("filename
// pattern" in srun(1)).
func (p *stepPlan) expandPattern(pattern string, machine, local, task int) string {
	if strings.Contains(pattern, `\`) {
		return strings.ReplaceAll(pattern, `\`, "")
	}
	node, _, _ := strings.Cut(p.job.machines[p.placement.Machines[machine]].Name, ".")
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		from := i + 1
		for i++; i+1 < len(pattern) && pattern[i] >= '0' && pattern[i] <= '9'; i++ {
		}
		width, _ := strconv.Atoi(pattern[from:i])
		width = min(width, 10)
		switch pattern[i] {
		case '%':
			b.WriteByte('%')
		case 't':
			fmt.Fprintf(&b, "%0*d", width, task)
		case 'n':
			fmt.Fprintf(&b, "%0*d", width, machine)
		case 's':
			fmt.Fprintf(&b, "%0*d", width, p.number)
		case 'j':
			b.WriteString(padded(p.job.id, width))
		case 'A':
			b.WriteString(padded(cmp.Or(p.c.Getenv("SLURM_ARRAY_JOB_ID"), p.job.id), width))
		case 'a':
			b.WriteString(padded(cmp.Or(p.c.Getenv("SLURM_ARRAY_TASK_ID"), "4294967294"), width))
		case 'J':
			b.WriteString(p.id())
		case 'N':
			b.WriteString(node)
		case 'u':
			b.WriteString(cmp.Or(p.c.Getenv("SLURM_JOB_USER"), p.c.Getenv("USER"), p.c.Getenv("LOGNAME")))
		case 'x':
			b.WriteString(cmp.Or(p.c.Getenv("SLURM_JOB_NAME"), p.c.Getenv("ROOST_JOB_NAME")))
		default:
			b.WriteString(pattern[from-1 : i+1])
		}
	}
	return b.String()
}

func padded(number string, width int) string {
	return strings.Repeat("0", max(width-len(number), 0)) + number
}

// environment is what all tasks find, besides what their machine and place say.
func (p *stepPlan) environment() []string {
	var taken []string
	all, assigned := splitExport(p.options.export)
	for _, v := range p.c.Env {
		name, _, _ := strings.Cut(v, "=")
		if all || strings.HasPrefix(name, "SLURM_") || strings.HasPrefix(name, "ROOST_") || strings.HasPrefix(name,
			"PBS_") || slices.Contains(assigned, name) {
			taken = append(taken, v)
		}
	}
	for _, v := range assigned {
		if strings.Contains(v, "=") {
			taken = append(taken, v)
		}
	}
	counts := make([]int, len(p.placement.Tasks))
	names := make([]string, len(p.placement.Tasks))
	for i, tasks := range p.placement.Tasks {
		counts[i] = len(tasks)
		names[i] = p.job.machines[p.placement.Machines[i]].Name
	}
	number := strconv.Itoa(int(p.number))
	list := hostlist.Compress(names)
	set := []string{"SLURM_STEP_ID=" + number, "SLURM_STEPID=" + number, "SLURM_STEP_NODELIST=" + list,
		"SLURM_STEP_NUM_NODES=" + strconv.Itoa(len(names)), "SLURM_STEP_NUM_TASKS=" + strconv.Itoa(p.placement.Size),
		"SLURM_STEP_TASKS_PER_NODE=" + step.CompressCounts(counts),
		"SLURM_TASKS_PER_NODE=" + step.CompressCounts(counts),
		"SLURM_NTASKS=" + strconv.Itoa(p.placement.Size), "SLURM_NPROCS=" + strconv.Itoa(p.placement.Size),
		"SLURM_NNODES=" + strconv.Itoa(len(names)), "SLURM_SRUN_COMM_HOST=" + p.job.machines[0].Name,
		"SLURM_JOB_ID=" + p.job.id, "SLURM_JOBID=" + p.job.id}
	if p.options.request.CPUsPerTask > 0 {
		set = append(set, "SLURM_CPUS_PER_TASK="+strconv.Itoa(p.options.request.CPUsPerTask))
	}
	distribution := "block"
	if p.options.request.Cyclic {
		distribution = "cyclic"
	}
	return append(taken, append(set, "SLURM_DISTRIBUTION="+distribution)...)
}

// splitExport reads the value of --export: whether all variables go along, and which are
// set or go along besides.
func splitExport(text string) (all bool, assigned []string) {
	if text == "" || text == "ALL" {
		return true, nil
	}
	if text == "NONE" || text == "NIL" {
		return false, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		if word == "ALL" {
			all = true
			continue
		}
		assigned = append(assigned, word)
	}
	return all, assigned
}

// taskEnvironment is what one task finds besides.
func (p *stepPlan) taskEnvironment(machine, local, task int) []string {
	m := p.job.machines[p.placement.Machines[machine]]
	var ids []string
	for _, t := range p.placement.Tasks[machine] {
		ids = append(ids, strconv.Itoa(t))
	}
	return []string{"SLURM_PROCID=" + strconv.Itoa(task), "SLURM_LOCALID=" + strconv.Itoa(local),
		"SLURM_NODEID=" + strconv.Itoa(machine), "SLURM_GTIDS=" + strings.Join(ids, ","),
		"SLURMD_NODENAME=" + m.Name, "SLURM_CPUS_ON_NODE=" + strconv.Itoa(m.CPUs)}
}

// readPrograms reads the file of --multi-prog. Its lines have task numbers, a program and
// its arguments, in which %t is the number of the task and %o its number within the line.
func readPrograms(file string, size int) ([][]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	programs := make([][]string, size)
	in := bufio.NewScanner(f)
	for line := 1; in.Scan(); line++ {
		words := strings.Fields(in.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		tasks, err := taskNumbers(words[0], size)
		if err != nil || len(words) < 2 {
			return nil, fmt.Errorf("line %d of %s: a line has task numbers, a program and its arguments", line, file)
		}
		for offset, task := range tasks {
			if task >= size || programs[task] != nil {
				continue
			}
			for _, w := range words[1:] {
				w = strings.ReplaceAll(w, "%t", strconv.Itoa(task))
				programs[task] = append(programs[task], strings.ReplaceAll(w, "%o", strconv.Itoa(offset)))
			}
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	for task, p := range programs {
		if p == nil {
			return nil, fmt.Errorf("%s has no program for task %d", file, task)
		}
	}
	return programs, nil
}

// taskNumbers reads numbers as in "0,2-4" and "*", which is for all.
func taskNumbers(text string, size int) (list []int, err error) {
	if text == "*" {
		text = "0-" + strconv.Itoa(size-1)
	}
	for word := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			return nil, err
		}
		to, err := strconv.Atoi(last)
		if err != nil || from < 0 || to < from || to > 1<<20 {
			return nil, fmt.Errorf("%q is no range of tasks", word)
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
	}
	return list, nil
}
