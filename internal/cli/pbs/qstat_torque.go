package pbs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// What qstat says to who speaks Torque: other names of some attributes, other numbers for
// what ended a job, and C for one that has ended, which is shown as if it had not for a
// while. The formats of -F are OpenPBS's, and speak OpenPBS to everybody.

func (l *pbsList) torqueAttributes() bool { return l.Dialect == roost.Torque }

// readHistoryLimit finds out since when jobs that have ended are shown.
func (l *pbsList) readHistoryLimit() error {
	reply, err := l.ServerInfo()
	l.historyStart = l.Now().UnixNano() - reply.GetKeepCompleted()
	return err
}

// isExpired reports whether a job has ended so long ago that it is not shown, and named
// in vain.
func (l *pbsList) isExpired(s *scheddapi.JobStatus) bool {
	return l.torqueAttributes() && !l.Ended && document.IsFinal(s) && (l.ExcludeEnded || s.GetEnded() < l.historyStart)
}

// stateLetter is the state of a job in the user's dialect. Torque has no letters of their
// own for arrays and their tasks, and for machines that are in use.
func (l *pbsList) stateLetter(s *scheddapi.JobStatus) string { return stateLetterOf(l.Dialect, s) }

func stateLetterOf(d roost.PBSDialect, s *scheddapi.JobStatus) string {
	state := pbsState(s)
	if d != roost.Torque {
		return state
	}
	switch state {
	case "F", "X", "M":
		return "C"
	case "U":
		return "S"
	case "B":
		if s.GetCounts()[roost.Running.String()] > 0 {
			return "R"
		}
		return "Q"
	}
	return state
}

// object is a job with everything that qstat -f, or -x of Torque, says of it.
func (l *pbsList) object(s *scheddapi.JobStatus) *qstat.Object {
	if !l.torqueAttributes() {
		return pbsObject(l.Invocation, s)
	}
	j := &torqueJob{pbsJob: newPBSJob(l.Invocation, s), letter: l.stateLetter(s), epochTimes: l.XML}
	return &qstat.Object{Kind: qstat.Jobs, Name: pbsframe.IDText(s.GetId(), s.GetArray()), Attributes: j.attributes()}
}

// torqueJob is a job as Torque tells of it.
type torqueJob struct {
	*pbsJob
	letter     string
	epochTimes bool // times are seconds since 1970, as in its XML
}

// timeText is a time.
func (j *torqueJob) timeText(ns int64) string {
	if ns == 0 || !j.epochTimes {
		return ctime(j.pbsJob.Invocation, ns)
	}
	return strconv.FormatInt(ns/int64(time.Second), 10)
}

// attributes are what Torque says of a job, in its order (its pbs_job_attributes(7)).
func (j *torqueJob) attributes() []qstat.ObjectAttribute {
	list := make(attributeList, 0, 64)
	list.add("Job_Name", nameOrNone(j.GetName()))
	list.add("Job_Owner", j.GetOwner()+"@"+j.submitHost())
	for _, a := range j.used() {
		if a.Resource != "cpupercent" && a.Resource != "ncpus" {
			list = append(list, a)
		}
	}
	list.add("job_state", j.letter)
	list.add("queue", pbsQueue(j.JobStatus))
	list.add("server", j.host)
	list.add("Account_Name", j.account())
	list.add("Checkpoint", checkpointLetter(j.ad))
	list.add("ctime", j.timeText(j.GetSubmitted()))
	list.add("depend", j.depends())
	list.add("Error_Path", j.streamPath(roost.AttrErr))
	list.add("exec_host", torqueHosts(execHost(j.JobStatus)))
	if at, ok := j.ad.Int(roost.AttrStartAfter); ok && at > 0 {
		list.add("Execution_Time", j.timeText(at*int64(time.Second)))
	}
	list.add("group_list", j.statedText("group_list"))
	list.add("Hold_Types", holdTypes(j.JobStatus))
	list.add("Join_Path", j.join())
	list.add("Keep_Files", j.statedText("Keep_Files"))
	list.add("Mail_Points", j.statedText("Mail_Points"))
	list.add("Mail_Users", j.statedText("Mail_Users"))
	list.add("mtime", j.timeText(max(j.GetSubmitted(), j.GetStarted(), j.GetEnded())))
	list.add("Output_Path", j.streamPath(roost.AttrOut))
	list.add("Priority", fmt.Sprint(j.GetPriority()))
	list.add("qtime", j.timeText(j.GetSubmitted()))
	list.add("Rerunable", rerunnable(j.ad))
	list = append(list, j.requestedResources()...)
	list.add("session_id", j.session())
	list.add("Shell_Path_List", j.statedText("Shell_Path_List"))
	list.add("stagein", j.statedText("stagein"))
	list.add("stageout", j.statedText("stageout"))
	j.addProgress(&list)
	return list
}

// addProgress adds what Torque says of the course of a job: its environment, when it
// began and how it ended.
func (j *torqueJob) addProgress(list *attributeList) {
	env, mine := j.environment()
	if mine {
		*list = append(*list, qstat.ObjectAttribute{Name: "Variable_List", List: env})
	}
	list.add("euser", j.GetOwner())
	list.add("queue_type", "E")
	list.add("comment", j.comment())
	list.add("etime", j.timeText(j.eligibleSince()))
	list.add("exit_status", torqueExit(shownExitStatus(j.JobStatus)))
	if isSubjob(j.JobStatus) {
		list.add("job_array_id", strconv.Itoa(int(j.GetIndex())))
	} else if j.GetArray() {
		for _, a := range j.array() {
			if a.Name == "array_indices_submitted" {
				list.add("job_array_request", a.Value)
			}
		}
	}
	list.add("umask", j.statedText("umask"))
	list.add("start_time", j.timeText(j.GetStarted()))
	list.add("start_count", j.runCount())
	list.add("fault_tolerant", "False")
	if j.letter == "C" {
		list.add("comp_time", j.timeText(j.GetEnded()))
	}
	list.add("job_radix", "0")
	if j.letter == "C" && j.GetStarted() > 0 {
		list.add("total_runtime", fmt.Sprintf("%.6f", time.Duration(j.GetEnded()-j.GetStarted()).Seconds()))
	}
	list.add("submit_host", j.host)
	for _, v := range env {
		if dir, ok := strings.CutPrefix(v, "PBS_O_WORKDIR="); ok {
			list.add("init_work_dir", dir)
		}
	}
	list.add("request_version", "1")
	*list = append(*list, j.remaining()...)
}

// requestedResources is what a job asks for. What qsub has made of -l nodes for itself is
// not Torque's.
func (j *torqueJob) requestedResources() []qstat.ObjectAttribute {
	list := j.resources()
	if !slices.ContainsFunc(list, func(a qstat.ObjectAttribute) bool { return a.Resource == "nodes" }) {
		return list
	}
	return slices.DeleteFunc(list, func(a qstat.ObjectAttribute) bool {
		return a.Resource == "select" || a.Resource == "place" || a.Resource == "ncpus" || a.Resource == "mpiprocs"
	})
}

// remaining is how much is left of the time that a job that runs has, in seconds.
func (j *torqueJob) remaining() []qstat.ObjectAttribute {
	most, ok := j.ad.Int(roost.AttrWalltime)
	if !ok || most <= 0 || j.letter != "R" || j.GetStarted() == 0 || j.GetArray() && !isSubjob(j.JobStatus) {
		return nil
	}
	left := most - int64(j.Now().Sub(document.TimeOfNanos(j.GetStarted()))/time.Second)
	return []qstat.ObjectAttribute{{Name: "Walltime", Resource: "Remaining", Value: strconv.FormatInt(left, 10)}}
}

// torqueHosts is exec_host in the words of Torque, which numbers the processors of each
// machine: "n1/0-3+n2/0" where OpenPBS has "n1/0*4+n2/0".
func torqueHosts(list string) string {
	if list == "" {
		return ""
	}
	next := map[string]int{}
	parts := strings.Split(list, "+")
	for i, part := range parts {
		place, count, _ := strings.Cut(part, "*")
		host, _, _ := strings.Cut(place, "/")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 {
			n = 1
		}
		first := next[host]
		next[host] += n
		if parts[i] = fmt.Sprintf("%s/%d", host, first); n > 1 {
			parts[i] += fmt.Sprintf("-%d", first+n-1)
		}
	}
	return strings.Join(parts, "+")
}

// torqueExit is what ended a job in Torque's numbers, which differ where a job was over a
// limit.
func torqueExit(status string) string {
	switch status {
	case "-26", "-27": // vmem, mem
		return "-10"
	case "-28": // cput
		return "-12"
	case "-29": // walltime
		return "-11"
	}
	return status
}
