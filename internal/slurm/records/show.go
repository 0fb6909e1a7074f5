package records

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Show is the text of scontrol show job: several lines, or with oneLine a single one.
func (j *Job) Show(c *Clock, oneLine bool) string {
	lines := j.showLines(c)
	if oneLine {
		return strings.Join(lines, " ") + "\n"
	}
	return strings.Join(lines, "\n   ") + "\n\n"
}

// showLines are the lines of scontrol show job.
func (j *Job) showLines(c *Clock) []string {
	head := "JobId=" + j.RawID()
	if j.IsArray {
		head += fmt.Sprintf(" ArrayJobId=%s ArrayTaskId=%s", j.ArrayID(), strings.Trim(j.indexText(0), "[]"))
		if n, ok := j.Ad.Int(roost.AttrMaxRunning); ok && n > 0 {
			head += " ArrayTaskThrottle=" + decimal(n)
		}
	}
	limit := "UNLIMITED"
	if j.Limit() != 0 {
		limit = longDuration(j.Limit())
	}
	code, signal := j.ExitCode()
	hosts := cmp.Or(j.NodeList(), "")
	allocated := "(null)"
	if hosts != "" {
		allocated = j.TRES()
	}
	submitted := c.Time(time.Unix(0, j.GetSubmitted()), "Unknown")
	eligible := j.eligible()
	if eligible.IsZero() && j.State != "PENDING" {
		eligible = time.Unix(0, j.GetSubmitted())
	}
	lines := []string{
		head + " JobName=" + visible(j.GetName()),
		fmt.Sprintf("UserId=%s(%s) GroupId=%s(%s) MCS_label=N/A", visible(j.GetOwner()),
			adNumber(j, roost.AttrOwnerUID), cmp.Or(adText(j, roost.AttrUnixGroup), "(null)"),
			adNumber(j, roost.AttrOwnerGID)),
		fmt.Sprintf("Priority=%d Nice=%d Account=%s QOS=normal", j.Priority(), j.nice(), visible(orNull(j.Account()))),
		fmt.Sprintf("JobState=%s Reason=%s Dependency=%s", j.State, j.Reason(), orNull(j.Dependency())),
		fmt.Sprintf("Requeue=%d Restarts=%d BatchFlag=1 Reboot=0 ExitCode=%d:%d", requeues(j), j.restarts(), code,
			signal),
		fmt.Sprintf("RunTime=%s TimeLimit=%s TimeMin=N/A", longDuration(j.RunTime(c.Now)), limit),
		fmt.Sprintf("SubmitTime=%s EligibleTime=%s", submitted, c.Time(eligible, "Unknown")),
		"AccrueTime=" + c.Time(eligible, "Unknown"),
		fmt.Sprintf("StartTime=%s EndTime=%s Deadline=N/A", c.Time(j.Start(), "Unknown"), c.Time(j.End(), "Unknown")),
		"SuspendTime=None SecsPreSuspend=0 LastSchedEval=" + submitted + " Scheduler=Main",
		fmt.Sprintf("Partition=%s AllocNode:Sid=%s:0", j.Partition(), j.Host),
		fmt.Sprintf("ReqNodeList=%s ExcNodeList=%s", visible(orNull(j.asked("ReqNodeList"))),
			visible(orNull(j.asked("ExcNodeList")))),
		"NodeList=" + hosts,
	}
	if len(j.Hosts()) > 0 {
		lines = append(lines, "BatchHost="+j.Hosts()[0])
	}
	lines = append(lines,
		fmt.Sprintf("NumNodes=%d NumCPUs=%d NumTasks=%d CPUs/Task=%d ReqB:S:C:T=0:0:*:*", j.NodeCount(), j.CPUs(),
			j.Tasks(), j.cpusPerTask()),
		"ReqTRES="+j.TRES(), "AllocTRES="+allocated,
		fmt.Sprintf("Socks/Node=* NtasksPerN:B:S:C=%d:0:*:* CoreSpec=*", j.askedNumber("NtasksPerNode")),
		fmt.Sprintf("MinCPUsNode=%d MinMemoryNode=%s MinTmpDiskNode=0", j.leastCPUs(), Memory(j.nodeMemory())),
		"Features="+visible(orNull(j.asked("Features")))+" DelayBoot=00:00:00",
		"OverSubscribe=OK Contiguous=0 Licenses="+visible(orNull(j.licenses()))+" Network=(null)",
		"Command="+visible(orNull(j.Command())), "WorkDir="+visible(j.WorkDir()))
	if comment := j.asked("Comment"); comment != "" {
		lines = append(lines, "Comment="+visible(comment))
	}
	lines = append(lines, "StdErr="+visible(j.StdErr()), "StdIn="+visible(j.StdIn()), "StdOut="+visible(j.StdOut()))
	if gres := j.gres(); gres != "" {
		lines = append(lines, "TresPerNode="+gres)
	}
	return lines
}
