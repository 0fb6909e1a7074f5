package sbatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/step"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// setEnvironment puts the variables of Slurm in the place of those of PBS. What only the
// machine knows is added there (package startd/claim).
func (s *submission) setEnvironment(ad *classad.Ad) {
	entries, _ := ad.Strings(roost.AttrEnvironment)
	list := slices.DeleteFunc(entries, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		own, _ := qsub.LookUpVariable(s.environ, name)
		switch {
		case strings.HasPrefix(name, "PBS_"), strings.HasPrefix(name, "SLURM_"), strings.HasPrefix(name, "SBATCH_"):
			return true
		case name == "NCPUS" || name == "OMP_NUM_THREADS":
			return own == ""
		}
		return false
	})
	for i, v := range list {
		name, _, _ := strings.Cut(v, "=")
		if own, there := qsub.LookUpVariable(s.environ, name); there && (name == "NCPUS" || name == "OMP_NUM_THREADS") {
			list[i] = name + "=" + jobspec.EscapeLiteral(own)
		}
	}
	put := func(name, value string) { list = append(list, name+"="+value) }
	text := func(name, value string) {
		if value != "" {
			put(name, jobspec.EscapeLiteral(value))
		}
	}
	put("SLURM_JOB_ID", taskNumber)
	put("SLURM_JOBID", taskNumber)
	text("SLURM_JOB_NAME", s.Name)
	text("SLURM_JOB_USER", s.caller.User)
	text("SLURM_SUBMIT_DIR", s.caller.Dir)
	text("SLURM_SUBMIT_HOST", s.caller.Host)
	put("SLURM_CLUSTER_NAME", "$(JobHost)")
	text("SLURM_JOB_PARTITION", s.partition())
	text("SLURM_JOB_ACCOUNT", s.value("account"))
	text("SLURM_JOB_QOS", "normal")
	text("SLURM_JOB_RESERVATION", s.value("reservation"))
	text("SLURM_JOB_DEPENDENCY", s.value("dependency"))
	put("SLURM_PROCID", "0")
	put("SLURM_LOCALID", "0")
	put("SLURM_NODEID", "0")
	put("SLURM_GTIDS", "0")
	put("SLURM_PRIO_PROCESS", "0")
	put("SLURM_OOM_KILL_STEP", "0")
	s.putLayout(put)
	s.putArray(put)
	if s.has("export") && s.value("export") != "ALL" {
		text("SLURM_EXPORT_ENV", s.value("export"))
		put("SLURM_GET_USER_ENV", "1")
	}
	ad.SetStrings(roost.AttrEnvironment, list)
}

func (s *submission) partition() string {
	first, _, _ := strings.Cut(s.value("partition"), ",")
	if first == "" {
		return roost.DefaultQueueName
	}
	return first
}

// putLayout adds what was asked for, as far as it was.
func (s *submission) putLayout(put func(name, value string)) {
	l := &s.layout
	put("SLURM_JOB_NUM_NODES", strconv.Itoa(l.nodes))
	put("SLURM_NNODES", strconv.Itoa(l.nodes))
	if l.hasTasks {
		put("SLURM_NTASKS", strconv.Itoa(l.tasks))
		put("SLURM_NPROCS", strconv.Itoa(l.tasks))
	}
	if l.perNode > 0 {
		put("SLURM_NTASKS_PER_NODE", strconv.Itoa(l.perNode))
	}
	if s.has("cpus-per-task") {
		put("SLURM_CPUS_PER_TASK", strconv.Itoa(l.cpus))
	}
	if l.megabytes > 0 && s.value("mem-per-cpu") != "" {
		n, _ := ParseMegabytes(s.value("mem-per-cpu"))
		put("SLURM_MEM_PER_CPU", strconv.FormatInt(n, 10))
	} else if l.megabytes > 0 {
		put("SLURM_MEM_PER_NODE", strconv.FormatInt(l.megabytes, 10))
	}
	for option, name := range map[string]string{"gpus": "SLURM_GPUS", "gpus-per-node": "SLURM_GPUS_PER_NODE",
		"gpus-per-task": "SLURM_GPUS_PER_TASK"} {
		if v := s.value(option); v != "" {
			put(name, jobspec.EscapeLiteral(v))
		}
	}
	tasks, cpus := make([]int, l.nodes), make([]int, l.nodes) // srun reads the processors of each node
	for i := range tasks {
		tasks[i], cpus[i] = l.tasksOf(i), l.tasksOf(i)*l.cpus
	}
	put("SLURM_JOB_CPUS_PER_NODE", step.CompressCounts(cpus))
	put("SLURM_TASKS_PER_NODE", step.CompressCounts(tasks))
	put("SLURM_CPUS_ON_NODE", strconv.Itoa(l.tasksOf(0)*l.cpus))
}

// putArray adds what a task of an array is.
func (s *submission) putArray(put func(name, value string)) {
	index := s.arrayIndex()
	if index == "" {
		return
	}
	put("SLURM_ARRAY_JOB_ID", jobNumber)
	put("SLURM_ARRAY_TASK_ID", index)
	put("SLURM_ARRAY_TASK_COUNT", strconv.Itoa(s.Array.Len()))
	least, most := s.Array.IndexOf(0), s.Array.IndexOf(s.Array.Len()-1)
	put("SLURM_ARRAY_TASK_MIN", fmt.Sprint(least))
	put("SLURM_ARRAY_TASK_MAX", fmt.Sprint(most))
	between := "1"
	if _, after, ok := strings.Cut(s.array, ":"); ok && !strings.Contains(s.array, ",") {
		between = after
	}
	put("SLURM_ARRAY_TASK_STEP", between)
}

func expandHosts(text string) ([]string, error) {
	hosts, err := hostlist.Expand(text)
	if err != nil {
		return nil, fail("Invalid node list: %v", err)
	}
	return hosts, nil
}
