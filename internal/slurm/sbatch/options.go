package sbatch

import (
	"slices"

	"github.com/roost-batch/roost/internal/slurm/getopt"
)

// Options are the options of sbatch. Of those that stand in no reader, most would not
// change what the job does here, and are taken without an effect.
func Options() []getopt.Option {
	const (
		required = getopt.Required
		optional = getopt.Optional
	)
	return []getopt.Option{
		{Name: "account", Letter: 'A', Argument: required}, {Name: "array", Letter: 'a', Argument: required},
		{Name: "begin", Letter: 'b', Argument: required}, {Name: "chdir", Letter: 'D', Argument: required},
		{Name: "comment", Argument: required}, {Name: "constraint", Letter: 'C', Argument: required},
		{Name: "cpus-per-task", Letter: 'c', Argument: required}, {Name: "dependency", Letter: 'd', Argument: required},
		{Name: "error", Letter: 'e', Argument: required}, {Name: "exclude", Letter: 'x', Argument: required},
		{Name: "exclusive", Argument: optional}, {Name: "export", Argument: required},
		{Name: "gpus", Letter: 'G', Argument: required}, {Name: "gpus-per-node", Argument: required},
		{Name: "gpus-per-task", Argument: required}, {Name: "gres", Argument: required}, {Name: "hold", Letter: 'H'},
		{Name: "input", Letter: 'i', Argument: required}, {Name: "job-name", Letter: 'J', Argument: required},
		{Name: "mail-type", Argument: required}, {Name: "mail-user", Argument: required},
		{Name: "mem", Argument: required}, {Name: "mem-per-cpu", Argument: required},
		{Name: "mem-per-gpu", Argument: required}, {Name: "nice", Argument: optional},
		{Name: "nodelist", Letter: 'w', Argument: required}, {Name: "nodes", Letter: 'N', Argument: required},
		{Name: "ntasks", Letter: 'n', Argument: required}, {Name: "ntasks-per-node", Argument: required},
		{Name: "open-mode", Argument: required}, {Name: "output", Letter: 'o', Argument: required},
		{Name: "parsable"}, {Name: "partition", Letter: 'p', Argument: required},
		{Name: "qos", Letter: 'q', Argument: required}, {Name: "quiet", Letter: 'Q'}, {Name: "requeue"},
		{Name: "no-requeue"}, {Name: "reservation", Argument: required}, {Name: "signal", Argument: required},
		{Name: "time", Letter: 't', Argument: required}, {Name: "tmp", Argument: required},
		{Name: "wait", Letter: 'W'}, {Name: "wrap", Argument: required}, {Name: "help", Letter: 'h'}, {Name: "usage"},
		{Name: "version", Letter: 'V'}, {Name: "verbose", Letter: 'v'}, {Name: "test-only"},
		{Name: "ignore-pbs"}, {Name: "get-user-env", Argument: optional},
		{Name: "clusters", Letter: 'M', Argument: required},
		{Name: "cluster", As: "clusters", Argument: required},

		{Name: "container", Argument: required}, {Name: "container-id", Argument: required},
		{Name: "bb", Argument: required}, {Name: "bbf", Argument: required}, {Name: "uid", Argument: required},
		{Name: "gid", Argument: required}, {Name: "export-file", Argument: required},
		{Name: "licenses", Letter: 'L', Argument: required},

		{Name: "acctg-freq", Argument: required}, {Name: "batch", Argument: required}, {Name: "cluster-constraint",
			Argument: required}, {Name: "contiguous"}, {Name: "core-spec", Letter: 'S', Argument: required},
		{Name: "cores-per-socket", Argument: required}, {Name: "cpu-freq", Argument: required},
		{Name: "cpus-per-gpu", Argument: required}, {Name: "deadline", Argument: required},
		{Name: "delay-boot", Argument: required}, {Name: "distribution", Letter: 'm', Argument: required},
		{Name: "extra", Argument: required}, {Name: "extra-node-info", Letter: 'B', Argument: required},
		{Name: "gpu-bind", Argument: required}, {Name: "gpu-freq", Argument: required},
		{Name: "gpus-per-socket", Argument: required}, {Name: "gres-flags", Argument: required},
		{Name: "hint", Argument: required}, {Name: "kill-on-invalid-dep", Argument: required},
		{Name: "mcs-label", Argument: required}, {Name: "mem-bind", Argument: required},
		{Name: "mincpus", Argument: required}, {Name: "network", Argument: required},
		{Name: "no-kill", Letter: 'k', Argument: optional}, {Name: "nodefile", Letter: 'F', Argument: required},
		{Name: "ntasks-per-core", Argument: required}, {Name: "ntasks-per-gpu", Argument: required},
		{Name: "ntasks-per-socket", Argument: required}, {Name: "overcommit", Letter: 'O'},
		{Name: "oversubscribe", Letter: 's'}, {Name: "share", As: "oversubscribe"}, {Name: "power", Argument: required},
		{Name: "prefer", Argument: required}, {Name: "priority", Argument: required},
		{Name: "profile", Argument: required},
		{Name: "propagate", Argument: optional}, {Name: "reboot"}, {Name: "resv-ports", Argument: optional},
		{Name: "segment", Argument: required}, {Name: "sockets-per-node", Argument: required}, {Name: "spread-job"},
		{Name: "switches", Argument: required}, {Name: "thread-spec", Argument: required},
		{Name: "threads-per-core", Argument: required}, {Name: "time-min", Argument: required},
		{Name: "tres-bind", Argument: required}, {Name: "tres-per-task", Argument: required}, {Name: "use-min-nodes"},
		{Name: "wait-all-nodes", Argument: required}, {Name: "wckey", Argument: required}, {Name: "hetjob"},
	}
}

// refusedOptions would change what the job does, and are not there. Their values say what
// to do instead.
func refusedOptions() map[string]string {
	return map[string]string{
		"container":    "give the image in a job file (image in roost-job(5)), or call apptainer in the script",
		"container-id": "give the image in a job file (image in roost-job(5))",
		"bb":           "there are no burst buffers: name inputs and outputs in a job file (roost-job(5))",
		"bbf":          "there are no burst buffers: name inputs and outputs in a job file (roost-job(5))",
		"uid":          "a job runs as the user who submits it",
		"gid":          "a job runs as the user who submits it",
		"export-file":  "export the variables, or name them in --export",
	}
}

// variables are the variables of sbatch that stand for options, by option.
func variables() map[string]string {
	return map[string]string{
		"account": "SBATCH_ACCOUNT", "array": "SBATCH_ARRAY_INX", "clusters": "SBATCH_CLUSTERS",
		"constraint": "SBATCH_CONSTRAINT", "error": "SBATCH_ERROR", "exclusive": "SBATCH_EXCLUSIVE",
		"export": "SBATCH_EXPORT", "gpus": "SBATCH_GPUS", "gpus-per-node": "SBATCH_GPUS_PER_NODE",
		"gpus-per-task": "SBATCH_GPUS_PER_TASK", "gres": "SBATCH_GRES", "ignore-pbs": "SBATCH_IGNORE_PBS",
		"input": "SBATCH_INPUT", "job-name": "SBATCH_JOB_NAME", "mem-per-cpu": "SBATCH_MEM_PER_CPU",
		"mem": "SBATCH_MEM_PER_NODE", "no-requeue": "SBATCH_NO_REQUEUE", "open-mode": "SBATCH_OPEN_MODE",
		"output": "SBATCH_OUTPUT", "partition": "SBATCH_PARTITION", "qos": "SBATCH_QOS", "requeue": "SBATCH_REQUEUE",
		"reservation": "SBATCH_RESERVATION", "signal": "SBATCH_SIGNAL", "time": "SBATCH_TIMELIMIT",
		"wait": "SBATCH_WAIT",
	}
}

// isAllowed says whether an option has the effect that it is given for, or none at all.
func isAllowed(g getopt.Given) (why string, ok bool) {
	why, refused := refusedOptions()[g.Name]
	return why, !refused
}

// dropConflicts drops options whose place a later one takes.
func dropConflicts(given []getopt.Given) []getopt.Given {
	for _, pair := range [][]string{{"requeue", "no-requeue"}, {"mem", "mem-per-cpu", "mem-per-gpu"}} {
		last := -1
		for i, g := range given {
			if slices.Contains(pair, g.Name) {
				last = i
			}
		}
		if last < 0 {
			continue
		}
		kind := given[last].Name
		given = slices.DeleteFunc(given, func(g getopt.Given) bool {
			return slices.Contains(pair, g.Name) && g.Name != kind
		})
	}
	return given
}
