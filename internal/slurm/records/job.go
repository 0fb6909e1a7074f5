package records

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// MinJobAge is for how long Slurm's commands list jobs that have ended.
const MinJobAge = 300 * time.Second

// Job is a job, a task of an array, or the tasks of an array that have not started.
type Job struct {
	*scheddapi.JobStatus
	Ad      *classad.Ad // what was asked for of it; never nil
	Number  uint64      // of the job in its queue
	Host    string      // node of the schedd
	Indexes string      // of an array: the index of the task, or those that wait, as "0-3,7"
	IsArray bool        // it is an array, or a part of one
	IsTask  bool        // of an array: it is one task
	State   string      // in Slurm's long words
}

// NewJob returns what is shown of a row of a schedd's answer.
func NewJob(s *scheddapi.JobStatus) *Job {
	id := s.GetId()
	digits := document.LeadingDigits(id)
	number, _ := strconv.ParseUint(id[:digits], 10, 64)
	_, host, _ := strings.Cut(id, ".")
	j := &Job{JobStatus: s, Number: number, Host: host}
	ad, err := classad.Parse(s.GetAd())
	if err != nil || s.GetAd() == "" {
		ad = classad.New()
	}
	j.Ad = ad
	if j.IsArray = IsArray(s); j.IsArray {
		if j.IsTask = s.GetState() != ""; j.IsTask {
			j.Indexes = strconv.FormatUint(uint64(s.GetIndex()), 10)
		} else {
			j.Indexes = s.GetRemaining()
		}
	}
	j.State = stateOf(s)
	return j
}

// IsArray reports whether a job has several tasks that run each for itself.
func IsArray(s *scheddapi.JobStatus) bool {
	return s.GetArray() || s.GetTasks() > 1 && len(s.GetChunks()) == 0 && s.GetService() == nil
}

// stateOf returns the state in Slurm's long words.
func stateOf(s *scheddapi.JobStatus) string {
	if IsArray(s) && s.GetState() == "" && s.GetRemaining() != "" {
		return "PENDING" // the row is for those that have not started
	}
	switch document.StateOf(s) {
	case roost.Starting.String():
		return "CONFIGURING"
	case roost.Running.String():
		if s.GetSuspended() {
			return "SUSPENDED"
		}
		return "RUNNING"
	case roost.Suspended.String():
		return "SUSPENDED"
	case roost.Exiting.String():
		return "COMPLETING"
	case roost.Removed.String():
		return "CANCELLED"
	case roost.Completed.String(), "failed":
		return endState(s)
	}
	return "PENDING"
}

// endState returns the state of a task that ended otherwise than by removal.
func endState(s *scheddapi.JobStatus) string {
	e := s.GetExit()
	if e == nil {
		if document.StateOf(s) == "failed" {
			return "FAILED"
		}
		return "COMPLETED"
	}
	switch e.GetCause() {
	case scheddapi.Cause_CAUSE_WALLTIME, scheddapi.Cause_CAUSE_CPU_TIME:
		return "TIMEOUT"
	case scheddapi.Cause_CAUSE_REMOVED:
		return "CANCELLED"
	case scheddapi.Cause_CAUSE_MEMORY, scheddapi.Cause_CAUSE_GPU_MEMORY, scheddapi.Cause_CAUSE_VIRTUAL:
		return "OUT_OF_MEMORY"
	case scheddapi.Cause_CAUSE_LEASE, scheddapi.Cause_CAUSE_MACHINE:
		return "NODE_FAIL"
	case scheddapi.Cause_CAUSE_VACATED, scheddapi.Cause_CAUSE_PREEMPTED:
		return "PREEMPTED"
	case scheddapi.Cause_CAUSE_RESTORE, scheddapi.Cause_CAUSE_REFUSED:
		return "BOOT_FAIL"
	}
	if document.FailedExit(e) {
		return "FAILED"
	}
	return "COMPLETED"
}

// states are the states in the order in which Slurm sorts them, with their short names.
var states = [...]struct{ Long, Short string }{
	{"PENDING", "PD"}, {"RUNNING", "R"}, {"SUSPENDED", "S"}, {"COMPLETED", "CD"}, {"CANCELLED", "CA"},
	{"FAILED", "F"}, {"TIMEOUT", "TO"}, {"NODE_FAIL", "NF"}, {"PREEMPTED", "PR"}, {"BOOT_FAIL", "BF"},
	{"DEADLINE", "DL"}, {"OUT_OF_MEMORY", "OOM"}, {"COMPLETING", "CG"}, {"CONFIGURING", "CF"},
	{"RESIZING", "RS"}, {"RESV_DEL_HOLD", "RD"}, {"REQUEUED", "RQ"}, {"REQUEUE_FED", "RF"},
	{"REQUEUE_HOLD", "RH"}, {"REVOKED", "RV"}, {"SIGNALING", "SI"}, {"SPECIAL_EXIT", "SE"},
	{"STAGE_OUT", "SO"}, {"STOPPED", "ST"},
}

// stateRank is the place of a state among all of them.
func stateRank(long string) int {
	for i, s := range states {
		if s.Long == long {
			return i
		}
	}
	return len(states)
}

// ParseState returns the long name of a state from its long or short one, in any case.
func ParseState(text string) (long string, ok bool) {
	for _, s := range states {
		if strings.EqualFold(text, s.Long) || strings.EqualFold(text, s.Short) {
			return s.Long, true
		}
	}
	return "", false
}

// StateList names all states, as squeue does behind an unknown one.
func StateList() string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = strings.ToLower(s.Long)
	}
	return strings.Join(names, ",")
}

// ShortState is the state in one to three letters.
func (j *Job) ShortState() string {
	if i := stateRank(j.State); i < len(states) {
		return states[i].Short
	}
	return "?"
}

// IsFinal reports whether the job has ended.
func (j *Job) IsFinal() bool {
	switch j.State {
	case "PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING":
		return false
	}
	return true
}

// Reason is one word for why the job waits or did not succeed.
func (j *Job) Reason() string {
	switch j.State {
	case "PENDING":
		return j.waitReason()
	case "TIMEOUT":
		return "TimeLimit"
	case "OUT_OF_MEMORY":
		return "OutOfMemory"
	case "NODE_FAIL":
		return "NodeDown"
	case "FAILED":
		if n := j.GetExit().GetSignal(); n != 0 {
			return "RaisedSignal:" + strconv.Itoa(int(n)) + "(" + signalText(int(n)) + ")"
		}
		return "NonZeroExitCode"
	}
	return "None"
}

// waitReason is why a job waits. The texts are those of the schedd and the negotiator.
func (j *Job) waitReason() string {
	n, text := j.GetCounts(), j.GetBrief()+" "+j.GetReason()
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	state := j.GetState()
	if state == "" {
		state = document.StateOf(j.JobStatus)
		for _, waits := range [...]roost.TaskState{roost.Idle, roost.Blocked, roost.Held} {
			if n[waits.String()] > 0 {
				state = waits.String()
				break
			}
		}
	}
	switch {
	case state == roost.Held.String() && j.GetLocked():
		return "JobHeldAdmin"
	case state == roost.Held.String():
		return "JobHeldUser"
	case state == roost.Blocked.String() && j.GetTimed():
		return "BeginTime"
	case has("max_running", "MaxRunning", "run at once"):
		return "JobArrayTaskLimit"
	case state == roost.Blocked.String() && has("never"):
		return "DependencyNeverSatisfied"
	case state == roost.Blocked.String():
		return "Dependency"
	case has("license", "licence"):
		return "Licenses"
	case has("quota"):
		return "AssocGrpCpuLimit"
	case has("no node of", "only node is not matching", "nodes not matching", "there are no nodes"):
		return "ReqNodeNotAvail"
	case has("held back", "limit"):
		return "QOSMaxJobsPerUserLimit"
	case has("busy", "held", "reserved", "room", "too small"):
		return "Resources"
	}
	return "Priority"
}

// signalText is what strsignal(3) says of the usual signals.
func signalText(n int) string {
	texts := map[int]string{1: "Hangup", 2: "Interrupt", 3: "Quit", 4: "Illegal instruction", 6: "Aborted",
		7: "Bus error", 8: "Floating point exception", 9: "Killed", 10: "User defined signal 1",
		11: "Segmentation fault", 12: "User defined signal 2", 13: "Broken pipe", 14: "Alarm clock",
		15: "Terminated", 24: "CPU time limit exceeded", 25: "File size limit exceeded"}
	return cmp.Or(texts[n], "Signal "+strconv.Itoa(n))
}

// ID is the id that squeue lists: "12", "12_3" or "12_[0-3%2]".
func (j *Job) ID() string { return j.idText(maxIndexText) }

// maxIndexText is where squeue cuts the indexes of an array.
const maxIndexText = 64

func (j *Job) idText(most int) string {
	base := strconv.FormatUint(j.Number, 10)
	if !j.IsArray {
		return base
	}
	return base + "_" + j.indexText(most)
}

// indexText is the index of the task, or the list of those that wait in brackets.
func (j *Job) indexText(most int) string {
	if j.IsTask || j.Indexes == "" {
		return cmp.Or(j.Indexes, "0")
	}
	list := j.Indexes
	if most > 0 && len(list) > most {
		list = list[:strings.LastIndexByte(list[:most+1], ',')+1] + "..."
	}
	if n, ok := j.Ad.Int(roost.AttrMaxRunning); ok && n > 0 {
		list += "%" + strconv.FormatInt(n, 10)
	}
	return "[" + list + "]"
}

// RawID is the number of the job, or of the task of an array, where ids are plain
// numbers.
func (j *Job) RawID() string { return strconv.FormatUint(j.RawNumber(), 10) }

// RawNumber is that number. The tasks of an array of sbatch have those that follow the
// array's; others have none of their own.
func (j *Job) RawNumber() uint64 {
	if _, ok := j.Ad.Sub(roost.AttrSlurm); !ok || !j.IsTask {
		return j.Number
	}
	position := uint64(j.GetIndex())
	if text, ok := j.Ad.Str(roost.AttrArrayIndex); ok {
		if indexes, err := roost.ParseArrayIndexes(text); err == nil {
			if task, ok := indexes.TaskOf(int(j.GetIndex())); ok {
				position = uint64(task)
			}
		}
	}
	return j.Number + position
}

// ArrayID is the number of the array that the job is a part of, or its own.
func (j *Job) ArrayID() string { return strconv.FormatUint(j.Number, 10) }

// Partition is the queue of the job.
func (j *Job) Partition() string { return cmp.Or(j.GetQueue(), roost.DefaultQueueName) }

// Account is the group of the fair share to which the job belongs.
func (j *Job) Account() string {
	group, _ := j.Ad.Str(roost.AttrGroup)
	return group
}

// Hosts are the machines that the job has, in order.
func (j *Job) Hosts() []string {
	if j.State == "PENDING" {
		return nil
	}
	var hosts []string
	for _, c := range j.GetChunks() {
		if node := c.GetNode(); node != "" && (len(hosts) == 0 || hosts[len(hosts)-1] != node) {
			hosts = append(hosts, node)
		}
	}
	if len(hosts) == 0 && j.GetNode() != "" {
		hosts = []string{j.GetNode()}
	}
	return hosts
}

// NodeList is the machines of the job in the short form; empty: it has none.
func (j *Job) NodeList() string { return hostlist.Compress(j.Hosts()) }

// NodeCount is how many machines the job has or asks for.
func (j *Job) NodeCount() int {
	if hosts := j.Hosts(); len(hosts) > 0 {
		return len(hosts)
	}
	n := 0
	for _, c := range j.GetChunks() {
		n += int(max(c.GetCount(), 1))
	}
	return max(n, 1)
}

// CPUs is the number of CPUs that the job has or asks for, rounded up.
func (j *Job) CPUs() int64 { return max((j.GetRequest().GetMilliCpu()+999)/1000, 1) }

// ExitCode is the exit code and the signal.
func (j *Job) ExitCode() (code, signal int) {
	e := j.GetExit()
	switch j.State {
	case "CANCELLED", "TIMEOUT":
		if j.GetStarted() == 0 {
			return 0, 0
		}
		return 0, 15
	}
	if e.GetSignal() != 0 {
		return 0, int(e.GetSignal())
	}
	if code := int(e.GetCode()); code != 0 || j.State != "FAILED" && j.State != "BOOT_FAIL" {
		return code, 0
	}
	return 1, 0
}

// Limit is the time that the job may run; 0: no limit.
func (j *Job) Limit() time.Duration {
	seconds, _ := j.Ad.Int(roost.AttrWalltime)
	return time.Duration(min(max(seconds, 0), 1<<32)) * time.Second
}

// Start is when the job started, or when it is expected to; zero: nobody knows.
func (j *Job) Start() time.Time {
	if j.State != "PENDING" && j.GetStarted() != 0 {
		return time.Unix(0, j.GetStarted())
	}
	if j.State == "PENDING" && j.GetStart() != 0 {
		return time.Unix(j.GetStart(), 0)
	}
	if j.IsFinal() && j.GetEnded() != 0 { // it was cancelled before it started
		return time.Unix(0, j.GetEnded())
	}
	return time.Time{}
}

// End is when the job ended, or when it ends at the latest; zero: nobody knows.
func (j *Job) End() time.Time {
	switch {
	case j.IsFinal() && j.GetEnded() != 0:
		return time.Unix(0, j.GetEnded())
	case j.Limit() != 0 && !j.Start().IsZero():
		return j.Start().Add(j.Limit())
	}
	return time.Time{}
}

// RunTime is for how long the job has run.
func (j *Job) RunTime(now time.Time) time.Duration {
	if j.State == "PENDING" || j.GetStarted() == 0 {
		return 0
	}
	if j.IsFinal() {
		now = time.Unix(0, j.GetEnded())
	}
	return max(now.Sub(time.Unix(0, j.GetStarted())), 0)
}

// Priority is the order among jobs that wait: higher ones come first; 0: it is held.
func (j *Job) Priority() int64 {
	if j.State == "PENDING" && strings.HasPrefix(j.Reason(), "JobHeld") {
		return 0
	}
	return BasePriority + int64(j.GetPriority())
}

// BasePriority is what a job without a priority of its own has.
const BasePriority = 10000

// path is a path of the job, with its id in place of the variables in it.
func (j *Job) path(attribute string) string {
	text, _ := j.Ad.Str(attribute)
	if text == "" {
		return ""
	}
	index := "0"
	if j.IsTask {
		index = j.Indexes
	}
	number := j.ArrayID()
	text = strings.NewReplacer("$(Cluster)", number, "$(ClusterId)", number, "$(JobId)", number,
		"$(JobSeq)", number, "$(TaskNumber)", j.RawID(), "$(TaskIndex)", index, "$(NodeName)", j.firstNode(),
		"$(ArrayDigit)", index[len(index)-1:], "$(Process)", index, "$(ProcId)", index,
		"$(ArrayIndex)", index).Replace(text)
	if dir := j.WorkDir(); !strings.HasPrefix(text, "/") && dir != "" {
		text = dir + "/" + text
	}
	return text
}

// firstNode is the name of the job's first machine without its domain.
func (j *Job) firstNode() string {
	if hosts := j.Hosts(); len(hosts) > 0 {
		name, _, _ := strings.Cut(hosts[0], ".")
		return name
	}
	return ""
}

// WorkDir is the directory in which the job was submitted.
func (j *Job) WorkDir() string {
	dir, _ := j.Ad.Str(roost.AttrIwd)
	return dir
}

// Command is the program of the job.
func (j *Job) Command() string {
	if command := j.asked("Command"); command != "" {
		return command
	}
	command, _ := j.Ad.Str(roost.AttrCmd)
	return command
}

// StdOut is the file of standard output.
func (j *Job) StdOut() string { return j.path(roost.AttrOut) }

// StdErr is the file of standard error.
func (j *Job) StdErr() string { return cmp.Or(j.path(roost.AttrErr), j.StdOut()) }

// StdIn is the file of standard input.
func (j *Job) StdIn() string { return cmp.Or(j.path(roost.AttrIn), "/dev/null") }

// Dependency is what is left of what the job waits for; empty: nothing. Alternatives are
// joined by question marks.
func (j *Job) Dependency() string {
	parts, separator := make([]string, 0, len(j.GetDepends())), ","
	for _, d := range j.GetDepends() {
		d, isAlternative := strings.CutPrefix(d, "?")
		kind, id, _ := strings.Cut(d, ":")
		if strings.HasPrefix(kind, "before") { // it is what another job waits for
			continue
		}
		id, delay, isDelayed := strings.Cut(id, "+")
		if id, _, _ = strings.Cut(id, "."); isDelayed {
			id += "+" + strings.TrimSuffix(delay, "m")
		}
		if isAlternative {
			separator = "?"
		}
		parts = append(parts, kind+":"+id+"(unfulfilled)")
	}
	return strings.Join(parts, separator)
}

// Attributes are the attributes of ads that the fields read.
func Attributes() []string {
	return []string{roost.AttrWalltime, roost.AttrMaxRunning, roost.AttrGroup, roost.AttrIwd, roost.AttrCmd,
		roost.AttrOut, roost.AttrErr, roost.AttrIn, roost.AttrRerunnable, roost.AttrOwnerUID, roost.AttrOwnerGID,
		roost.AttrUnixGroup, roost.AttrSlurm, roost.AttrArrayIndex, roost.AttrStartAfter, roost.AttrSubmitHost}
}
