package pbs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// pbsJob is a job with what its ad says.
type pbsJob struct {
	*scheddapi.JobStatus
	*frame.Invocation
	ad     *classad.Ad
	record *classad.Ad // what qsub was told, in PBS's own words; empty for other jobs
	host   string      // of its schedd
}

func newPBSJob(c *frame.Invocation, s *scheddapi.JobStatus) *pbsJob {
	j := &pbsJob{JobStatus: s, Invocation: c}
	_, j.host, _ = strings.Cut(s.GetId(), ".")
	var err error
	if j.ad, err = classad.Parse(s.GetAd()); err != nil || s.GetAd() == "" {
		j.ad = classad.New()
	}
	var ok bool
	if j.record, ok = j.ad.Sub(roost.AttrPBS); !ok {
		j.record = classad.New()
	}
	return j
}

func (j *pbsJob) stringAttribute(name string) string { t, _ := j.ad.Str(name); return t }
func (j *pbsJob) statedText(name string) string      { t, _ := j.record.Str(name); return t }

// pbsObject is a job with everything that qstat -f says of it.
func pbsObject(c *frame.Invocation, s *scheddapi.JobStatus) *qstat.Object {
	j := newPBSJob(c, s)
	return &qstat.Object{Kind: qstat.Jobs, Name: pbsframe.IDText(s.GetId(), s.GetArray()), Attributes: j.attributes()}
}

// attributeList is what PBS says of an object, in order.
type attributeList []qstat.ObjectAttribute

// add appends an attribute, unless it has no value.
func (l *attributeList) add(name, value string) {
	if value != "" {
		*l = append(*l, qstat.ObjectAttribute{Name: name, Value: value})
	}
}

// attributes are what Roost knows of a job, in PBS's order. Job_Name is the first,
// because clients expect it to be.
func (j *pbsJob) attributes() []qstat.ObjectAttribute {
	list := make(attributeList, 0, 64)
	list.add("Job_Name", nameOrNone(j.GetName()))
	list.add("Job_Owner", j.GetOwner()+"@"+j.submitHost())
	list = append(list, j.used()...)
	list.add("job_state", pbsState(j.JobStatus))
	list.add("queue", pbsQueue(j.JobStatus))
	list.add("server", j.host)
	list.add("Account_Name", j.account())
	list.add("Checkpoint", checkpointLetter(j.ad))
	list.add("ctime", ctime(j.Invocation, j.GetSubmitted()))
	list.add("depend", j.depends())
	list.add("Error_Path", j.streamPath(roost.AttrErr))
	list.add("exec_host", qstat.ShortHosts(execHost(j.JobStatus)))
	list.add("exec_host2", execHost(j.JobStatus))
	list.add("exec_vnode", execVnode(j.JobStatus))
	if at, ok := j.ad.Int(roost.AttrStartAfter); ok && at > 0 {
		list.add("Execution_Time", ctime(j.Invocation, at*int64(time.Second)))
	}
	list.add("group_list", j.statedText("group_list"))
	list.add("Hold_Types", holdTypes(j.JobStatus))
	list.add("Join_Path", j.join())
	list.add("Keep_Files", j.statedText("Keep_Files"))
	list.add("Mail_Points", j.statedText("Mail_Points"))
	list.add("Mail_Users", j.statedText("Mail_Users"))
	list.add("mtime", ctime(j.Invocation, max(j.GetSubmitted(), j.GetStarted(), j.GetEnded())))
	list.add("Output_Path", j.streamPath(roost.AttrOut))
	list.add("Priority", fmt.Sprint(j.GetPriority()))
	list.add("qtime", ctime(j.Invocation, j.GetSubmitted()))
	list.add("Remove_Files", j.statedText("Remove_Files"))
	list.add("Rerunable", rerunnable(j.ad))
	resources := j.resources()
	list = append(list, resources...)
	for _, a := range resources {
		if a.Resource == "select" {
			list.add("schedselect", a.Value)
		}
	}
	j.addProgress(&list)
	j.addAllocs(&list)
	return list
}

// addProgress adds the attributes about a job's course: where it runs, how it ended, who
// owns it.
func (j *pbsJob) addProgress(list *attributeList) {
	list.add("stime", ctime(j.Invocation, j.GetStarted()))
	list.add("session_id", j.session())
	list.add("jobdir", j.directory())
	list.add("Shell_Path_List", j.statedText("Shell_Path_List"))
	list.add("stagein", j.statedText("stagein"))
	list.add("stageout", j.statedText("stageout"))
	list.add("sandbox", j.statedText("sandbox"))
	list.add("substate", j.substate())
	if env, mine := j.environment(); mine {
		*list = append(*list, qstat.ObjectAttribute{Name: "Variable_List", List: env})
	}
	list.add("euser", j.GetOwner())
	list.add("egroup", j.statedText("egroup"))
	list.add("comment", j.comment())
	list.add("etime", ctime(j.Invocation, j.eligibleSince()))
	list.add("umask", j.statedText("umask"))
	list.add("run_count", j.runCount())
	list.add("eligible_time", j.eligible())
	*list = append(*list, j.array()...)
	if j.GetStart() > 0 && !document.IsFinal(j.JobStatus) && j.GetStarted() == 0 {
		*list = append(*list, qstat.ObjectAttribute{Name: "estimated", Resource: "start_time",
			Value: ctime(j.Invocation, j.GetStart()*int64(time.Second))})
	}
	if document.IsFinal(j.JobStatus) && pbsState(j.JobStatus) == "F" {
		list.add("history_timestamp", fmt.Sprint(j.GetEnded()/int64(time.Second)))
	}
	list.add("Exit_status", shownExitStatus(j.JobStatus))
	if j.GetOwner() == frame.LoginName() {
		*list = append(*list, j.program()...)
	}
	list.add("project", j.statedText("project"))
	if name, _ := j.ad.Str(roost.AttrReservation); name != "" {
		list.add("reserve_ID", name+"."+j.host)
	}
	list.add("Submit_Host", j.submitHost())
}

// submitHost is the node where the job was submitted. A job in the queue of the cell is
// elsewhere.
func (j *pbsJob) submitHost() string { return cmp.Or(j.stringAttribute(roost.AttrSubmitHost), j.host) }

// streamPath is where an output stream goes, whose file the attribute of the ad names.
func (j *pbsJob) streamPath(attribute string) string {
	return pbsPath(j.JobStatus, j.submitHost(), j.stringAttribute(attribute), j.stringAttribute(roost.AttrIwd))
}

// environment is what the user's own job finds in its environment. Others may not see it:
// it may hold secrets.
func (j *pbsJob) environment() (env []string, mine bool) {
	env, ok := j.ad.Strings(roost.AttrEnvironment)
	if !ok || j.GetOwner() != frame.LoginName() {
		return nil, false
	}
	for i := range env {
		env[i] = fillAttributes(j.JobStatus, env[i])
	}
	return env, true
}

// session is the session of the job's first process; empty where the job does not run.
func (j *pbsJob) session() string {
	if id := j.GetUsage().GetSession(); id > 0 && !document.IsFinal(j.JobStatus) {
		return fmt.Sprint(id)
	}
	return ""
}

// account is what qsub -A said, and of other jobs the group.
func (j *pbsJob) account() string {
	if account := j.statedText("Account_Name"); account != "" || j.statedText("project") != "" {
		return account
	}
	return j.stringAttribute(roost.AttrGroup)
}

func (j *pbsJob) join() string {
	if join := j.statedText("Join_Path"); join != "" {
		return join
	}
	return joinPath(j.ad)
}

// array are the attributes that arrays and their tasks have.
func (j *pbsJob) array() (list []qstat.ObjectAttribute) {
	if !j.GetArray() {
		return nil
	}
	number, _, _ := strings.Cut(j.GetId(), "[")
	if isSubjob(j.JobStatus) {
		return []qstat.ObjectAttribute{{Name: "array_id", Value: number + "[]." + j.host},
			{Name: "array_index", Value: fmt.Sprint(j.GetIndex())}}
	}
	n := j.GetCounts()
	running := n[roost.Running.String()] + n[roost.Starting.String()] + n[roost.Suspended.String()]
	waiting := n[roost.Idle.String()] + n[roost.Held.String()] + n[roost.Blocked.String()]
	list = append(list, qstat.ObjectAttribute{Name: "array", Value: "True"},
		qstat.ObjectAttribute{Name: "array_state_count",
			Value: fmt.Sprintf("Queued:%d Running:%d Exiting:%d Expired:%d ", waiting, running,
				n[roost.Exiting.String()], document.FinishedCount(j.JobStatus))})
	submitted := j.statedText("array_indices_submitted")
	if indexes, ok := j.ad.Str(roost.AttrArrayIndex); submitted == "" && ok {
		submitted = indexes
	} else if submitted == "" && j.GetTasks() > 1 {
		submitted = fmt.Sprintf("0-%d", j.GetTasks()-1)
	}
	if submitted != "" {
		list = append(list, qstat.ObjectAttribute{Name: "array_indices_submitted", Value: submitted})
	}
	if remaining := j.GetRemaining(); remaining != "" {
		list = append(list, qstat.ObjectAttribute{Name: "array_indices_remaining", Value: remaining})
	} else {
		list = append(list, qstat.ObjectAttribute{Name: "array_indices_remaining", Value: "-"})
	}
	if most, ok := j.ad.Int(roost.AttrMaxRunning); ok && most > 0 {
		list = append(list, qstat.ObjectAttribute{Name: "max_run_subjobs", Value: fmt.Sprint(most)})
	}
	return list
}

// substate is OpenPBS's number for what a job does (its job.h).
func (j *pbsJob) substate() string {
	state := pbsState(j.JobStatus)
	switch state {
	case "Q", "B":
		if document.StateOf(j.JobStatus) == roost.Starting.String() {
			return "41"
		}
		return map[string]string{"Q": "10", "B": "70"}[state]
	case "H":
		if document.StateOf(j.JobStatus) == roost.Blocked.String() {
			return "22"
		}
		return "20"
	case "W":
		return "30"
	case "R":
		if document.StateOf(j.JobStatus) == roost.Starting.String() {
			return "41"
		}
		return "42"
	case "S":
		return "43"
	case "U":
		return "45"
	case "E":
		return "51"
	}
	switch {
	case exitText(j.JobStatus) == "terminated":
		return "91"
	case pbsJobExitStatus(j.JobStatus) != "0":
		return "93"
	}
	return "92"
}

// eligibleSince is when a job last began to wait for nothing but a machine. Of one that
// has run nothing else is meant if it is not known: it was written down before that was.
func (j *pbsJob) eligibleSince() int64 {
	if j.GetEligible() == 0 && j.GetStarted() != 0 {
		return j.GetSubmitted()
	}
	return j.GetEligible()
}

// eligible is for how long a job has waited so.
func (j *pbsJob) eligible() string {
	waited := time.Duration(j.GetWaited())
	if j.GetEligible() == 0 && j.GetStarted() != 0 {
		waited = max(time.Duration(j.GetStarted()-cmp.Or(j.GetSubmitted(), j.GetStarted())), 0)
	}
	if since := j.GetWaiting(); since != 0 {
		waited += max(j.Now().Sub(document.TimeOfNanos(since)), 0)
	}
	return pbsframe.ClockText(waited)
}

// kilobytes is how PBS writes an amount of memory.
func kilobytes(b roost.Bytes) string { return fmt.Sprintf("%dkb", (b+roost.KiB-1)/roost.KiB) }

// checkpointLetter is the value of -c that a job was submitted with, or could have been.
func checkpointLetter(ad *classad.Ad) string {
	if on, ok := ad.Bool(roost.AttrCheckpoint); ok && !on {
		return "n"
	}
	every, ok := ad.Int(roost.AttrCheckpointEvery)
	switch {
	case !ok:
		return "u"
	case every < 0:
		return "s"
	case every == 0:
		return "c"
	}
	return fmt.Sprintf("c=%d", (every+59)/60)
}

// ctime is a time as ctime(3) writes it.
func ctime(c *frame.Invocation, ns int64) string {
	if ns == 0 {
		return ""
	}
	return document.TimeOfNanos(ns).In(c.Now().Location()).Format("Mon Jan _2 15:04:05 2006")
}

// fillAttributes replaces variables in a path of a job's ad by what is known of the job.
// For the tasks of an array it writes PBS's own word in place of the index.
func fillAttributes(s *scheddapi.JobStatus, text string) string {
	if !strings.ContainsRune(text, '$') {
		return text
	}
	id, task, index := s.GetId(), "", "^array_index^"
	number, host, _ := strings.Cut(id, ".")
	number, task, _ = strings.Cut(number, "[")
	if task = strings.TrimSuffix(task, "]"); task != "" {
		index = task
	} else if !s.GetArray() {
		index = "0"
	}
	if s.GetArray() && task == "" {
		id = number + "[" + index + "]." + host
	}
	return strings.NewReplacer("$$", "$", "$(JobId)", id, "$(JobSeq)", number, "$(JobHost)", host, "$(TaskIndex)",
		index, "$(ArrayIndex)", index).Replace(text)
}

func pbsPath(s *scheddapi.JobStatus, host, path, iwd string) string {
	if path == "" {
		return ""
	}
	if !strings.HasPrefix(path, "/") {
		path = strings.TrimSuffix(iwd, "/") + "/" + path
	}
	return host + ":" + fillAttributes(s, path)
}

func execHost(s *scheddapi.JobStatus) string {
	if len(s.GetChunks()) > 0 {
		return execHostOfChunks(s.GetChunks())
	}
	if s.GetNode() == "" || hasNoNode(s) {
		return ""
	}
	return onHost(s.GetNode(), s.GetRequest())
}

// onHost is exec_host of what has one part of one node: "n1/0*4", or "n1/0" with one
// processor.
func onHost(node string, r *scheddapi.Resources) string {
	if cpus := (r.GetMilliCpu() + 999) / 1000; cpus > 1 {
		return fmt.Sprintf("%s/0*%d", node, cpus)
	}
	return node + "/0"
}

func holdTypes(s *scheddapi.JobStatus) string {
	switch document.StateOf(s) {
	case roost.Held.String():
		if s.GetLocked() {
			return "s"
		}
		return "u"
	case roost.Blocked.String():
		if s.GetTimed() { // it is no hold
			return "n"
		}
		return "s"
	}
	return "n"
}

func joinPath(ad *classad.Ad) string {
	if join, _ := ad.Bool(roost.AttrJoinOutput); join {
		return "oe"
	}
	return "n"
}

func rerunnable(ad *classad.Ad) string {
	if again, ok := ad.Bool(roost.AttrRerunnable); ok && !again {
		return "False"
	}
	return "True"
}

// runCount is how often a job was run, with what qsub -W run_count says of before.
func (j *pbsJob) runCount() string {
	before, _ := strconv.ParseUint(j.statedText("run_count"), 10, 32)
	if n := before + uint64(j.GetAttempt()); n > 0 || j.statedText("run_count") != "" {
		return fmt.Sprint(n)
	}
	return ""
}

// directory is where a job that runs was started: its PBS_JOBDIR.
func (j *pbsJob) directory() string {
	if j.GetStarted() == 0 || document.IsFinal(j.JobStatus) || hasNoNode(j.JobStatus) || j.GetArray() &&
		!isSubjob(j.JobStatus) {
		return ""
	}
	return fillAttributes(j.JobStatus, j.stringAttribute(roost.AttrIwd))
}

// program is what its user's command line said, and what the job runs where that is no
// script. Others may not see it: it may hold secrets.
func (j *pbsJob) program() (list []qstat.ObjectAttribute) {
	if words, ok := j.ad.Strings(roost.AttrSubmitArguments); ok && len(words) > 0 {
		list = append(list, qstat.ObjectAttribute{Name: "Submit_arguments", Value: strings.Join(words, " ")})
	}
	if cmd := j.stringAttribute(roost.AttrCmd); cmd != "" && len(j.record.Names()) > 0 {
		list = append(list, qstat.ObjectAttribute{Name: "executable",
			Value: "<jsdl-hpcpa:Executable>" + fillAttributes(j.JobStatus, cmd) + "</jsdl-hpcpa:Executable>"})
		arguments, _ := j.ad.Strings(roost.AttrArguments)
		var text strings.Builder
		for _, a := range arguments {
			text.WriteString("<jsdl-hpcpa:Argument>" + fillAttributes(j.JobStatus, a) + "</jsdl-hpcpa:Argument>")
		}
		if text.Len() > 0 {
			list = append(list, qstat.ObjectAttribute{Name: "argument_list", Value: text.String()})
		}
	}
	return list
}

// depends is what a job still waits for, and what waits for it, as
// "afterok:1.n1@n1:2.n1@n1,on:2". Of a job that has ended it is what it was submitted
// with.
func (j *pbsJob) depends() string {
	if document.IsFinal(j.JobStatus) {
		return j.statedText("depend")
	}
	var kinds []string
	ids := map[string]string{}
	for _, d := range j.GetDepends() {
		kind, id, _ := strings.Cut(d, ":")
		if _, host, ok := strings.Cut(id, "."); ok {
			id += "@" + host
		}
		if ids[kind] == "" {
			kinds = append(kinds, kind)
		}
		ids[kind] += ":" + id
	}
	for i, kind := range kinds {
		kinds[i] += ids[kind]
	}
	return strings.Join(kinds, ",")
}
