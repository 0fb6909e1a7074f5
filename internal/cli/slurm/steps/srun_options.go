package steps

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/sbatch"
	"github.com/roost-batch/roost/internal/slurm/step"
)

// srunOptions are the options of srun that have a meaning inside an allocation. Those of
// an allocation are sbatch's, and are taken there without an effect.
func srunOptions() []getopt.Option {
	const (
		none     = getopt.None
		required = getopt.Required
		optional = getopt.Optional
	)
	return []getopt.Option{
		{Name: "nodes", Letter: 'N', Argument: required}, {Name: "ntasks", Letter: 'n', Argument: required},
		{Name: "ntasks-per-node", Argument: required}, {Name: "cpus-per-task", Letter: 'c', Argument: required},
		{Name: "nodelist", Letter: 'w', Argument: required}, {Name: "exclude", Letter: 'x', Argument: required},
		{Name: "relative", Letter: 'r', Argument: required}, {Name: "distribution", Letter: 'm', Argument: required},
		{Name: "overlap"}, {Name: "exact"}, {Name: "exclusive", Argument: optional},
		{Name: "overcommit", Letter: 'O'}, {Name: "output", Letter: 'o', Argument: required},
		{Name: "error", Letter: 'e', Argument: required}, {Name: "input", Letter: 'i', Argument: required},
		{Name: "open-mode", Argument: required}, {Name: "label", Letter: 'l'}, {Name: "unbuffered", Letter: 'u'},
		{Name: "chdir", Letter: 'D', Argument: required}, {Name: "export", Argument: required},
		{Name: "kill-on-bad-exit", Letter: 'K', Argument: optional}, {Name: "wait", Letter: 'W', Argument: required},
		{Name: "time", Letter: 't', Argument: required}, {Name: "job-name", Letter: 'J', Argument: required},
		{Name: "jobid", Argument: required}, {Name: "multi-prog"}, {Name: "mpi", Argument: required},
		{Name: "pty", Argument: optional}, {Name: "immediate", Letter: 'I', Argument: optional},
		{Name: "quiet", Letter: 'Q'}, {Name: "verbose", Letter: 'v'}, {Name: "version", Letter: 'V'},
		{Name: "help", Letter: 'h'}, {Name: "usage"}, {Name: "test-only"}, {Name: "het-group", Argument: required},
		{Name: "container", Argument: required}, {Name: "bcast", Argument: optional},

		{Name: "account", Letter: 'A', Argument: required}, {Name: "partition", Letter: 'p', Argument: required},
		{Name: "qos", Letter: 'q', Argument: required}, {Name: "constraint", Letter: 'C', Argument: required},
		{Name: "dependency", Letter: 'd', Argument: required}, {Name: "licenses", Letter: 'L', Argument: required},
		{Name: "hold", Letter: 'H'}, {Name: "begin", Argument: required}, {Name: "deadline", Argument: required},
		{Name: "mem", Argument: required}, {Name: "mem-per-cpu", Argument: required},
		{Name: "mem-per-gpu", Argument: required}, {Name: "mem-bind", Argument: required},
		{Name: "tmp", Argument: required}, {Name: "gres", Argument: required},
		{Name: "gpus", Letter: 'G', Argument: required},
		{Name: "gpus-per-node", Argument: required}, {Name: "gpus-per-task", Argument: required},
		{Name: "gpus-per-socket", Argument: required}, {Name: "cpus-per-gpu", Argument: required},
		{Name: "gpu-bind", Argument: required}, {Name: "gpu-freq", Argument: required},
		{Name: "gres-flags", Argument: required}, {Name: "tres-per-task", Argument: required},
		{Name: "tres-bind", Argument: required}, {Name: "cpu-bind", Argument: required},
		{Name: "cpu-freq", Argument: required}, {Name: "hint", Argument: required},
		{Name: "threads-per-core", Argument: required}, {Name: "cores-per-socket", Argument: required},
		{Name: "sockets-per-node", Argument: required}, {Name: "extra-node-info", Letter: 'B', Argument: required},
		{Name: "mincpus", Argument: required}, {Name: "ntasks-per-core", Argument: required},
		{Name: "ntasks-per-socket", Argument: required}, {Name: "ntasks-per-gpu", Argument: required},
		{Name: "ntasks-per-tres", Argument: required}, {Name: "contiguous"}, {Name: "oversubscribe", Letter: 's'},
		{Name: "share", As: "oversubscribe"}, {Name: "spread-job"}, {Name: "switches", Argument: required},
		{Name: "use-min-nodes"}, {Name: "network", Argument: required}, {Name: "profile", Argument: required},
		{Name: "acctg-freq", Argument: required}, {Name: "propagate", Argument: optional},
		{Name: "prolog", Argument: required}, {Name: "epilog", Argument: required},
		{Name: "task-prolog", Argument: required}, {Name: "task-epilog", Argument: required},
		{Name: "reservation", Argument: required}, {Name: "nice", Argument: optional},
		{Name: "priority", Argument: required}, {Name: "comment", Argument: required},
		{Name: "mail-type", Argument: required}, {Name: "mail-user", Argument: required},
		{Name: "signal", Argument: required}, {Name: "wckey", Argument: required}, {Name: "power", Argument: required},
		{Name: "no-kill", Letter: 'k', Argument: optional}, {Name: "no-allocate", Letter: 'Z'},
		{Name: "preserve-env", Letter: 'E'}, {Name: "resv-ports", Argument: optional},
		{Name: "slurmd-debug", Argument: required}, {Name: "disable-status", Letter: 'X'},
		{Name: "msg-timeout", Argument: required}, {Name: "thread-spec", Argument: required},
		{Name: "core-spec", Letter: 'S', Argument: required}, {Name: "debugger-test"},
		{Name: "compress", Argument: optional}, {Name: "interactive"}, {Name: "external-launcher"},
		{Name: "whole"}, {Name: "clusters", Letter: 'M', Argument: required}, {Name: "uid", Argument: required},
		{Name: "gid", Argument: required}, {Name: "send-libs", Argument: optional},
		{Name: "treewidth", Argument: required},
		{Name: "get-user-env", Argument: optional}, {Name: "requeue"}, {Name: "no-requeue"},
	}
}

// stepOptions is what srun was asked for.
type stepOptions struct {
	request        step.Request
	command        []string
	isMulti        bool
	output, errors string // patterns; empty: the streams of srun
	input          string
	append         bool
	label          bool
	unbuffered     bool
	directory      string
	export         string // of --export
	killOnBadExit  bool
	wait           time.Duration // after the first end; 0: for ever
	limit          time.Duration // 0: none
	name           string
	ranks          bool // PMI-1
	pty            bool
	immediate      bool
	quiet          bool
}

// optionReader reads the values of options, in this order: what the job says, srun's own
// variables, and the command line.
type optionReader struct {
	c     *frame.Invocation
	given []getopt.Given
	err   error
}

func (r *optionReader) value(option string, variables ...string) string {
	if v, ok := getopt.Last(r.given, option); ok {
		return v
	}
	for _, name := range variables {
		if v := r.c.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}

func (r *optionReader) isSet(option string) bool {
	_, ok := getopt.Last(r.given, option)
	return ok
}

// number reads a whole number, 0 if there is none.
func (r *optionReader) number(option string, least int, variables ...string) int {
	text := r.value(option, variables...)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > math.MaxInt32 {
		r.fail("Invalid numeric value %q for --%s.", text, option)
		return 0
	}
	return n
}

func (r *optionReader) fail(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, a...)
	}
}

// readStepOptions reads the options of a step inside an allocation.
func readStepOptions(c *frame.Invocation, given []getopt.Given, command []string) (*stepOptions, error) {
	r := &optionReader{c: c, given: given}
	o := &stepOptions{command: command, name: r.value("job-name")}
	o.request = step.Request{
		Nodes:        r.nodes(),
		Tasks:        r.number("ntasks", 1),
		TasksPerNode: r.number("ntasks-per-node", 1, "SLURM_NTASKS_PER_NODE"),
		CPUsPerTask:  r.number("cpus-per-task", 1, "SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_TASK"),
		First:        r.number("relative", 0),
		Overlap:      r.isSet("overlap") || r.isSet("pty"),
		Overcommit:   r.isSet("overcommit") || c.Getenv("SLURM_OVERCOMMIT") != "",
	}
	r.readTasks(&o.request)
	r.readLists(&o.request)
	distribution, _, _ := strings.Cut(r.value("distribution", "SLURM_DISTRIBUTION"), ":")
	o.request.Cyclic = distribution == "cyclic"
	o.output, o.errors = r.value("output", "SLURM_STDOUTMODE"), r.value("error", "SLURM_STDERRMODE")
	o.input = r.value("input", "SLURM_STDINMODE")
	o.append = r.value("open-mode", "SLURM_OPEN_MODE") == "append" || r.value("open-mode") == "a"
	o.label = r.isSet("label") || c.Getenv("SLURM_LABELIO") != ""
	o.unbuffered = r.isSet("unbuffered") || c.Getenv("SLURM_UNBUFFEREDIO") != ""
	o.directory = r.value("chdir", "SLURM_WORKING_DIR")
	o.export = r.value("export", "SLURM_EXPORT_ENV")
	o.killOnBadExit = r.killOnBadExit()
	o.wait = time.Duration(r.number("wait", 0, "SLURM_WAIT")) * time.Second
	o.isMulti, o.pty, o.quiet = r.isSet("multi-prog"), r.isSet("pty"), r.isSet("quiet")
	o.immediate = r.isSet("immediate")
	o.ranks = r.readMPI(c.Getenv("SLURM_MPI_TYPE"))
	if text := r.value("time", "SLURM_TIMELIMIT"); text != "" {
		o.limit = r.timeLimit(text)
	}
	return o, r.err
}

// nodes reads a number of nodes: "2", or "2-4", of which the first counts.
func (r *optionReader) nodes() int {
	variables := []string{"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}
	if r.isSet("nodelist") || r.isSet("relative") {
		variables = nil
	}
	text := r.value("nodes", variables...)
	if text == "" {
		return 0
	}
	least, _, _ := strings.Cut(text, "-")
	n, err := strconv.Atoi(least)
	if err != nil || n < 1 {
		r.fail("Invalid --nodes specification")
	}
	return n
}

// readTasks reads how many tasks there are. What the job has counts only if the step asks
// for no other shape.
func (r *optionReader) readTasks(request *step.Request) {
	if request.Tasks == 0 && !r.isSet("nodes") && !r.isSet("nodelist") && !r.isSet("relative") &&
		!r.isSet("ntasks-per-node") && !r.isSet("pty") {
		request.Tasks = r.number("ntasks", 1, "SLURM_NTASKS", "SLURM_NPROCS", "PBS_NP")
	}
	if r.isSet("pty") && request.Tasks == 0 {
		request.Tasks, request.Nodes = 1, 0
	}
	if r.isSet("ntasks") {
		request.TasksPerNode = r.number("ntasks-per-node", 1)
	}
}

func (r *optionReader) killOnBadExit() bool {
	if v, ok := getopt.Last(r.given, "kill-on-bad-exit"); ok {
		return v != "0"
	}
	v := r.c.Getenv("SLURM_KILL_BAD_EXIT")
	return v != "" && v != "0"
}

// readMPI says whether tasks are to speak PMI-1 or PMI-2, which costs those that do not
// nothing.
func (r *optionReader) readMPI(variable string) bool {
	kind, ok := getopt.Last(r.given, "mpi")
	if !ok {
		kind = variable
	}
	switch kind {
	case "none":
		return false
	case "", "pmi1", "pmi2":
		return true
	case "cray_shasta", "pmix", "pmix_v2", "pmix_v3", "pmix_v4", "pmix_v5":
		if !ok {
			return true // a variable that the user need not know of
		}
		r.fail("Invalid MPI type %q: there are none, pmi1 and pmi2. MPICH, Intel MPI and MVAPICH start by these; "+
			"for Open MPI call mpirun in the job, which finds its machines", kind)
	default:
		r.fail("Invalid MPI type %q, --mpi=list for acceptable types", kind)
	}
	return false
}

// timeLimit reads a time limit as srun(1) has it.
func (r *optionReader) timeLimit(text string) time.Duration {
	d, unlimited, ok := sbatch.ParseTime(text)
	if !ok {
		r.fail("Invalid --time specification")
	}
	if unlimited {
		return 0
	}
	return d
}

// refusedOptions are options that would change the result, and are not there.
func refusedOptions() map[string]string {
	return map[string]string{
		"het-group":   "heterogeneous jobs are not there: submit jobs of one kind each",
		"container":   "containers are chosen for the job: see image in roost-job(5)",
		"no-allocate": "a step runs in an allocation",
		"uid":         "a step runs as the user of its job",
	}
}

func findRefused(given []getopt.Given) string {
	refused := refusedOptions()
	i := slices.IndexFunc(given, func(g getopt.Given) bool { return refused[g.Name] != "" })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("--%s: %s", given[i].Name, refused[given[i].Name])
}

// readLists reads the names of nodes. A list that is a path is in a file.
func (r *optionReader) readLists(request *step.Request) {
	read := func(option string) []string {
		text := r.value(option)
		if strings.Contains(text, "/") {
			content, err := os.ReadFile(text)
			if err != nil {
				r.fail("--%s: %v", option, err)
				return nil
			}
			text = strings.Join(strings.Fields(string(content)), ",")
		}
		if text == "" {
			return nil
		}
		names, err := hostlist.Expand(text)
		if err != nil {
			r.fail("Invalid node name specified in --%s: %v", option, err)
		}
		return names
	}
	request.NodeList, request.Exclude = read("nodelist"), read("exclude")
}
