package records

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Field is something that squeue can list about a job.
type Field struct {
	Letter byte   // of -o; 0: it has none
	Names  string // of -O, in small letters, with blanks between
	Title  string
	value  func(*Job, *Clock) string
}

// Value is the text of the field for a job.
func (f *Field) Value(j *Job, c *Clock) string { return visible(f.value(j, c)) }

// constant is the value of what jobs of Roost do not have.
func constant(text string) func(*Job, *Clock) string {
	return func(*Job, *Clock) string { return text }
}

// of is a value that depends on no time.
func of(value func(*Job) string) func(*Job, *Clock) string {
	return func(j *Job, _ *Clock) string { return value(j) }
}

// orNull is a text, or what Slurm writes where there is none.
func orNull(text string) string { return cmp.Or(text, "(null)") }

// fields are the fields of squeue.
func fields() []Field {
	return append(append(nameFields(), amountFields()...), timeFields()...)
}

func nameFields() []Field {
	return []Field{
		{'i', "jobarrayid", "JOBID", of((*Job).ID)},
		{'A', "jobid", "JOBID", of((*Job).RawID)},
		{'F', "arrayjobid", "ARRAY_JOB_ID", of((*Job).ArrayID)},
		{'K', "arraytaskid", "ARRAY_TASK_ID", of(arrayIndex)},
		{'j', "name jobname", "NAME", of(jobName)},
		{'u', "username user", "USER", of((*Job).GetOwner)},
		{'U', "userid uid", "UID", of(func(j *Job) string { return adNumber(j, roost.AttrOwnerUID) })},
		{'g', "groupname group", "GROUP", of(func(j *Job) string { return adText(j, roost.AttrUnixGroup) })},
		{'G', "groupid gid", "GROUP", of(func(j *Job) string { return adNumber(j, roost.AttrOwnerGID) })},
		{'a', "account", "ACCOUNT", of(func(j *Job) string { return orNull(j.Account()) })},
		{'P', "partition", "PARTITION", of((*Job).Partition)},
		{'q', "qos", "QOS", constant("normal")},
		{'v', "reservation", "RESERVATION", of(func(j *Job) string { return orNull(j.GetReservation()) })},
		{'w', "wckey", "WCKEY", constant("(null)")},
		{'t', "statecompact", "ST", of((*Job).ShortState)},
		{'T', "state", "STATE", of(func(j *Job) string { return j.State })},
		{'r', "reason", "REASON", of((*Job).Reason)},
		{'R', "reasonlist", "NODELIST(REASON)", of(reasonOrNodes)},
		{'N', "nodelist", "NODELIST", of((*Job).NodeList)},
		{'n', "reqnodes", "REQ_NODES", of(func(j *Job) string { return j.asked("ReqNodeList") })},
		{'x', "excnodes", "EXC_NODES", of(func(j *Job) string { return j.asked("ExcNodeList") })},
		{'Y', "schednodes", "SCHEDNODES", constant("(null)")},
		{'B', "batchhost", "EXEC_HOST", of(firstHost)},
		{'E', "dependency", "DEPENDENCY", of(func(j *Job) string { return orNull(j.Dependency()) })},
		{'f', "feature", "FEATURES", askedText("Features")},
		{'k', "comment", "COMMENT", askedText("Comment")},
		{'W', "licenses", "LICENSES", of(func(j *Job) string { return orNull(j.licenses()) })},
		{'o', "command", "COMMAND", of(func(j *Job) string { return orNull(j.Command()) })},
		{'Z', "workdir", "WORK_DIR", of((*Job).WorkDir)},
		{0, "stdout", "STDOUT", of((*Job).StdOut)}, {0, "stderr", "STDERR", of((*Job).StdErr)},
		{0, "stdin", "STDIN", of((*Job).StdIn)},
		{0, "cluster", "CLUSTER", of(func(j *Job) string { return j.Host })},
		{0, "allocnodes alloc_nodes", "ALLOC_NODES", of(func(j *Job) string { return j.Host })},
		{0, "allocsid", "ALLOC_SID", constant("0")}, {0, "mcslabel", "MCSLABEL", constant("N/A")},
		{0, "admin_comment", "ADMIN_COMMENT", constant("(null)")},
		{0, "system_comment", "SYSTEM_COMMENT", constant("(null)")},
		{0, "clusterfeature", "CLUSTER_FEATURES", constant("(null)")},
		{0, "network", "NETWORK", constant("(null)")}, {0, "origin", "ORIGIN", constant("NA")},
		{0, "originraw", "ORIGIN_RAW", constant("0")},
		{0, "siblingsactive", "ACTIVE_SIBLINGS", constant("NA")},
		{0, "siblingsviable", "VIABLE_SIBLINGS", constant("NA")},
		{0, "burstbuffer", "BURST_BUFFER", constant("(null)")},
		{0, "burstbufferstate", "BURST_BUFFER_STATE", constant("(null)")},
		{0, "container", "CONTAINER", constant("(null)")}, {0, "containerid", "CONTAINER_ID", constant("(null)")},
	}
}

func amountFields() []Field {
	return []Field{
		{'D', "numnodes", "NODES", of(func(j *Job) string { return strconv.Itoa(j.NodeCount()) })},
		{'C', "numcpus", "CPUS", of(func(j *Job) string { return strconv.FormatInt(j.CPUs(), 10) })},
		{0, "numtasks", "TASKS", of(func(j *Job) string { return decimal(j.Tasks()) })},
		{'m', "minmemory", "MIN_MEMORY", of(func(j *Job) string { return Memory(j.nodeMemory()) })},
		{'c', "mincpus", "MIN_CPUS", of(func(j *Job) string { return decimal(j.leastCPUs()) })},
		{'d', "mintmpdisk", "MIN_TMP_DISK", of(func(j *Job) string {
			return cmp.Or(strings.TrimPrefix(Memory(j.GetRequest().GetDisk()), "0"), "0")
		})},
		{'b', "tres-per-node gres", "TRES_PER_NODE", of(func(j *Job) string { return cmp.Or(j.gres(), "N/A") })},
		{0, "tres-per-job", "TRES_PER_JOB", constant("N/A")}, {0, "tres-per-task", "TRES_PER_TASK", constant("N/A")},
		{0, "tres-per-socket", "TRES_PER_SOCKET", constant("N/A")},
		{0, "cpus-per-task", "CPUS_PER_TASK", of(func(j *Job) string { return decimal(j.cpusPerTask()) })},
		{0, "cpus-per-tres", "CPUS_PER_TRES", constant("N/A")}, {0, "mem-per-tres", "MEM_PER_TRES", constant("N/A")},
		{0, "tres-alloc tres", "TRES_ALLOC", of((*Job).tresAlloc)},
		{0, "maxcpus", "MAX_CPUS", constant("0")}, {0, "maxnodes", "MAX_NODES", constant("0")},
		{'h', "oversubscribe", "OVER_SUBSCRIBE", constant("OK")},
		{'y', "nice", "NICE", of(func(j *Job) string { return decimal(j.nice()) })},
		{'z', "sct", "S:C:T", constant("*:*:*")}, {'H', "sockets", "SOCKETS", constant("*")},
		{'I', "cores", "CORES", constant("*")}, {'J', "threads", "THREADS", constant("*")},
		{'X', "corespec", "CORE_SPEC", constant("N/A")}, {'O', "contiguous", "CONTIGUOUS", constant("0")},
		{0, "ntperboard", "TASKS_PER_BOARD", constant("0")}, {0, "ntpercore", "TASKS_PER_CORE", constant("0")},
		{0, "ntpernode", "TASKS_PER_NODE", of(func(j *Job) string {
			return decimal(j.askedNumber("NtasksPerNode"))
		})}, {0, "ntpersocket", "TASKS_PER_SOCKET", constant("0")},
		{0, "profile", "PROFILE", constant("(null)")}, {0, "reboot", "REBOOT", constant("0")},
		{0, "requeue", "REQUEUE", of(func(j *Job) string { return strconv.Itoa(requeues(j)) })},
		{0, "reqswitch", "REQ_SWITCH", constant("0")}, {0, "hetjobid", "HET_JOB_ID", constant("0")},
		{0, "hetjoboffset", "HET_JOB_OFFSET", constant("0")}, {0, "hetjobidset", "HET_JOB_ID_SET", constant("(null)")},
		{0, "threads-per-core", "THREADS_PER_CORE", constant("N/A")}, {0, "cpufreq", "CPU_FREQ", constant("N/A")},
		{0, "restartcnt", "RESTART_COUNT", of(func(j *Job) string { return strconv.Itoa(j.restarts()) })},
		{0, "exit_code", "EXIT_CODE", of(func(j *Job) string {
			code, signal := j.ExitCode()
			return strconv.Itoa(code) + ":" + strconv.Itoa(signal)
		})},
		{0, "derivedec", "DERIVED_EXIT_CODE", constant("0")},
		{'Q', "prioritylong", "PRIORITY", of(func(j *Job) string { return strconv.FormatInt(j.Priority(), 10) })},
		{'p', "priority", "PRIORITY", of(func(j *Job) string {
			return strconv.FormatFloat(float64(j.Priority())/(1<<32-1), 'f', 14, 64)
		})},
	}
}

func timeFields() []Field {
	return []Field{
		{'M', "timeused", "TIME", func(j *Job, c *Clock) string { return Duration(j.RunTime(c.Now)) }},
		{'l', "timelimit", "TIME_LIMIT", of(func(j *Job) string {
			if j.Limit() == 0 {
				return "UNLIMITED"
			}
			return Duration(j.Limit())
		})},
		{'L', "timeleft", "TIME_LEFT", func(j *Job, c *Clock) string {
			if j.Limit() == 0 {
				return "UNLIMITED"
			}
			return Duration(max(j.Limit()-j.RunTime(c.Now), 0))
		}},
		{'V', "submittime", "SUBMIT_TIME", func(j *Job, c *Clock) string {
			return c.Time(time.Unix(0, j.GetSubmitted()), "N/A")
		}},
		{'S', "starttime", "START_TIME", func(j *Job, c *Clock) string { return c.Time(j.Start(), "N/A") }},
		{'e', "endtime", "END_TIME", func(j *Job, c *Clock) string { return c.Time(j.End(), "N/A") }},
		{0, "eligibletime", "ELIGIBLE_TIME", func(j *Job, c *Clock) string { return c.Time(j.eligible(), "N/A") }},
		{0, "accruetime", "ACCRUE_TIME", func(j *Job, c *Clock) string { return c.Time(j.eligible(), "N/A") }},
		{0, "preemptime", "PREEMPT_TIME", constant("N/A")}, {0, "resizetime", "RESIZE_TIME", constant("N/A")},
		{0, "deadline", "DEADLINE", constant("N/A")}, {0, "lastschedeval", "LAST_SCHED_EVAL", constant("N/A")},
		{0, "delayboot", "DELAY_BOOT", constant("0:00")}, {0, "wait4switch", "WAIT4SWITCH", constant("0:00")},
		{0, "pendingtime", "PENDING_TIME", func(j *Job, c *Clock) string {
			until := c.Now
			if !j.Start().IsZero() && j.State != "PENDING" {
				until = j.Start()
			}
			return strconv.FormatInt(max(int64(until.Sub(time.Unix(0, j.GetSubmitted()))/time.Second), 0), 10)
		}},
	}
}

// eligible is since when the job could run; zero: it may not yet.
func (j *Job) eligible() time.Time {
	if j.GetEligible() == 0 {
		return time.Time{}
	}
	return time.Unix(0, j.GetEligible())
}

func adText(j *Job, name string) string {
	text, _ := j.Ad.Str(name)
	return text
}

func adNumber(j *Job, name string) string {
	n, _ := j.Ad.Int(name)
	return strconv.FormatInt(n, 10)
}

func jobName(j *Job) string { return j.GetName() }

func arrayIndex(j *Job) string {
	if !j.IsArray {
		return "N/A"
	}
	return strings.Trim(j.indexText(maxIndexText), "[]")
}

func reasonOrNodes(j *Job) string {
	switch j.State {
	case "PENDING", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "FAILED":
		return "(" + j.Reason() + ")"
	}
	return j.NodeList()
}

func firstHost(j *Job) string {
	if hosts := j.Hosts(); len(hosts) > 0 {
		return hosts[0]
	}
	return "n/a"
}

// nodeMemory is the memory on one node, in bytes.
func (j *Job) nodeMemory() int64 { return j.GetRequest().GetMemory() / int64(j.NodeCount()) }

// nodeCPUs is the number of CPUs on one node.
func (j *Job) nodeCPUs() int64 { return max(j.CPUs()/int64(j.NodeCount()), 1) }

// leastCPUs is how many CPUs a node must have for one task of the job. If several are
// wished on a node, it is for all of those.
func (j *Job) leastCPUs() int64 { return j.cpusPerTask() * max(j.askedNumber("NtasksPerNode"), 1) }

// gres is what the job asks for of GPUs on one node; empty: nothing.
func (j *Job) gres() string {
	n := j.GetRequest().GetGpus() / int64(j.NodeCount())
	if n <= 0 {
		return ""
	}
	return "gres/gpu:" + strconv.FormatInt(n, 10)
}

// TRES lists all that the job asks for.
func (j *Job) TRES() string {
	text := "cpu=" + strconv.FormatInt(j.CPUs(), 10)
	if memory := j.GetRequest().GetMemory(); memory > 0 {
		text += ",mem=" + Memory(memory)
	}
	text += ",node=" + strconv.Itoa(j.NodeCount()) + ",billing=" + strconv.FormatInt(j.CPUs(), 10)
	if n := j.GetRequest().GetGpus(); n > 0 {
		text += ",gres/gpu=" + strconv.FormatInt(n, 10)
	}
	return text
}

func (j *Job) tresAlloc() string {
	if len(j.Hosts()) == 0 {
		return "N/A"
	}
	return j.TRES()
}

// restarts is how often the job was begun again.
func (j *Job) restarts() int { return max(int(j.GetAttempt())-1, 0) }

// requeues is 1 if the job may be run again.
func requeues(j *Job) int {
	if again, ok := j.Ad.Bool(roost.AttrRerunnable); ok && !again {
		return 0
	}
	return 1
}
