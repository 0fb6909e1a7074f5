package condor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// vanillaUniverse is the only universe that there is here.
const vanillaUniverse = 5

// userHold is the code of a hold that a user or an administrator has asked for.
const userHold = 1

// OwnAds are the ads of jobs as the schedd has them, by cluster. All tasks of a job share
// one.
type OwnAds map[uint64]*classad.Ad

// Add adds the ad of a job, which its status has if it was asked for.
func (a OwnAds) Add(s *scheddapi.JobStatus) {
	if ad, err := classad.Parse(s.GetAd()); err == nil {
		a[ClusterOf(s.GetId())] = ad
	}
}

// JobAd returns the ad of a task under HTCondor's names.
func (a OwnAds) JobAd(s *scheddapi.JobStatus, now time.Time) *classad.Ad {
	ad, own := classad.New(), a[ClusterOf(s.GetId())]
	if own == nil {
		own = classad.New()
	}
	id, state := IDOf(s), StateNumberOf(s)
	_, host, _ := strings.Cut(s.GetId(), ".")
	ad.SetString("MyType", "Job")
	ad.SetInt("ClusterId", int64(id.Cluster))
	ad.SetInt("ProcId", int64(id.Proc))
	ad.SetString("GlobalJobId", fmt.Sprintf("%s#%v#%d", host, id, seconds(s.GetSubmitted())))
	ad.SetString("Owner", s.GetOwner())
	ad.SetString("User", s.GetOwner()+"@"+host)
	ad.SetInt("JobUniverse", vanillaUniverse)
	ad.SetInt("JobStatus", int64(state))
	ad.SetInt("JobPrio", int64(s.GetPriority()))
	ad.SetString("JobBatchName", s.GetName())
	ad.SetInt("QDate", seconds(s.GetSubmitted()))
	ad.SetInt("ServerTime", now.Unix())
	ad.SetInt("NumJobStarts", int64(s.GetAttempt()))
	setProgram(ad, own, id)
	setRequest(ad, s)
	setProgress(ad, s, state)
	setExit(ad, s, state)
	if labels, ok := own.Sub(roost.AttrLabels); ok {
		setLabels(ad, labels)
	}
	return ad
}

// seconds turns unix nanoseconds into seconds.
func seconds(nanos int64) int64 { return nanos / int64(time.Second) }

// setProgram sets what runs, where, and where its output goes.
func setProgram(ad, own *classad.Ad, id JobID) {
	for _, a := range [...][2]string{{"Cmd", roost.AttrCmd}, {"Iwd", roost.AttrIwd}, {"In", roost.AttrIn},
		{"Out", roost.AttrOut}, {"Err", roost.AttrErr}, {"AccountingGroup", roost.AttrGroup},
		{"UserLog", roost.AttrUserLog}, {"DAGNodeName", roost.AttrFlowNode}} {
		if text, ok := own.Str(a[1]); ok {
			ad.SetString(a[0], expandTask(text, id))
		}
	}
	if flow, ok := own.Str(roost.AttrFlowID); ok {
		number, _, _ := strings.Cut(flow, ".")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			ad.SetInt("DAGManJobId", n)
		}
	}
	if args, ok := own.Strings(roost.AttrArguments); ok {
		for i := range args {
			args[i] = expandTask(args[i], id)
		}
		ad.SetString("Args", strings.Join(args, " "))
		ad.SetString("Arguments", quoteArguments(args))
	}
}

// expandTask replaces the numbers of the job and of the task. The other columns of a task
// are not in its status, and their references stay.
func expandTask(text string, id JobID) string {
	return strings.NewReplacer("$(JobSeq)", strconv.FormatUint(id.Cluster, 10), "$(TaskIndex)",
		strconv.Itoa(id.Proc)).Replace(text)
}

// quoteArguments writes arguments in HTCondor's newer syntax, without the outer quotes.
func quoteArguments(args []string) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		if a == "" || strings.ContainsAny(a, " \t\n\r'") {
			a = "'" + strings.ReplaceAll(a, "'", "''") + "'"
		}
		b.WriteString(a)
	}
	return b.String()
}

// setRequest sets what the task asks for. Memory is in MiB, disk in KiB.
func setRequest(ad *classad.Ad, s *scheddapi.JobStatus) {
	r := s.GetRequest()
	if milli := r.GetMilliCpu(); milli%1000 == 0 {
		ad.SetInt("RequestCpus", int64(milli/1000))
	} else {
		ad.SetReal("RequestCpus", float64(milli)/1000)
	}
	ad.SetInt("RequestMemory", r.GetMemory()>>20)
	ad.SetInt("RequestDisk", r.GetDisk()>>10)
	if r.GetGpus() > 0 {
		ad.SetInt("RequestGPUs", r.GetGpus())
	}
}

// setProgress sets when and where the task runs, and why it does not.
func setProgress(ad *classad.Ad, s *scheddapi.JobStatus, state StateNumber) {
	entered := s.GetSubmitted()
	if s.GetStarted() != 0 {
		ad.SetInt("JobStartDate", seconds(s.GetStarted()))
		ad.SetInt("JobCurrentStartDate", seconds(s.GetStarted()))
		if state != Idle && state != Held {
			entered = s.GetStarted()
		}
	}
	if s.GetEnded() != 0 {
		entered = s.GetEnded()
	}
	ad.SetInt("EnteredCurrentStatus", seconds(entered))
	node := "RemoteHost"
	if state.IsFinal() {
		node = "LastRemoteHost"
	}
	if s.GetNode() != "" && state != Idle && state != Held {
		ad.SetString(node, "slot1@"+s.GetNode())
	}
	switch state {
	case Held:
		ad.SetString("HoldReason", s.GetReason())
		ad.SetInt("HoldReasonCode", userHold)
		ad.SetInt("HoldReasonSubCode", 0)
	case Removed:
		ad.SetString("RemoveReason", s.GetReason())
	}
	u := s.GetUsage()
	if u.GetPeakMemory() > 0 && !state.IsFinal() {
		ad.SetInt("MemoryUsage", (u.GetPeakMemory()+1<<20-1)>>20)
		ad.SetInt("ResidentSetSize", u.GetPeakMemory()>>10)
		ad.SetReal("RemoteUserCpu", float64(u.GetUserCpu())/float64(time.Second))
		ad.SetReal("RemoteSysCpu", float64(u.GetSystemCpu())/float64(time.Second))
	}
}

// setExit sets how the task ended. A completed task has an exit code also where it never
// ran: the one that roost wait gives.
func setExit(ad *classad.Ad, s *scheddapi.JobStatus, state StateNumber) {
	ad.SetInt("CompletionDate", 0)
	e := s.GetExit()
	ad.SetReal("RemoteWallClockTime", float64(e.GetWall())/float64(time.Second))
	if !state.IsFinal() {
		return
	}
	if e != nil {
		ad.SetReal("RemoteUserCpu", float64(e.GetUserCpu())/float64(time.Second))
		ad.SetReal("RemoteSysCpu", float64(e.GetSystemCpu())/float64(time.Second))
		peak := max(e.GetUsage().GetPeakMemory(), e.GetMaxRss())
		ad.SetInt("MemoryUsage", (peak+1<<20-1)>>20)
		ad.SetInt("ResidentSetSize", peak>>10)
	}
	if state != Completed {
		return
	}
	ad.SetInt("CompletionDate", seconds(s.GetEnded()))
	ad.SetBool("ExitBySignal", e.GetSignal() != 0)
	ad.SetInt("ExitStatus", int64(document.TaskCode(s)))
	if e.GetSignal() != 0 {
		ad.SetInt("ExitSignal", int64(e.GetSignal()))
		ad.SetBool("JobCoreDumped", e.GetCore())
	} else {
		ad.SetInt("ExitCode", int64(document.TaskCode(s)))
	}
}

// setLabels gives labels back as the attributes that they were in the submit description.
// They never replace what the queue says.
func setLabels(ad, labels *classad.Ad) {
	for name := range labels.All() {
		text, ok := labels.Str(name)
		if _, taken := ad.Lookup(name); taken || !ok {
			continue
		}
		if e, err := classad.ParseExpr(text); err == nil {
			if v, literal := e.Literal(); literal && v.Kind() != classad.Undefined && v.Kind() != classad.Error {
				ad.SetValue(name, v)
				continue
			}
		}
		ad.SetString(name, text)
	}
}
