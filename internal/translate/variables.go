package translate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"
)

// foreignVariable is a variable that the other system sets and the script reads.
type foreignVariable struct {
	name        string
	value       string // an expression of the job file, if the value is known before the job runs
	runtime     string // a word of the shell, otherwise
	roostName   string // variable of Roost with the same value
	preparation string // a line of the shell that must come first
	meaning     string // for the user
}

// assignment returns the line that sets the variable in a shell of that family, or "".
func (v foreignVariable) assignment(family string) string {
	if v.value != "" || v.runtime == "" {
		return ""
	}
	switch {
	case family == "sh":
		return v.preparation + "export " + v.name + "=" + v.runtime
	case family == "csh" && v.runtime == `"$`+v.roostName+`"`:
		return "setenv " + v.name + " " + v.runtime
	}
	return ""
}

// jobContext holds the variables whose values are known before the job runs, with their
// expressions.
type jobContext map[string]string

// The variables of the other systems, as they appear in scripts of any language.
var (
	slurmVariable = lazyregexp.New(`\bSLURM(?:D)?_[A-Z0-9_]+\b`)
	pbsVariable   = lazyregexp.New(`\b(?:PBS_[A-Z0-9_]+|NCPUS|OMP_NUM_THREADS)\b`)
)

// variablesReadBy lists the variables of the other system that the script reads, with
// their values here. The index of an array is always set, because programs that the
// script starts may read it.
func (t *fileTranslation) variablesReadBy(s *parsedScript, known jobContext) []foreignVariable {
	pattern := slurmVariable
	if t.from != Slurm {
		pattern = pbsVariable
	}
	seen := map[string]bool{}
	for i, l := range s.lines {
		if strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		for _, name := range pattern().FindAllString(l, -1) {
			if name == "OMP_NUM_THREADS" && assignsVariable(l, name) {
				continue
			}
			if !seen[name] {
				seen[name] = true
				if _, ok := known[name]; !ok && t.explainVariable(name, known).meaning == "" {
					t.noteDifference(s.numbers[i], l, "Nothing in Roost corresponds to $"+name+": the variable is "+
						"not set.")
				}
			}
		}
	}
	for _, name := range []string{"SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID"} {
		if _, ok := known[name]; ok && (name != "PBS_ARRAYID" || t.from == Torque) &&
			(name != "PBS_ARRAY_INDEX" || t.from == PBS) {
			seen[name] = true
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []foreignVariable
	for _, name := range names {
		if v := t.explainVariable(name, known); v.meaning != "" {
			out = append(out, v)
		}
	}
	return out
}

func assignsVariable(line, name string) bool {
	return regexp.MustCompile(`\b` + name + `=`).MatchString(line)
}

// explainVariable returns the value of a variable here; its meaning is empty if it has
// none.
func (t *fileTranslation) explainVariable(name string, known jobContext) foreignVariable {
	v := foreignVariable{name: name}
	if value, ok := known[name]; ok {
		v.value, v.meaning = value, "set by environment, below"
		if strings.Contains(value, "task.index") || strings.Contains(value, "each.value") {
			v.meaning += "; $ROOST_TASK_INDEX counts from 0"
		}
		return v
	}
	if name == nodeFile {
		v.meaning = "set by Roost itself, for processes, below"
		return v
	}
	v.runtime, v.roostName, v.preparation = t.runtimeValue(name, known)
	if v.runtime != "" {
		v.meaning = "$" + v.roostName + ", set at the top of the script"
		if v.roostName == "" {
			v.meaning = "set at the top of the script"
		}
	}
	return v
}

// runtimeValue returns how a shell computes the variable, and which variable of Roost it
// comes from.
func (t *fileTranslation) runtimeValue(name string, known jobContext) (word, here, before string) {
	_, several := known["array"]
	switch name {
	case "SLURM_JOB_ID", "SLURM_JOBID":
		return `"${ROOST_JOB_ID%%.*}"`, "ROOST_JOB_ID", ""
	case "SLURM_ARRAY_JOB_ID":
		return `"${ROOST_JOB_ID%%.*}"`, "ROOST_JOB_ID", ""
	case "PBS_JOBID":
		if several {
			return `"$ROOST_TASK_ID"`, "ROOST_TASK_ID", ""
		}
		return `"$ROOST_JOB_ID"`, "ROOST_JOB_ID", ""
	case "PBS_ARRAY_ID":
		return `"$ROOST_JOB_ID"`, "ROOST_JOB_ID", ""
	case "SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "PBS_O_INITDIR", "PBS_JOBDIR":
		return `"$PWD"`, "PWD", "" // where a task starts, even on a machine without the submitter's files
	case "SLURM_SUBMIT_HOST", "PBS_O_HOST", "PBS_SERVER":
		return `"$ROOST_SUBMIT_HOST"`, "ROOST_SUBMIT_HOST", ""
	case "SLURMD_NODENAME":
		return `"$ROOST_NODE"`, "ROOST_NODE", ""
	case "SLURM_RESTART_COUNT":
		return `"$((ROOST_ATTEMPT - 1))"`, "ROOST_ATTEMPT", ""
	case "SLURM_JOB_USER", "PBS_O_LOGNAME":
		return `"$(id -un)"`, "", ""
	case "SLURM_JOB_UID":
		return `"$(id -u)"`, "", ""
	case "SLURM_TMPDIR":
		return `"${TMPDIR:-/tmp}"`, "TMPDIR", ""
	case "SLURM_PROCID", "SLURM_NODEID", "PBS_NODENUM", "PBS_TASKNUM", "PBS_VNODENUM":
		return `"${ROOST_GANG_RANK:-0}"`, "ROOST_GANG_RANK", ""
	case "SLURM_LOCALID":
		return `0`, "", ""
	case "SLURM_JOB_NODELIST", "SLURM_NODELIST":
		return `"${ROOST_GANG_NODES:-$ROOST_NODE}"`, "ROOST_GANG_NODES", ""
	case "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "GPU_DEVICE_ORDINAL":
		return `"$CUDA_VISIBLE_DEVICES"`, "CUDA_VISIBLE_DEVICES", ""
	case "PBS_O_HOME":
		return `"$HOME"`, "HOME", ""
	case "PBS_O_PATH":
		return `"$PATH"`, "PATH", ""
	case "PBS_O_SHELL":
		return `"$SHELL"`, "SHELL", ""
	}
	return "", "", ""
}

// nodeFile is the variable that names the file with a task's lines, whose number is
// processes.
const nodeFile = "PBS_NODEFILE"

// requestSize is the size of one job's request.
type requestSize struct {
	nodes, tasks, perNode, cpus, gpus int // gpus of one machine; tasks of the whole job
	memory                            int64
	queue, account, name              string
	array                             *arrayIndexes
}

// knownVariables returns the variables whose values are known before the job runs.
func (t *fileTranslation) knownVariables(j *jobBlock) jobContext {
	r := t.request
	f := jobContext{}
	set := func(name string, n int) {
		if n > 0 {
			f[name] = strconv.Itoa(n)
		}
	}
	text := func(name, value string) {
		if value != "" {
			f[name] = quotedText(value)
		}
	}
	nodes := max(r.nodes, 1)
	if r.array != nil {
		f["array"] = ""
	}
	if t.from == Slurm {
		for _, n := range []string{"SLURM_NNODES", "SLURM_JOB_NUM_NODES"} {
			set(n, nodes)
		}
		for _, n := range []string{"SLURM_NTASKS", "SLURM_NPROCS"} {
			set(n, max(r.tasks, 1))
		}
		set("SLURM_CPUS_PER_TASK", max(r.cpus, 1))
		set("SLURM_NTASKS_PER_NODE", max(r.perNode, 1))
		set("SLURM_TASKS_PER_NODE", max(r.perNode, 1))
		set("SLURM_CPUS_ON_NODE", max(r.perNode, 1)*max(r.cpus, 1))
		set("SLURM_JOB_CPUS_PER_NODE", max(r.perNode, 1)*max(r.cpus, 1))
		set("SLURM_GPUS", r.gpus*nodes)
		set("SLURM_GPUS_ON_NODE", r.gpus)
		set("SLURM_GPUS_PER_NODE", r.gpus)
		set("SLURM_MEM_PER_NODE", int(r.memory>>20))
		text("SLURM_JOB_NAME", r.name)
		text("SLURM_JOB_PARTITION", r.queue)
		text("SLURM_JOB_ACCOUNT", r.account)
		if r.array != nil {
			least, most := r.array.indexBounds()
			if j.index != "" {
				f["SLURM_ARRAY_TASK_ID"] = j.index
			}
			f["SLURM_ARRAY_TASK_MIN"], f["SLURM_ARRAY_TASK_MAX"] = strconv.Itoa(least), strconv.Itoa(most)
			set("SLURM_ARRAY_TASK_COUNT", r.array.taskCount())
			set("SLURM_ARRAY_TASK_STEP", r.array.rows[0].step)
		}
		return f
	}
	set("PBS_NUM_NODES", nodes)
	set("PBS_NUM_PPN", max(r.perNode, 1))
	set("PBS_NP", max(r.perNode, 1)*nodes)
	set("NCPUS", max(r.cpus, 1))
	set("OMP_NUM_THREADS", max(r.cpus, 1))
	text("PBS_JOBNAME", r.name)
	text("PBS_QUEUE", r.queue)
	text("PBS_O_QUEUE", r.queue)
	f["PBS_ENVIRONMENT"] = `"PBS_BATCH"`
	if r.array != nil && j.index != "" {
		f["PBS_ARRAY_INDEX"], f["PBS_ARRAYID"] = j.index, j.index
	}
	return f
}
