package pbs

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/schedd/queue"
)

// What PBS says of how a job ended: its exit status, and its comment.

// pbsJobExitStatus is PBS's exit status of a job, as the queue derives it. Of an array it
// tells whether any task has failed.
func pbsJobExitStatus(s *scheddapi.JobStatus) string {
	e := s.GetExit()
	switch {
	case e != nil:
		x := queue.AttemptExit{Cause: queue.ExitCause(e.GetCause()), Code: e.GetCode(), Signal: e.GetSignal()}
		return fmt.Sprint(x.Status())
	case document.IsFinal(s) && s.GetArray():
		return fmt.Sprint(min(document.FailedCount(s), 1))
	}
	return ""
}

// deletedExitStatus is the Exit_status of a job that was deleted: 256 and SIGTERM, which
// is what one gets that runs.
const deletedExitStatus = "271"

// shownExitStatus is the Exit_status that a job is shown with. One that machines have
// spoiled, or that had to leave one, is to be run again, and clients take any Exit_status
// for the end of it. One that was deleted before it ran has the status of those that are
// deleted while they run, because clients stumble over a job that has ended without any.
func shownExitStatus(s *scheddapi.JobStatus) string {
	e := s.GetExit()
	spoiled := e.GetCause() == scheddapi.Cause_CAUSE_MACHINE && e.GetCode() == 0 && e.GetSignal() == 0
	switch {
	case !document.IsFinal(s) && (spoiled || pbsState(s) != "E"):
		return ""
	case (spoiled || e == nil) && (!s.GetArray() || isSubjob(s)) &&
		(s.GetState() == roost.Removed.String() || s.GetRemoved()):
		return deletedExitStatus
	case spoiled:
		return ""
	}
	return pbsJobExitStatus(s)
}

// comment is the line of OpenPBS about how a job stands: why it waits, where it runs, how
// it ended.
func (j *pbsJob) comment() string {
	s := j.JobStatus
	why := s.GetReason()
	// a start puts its own words in the place of a comment, and qalter others in theirs
	if stated := j.statedText("comment"); stated != "" && !document.IsFinal(s) &&
		(s.GetStarted() == 0 || j.statedText(commentedAttempt) == fmt.Sprint(s.GetAttempt())) {
		return stated
	}
	if isSubjob(s) && pbsState(s) == "X" {
		return "Subjob " + exitText(s)
	}
	switch state := pbsState(s); {
	case document.IsFinal(s) && s.GetStarted() == 0:
		return why
	case document.IsFinal(s):
		text := j.startComment() + " and " + exitText(s)
		if why = s.GetExit().GetReason(); why == "" { // what the words before say is not said twice
			samples := []document.TaskSample{document.TaskSampleOf(s, document.AdWalltime(s.GetAd()))}
			why = strings.Join(document.RightSize(samples), "; ")
		}
		if why != "" {
			text += "; " + why
		}
		return text
	case state == "R" || state == "E" || state == "B":
		if why != "" && state == "R" {
			return j.startComment() + "; " + why
		}
		return j.startComment()
	case strings.HasPrefix(why, "Can Never Run") && state == "Q":
		return why
	// the negotiator's words
	case strings.HasPrefix(why, "none of the ") && strings.Contains(why, " can run it") && state == "Q":
		return "Can Never Run: " + why
	case why != "" && state == "Q":
		return "Not Running: " + why
	}
	return why
}

// startComment says when and where a job was started.
func (j *pbsJob) startComment() string {
	at := document.TimeOfNanos(j.GetStarted()).In(j.Now().Location())
	if j.GetStarted() == 0 {
		return "Job is to start on " + execVnode(j.JobStatus)
	}
	text := "Job run at " + at.Format("Mon Jan 02 at 15:04")
	if where := execVnode(j.JobStatus); where != "" {
		text += " on " + where
	}
	if j.GetArray() && !isSubjob(j.JobStatus) {
		return "Job Array Began at " + at.Format("Mon Jan 02 at 15:04")
	}
	return text
}

// exitText is how a job ended.
func exitText(s *scheddapi.JobStatus) string {
	e := s.GetExit()
	resource := queue.ExitCause(e.GetCause()).ExceededResource()
	switch {
	case resource != "":
		return "exceeded resource " + resource
	case s.GetRemoved(), s.GetState() == roost.Removed.String(), e.GetCause() == scheddapi.Cause_CAUSE_REMOVED:
		return "terminated"
	case document.FailedCount(s) > 0 || document.FailedExit(e):
		return "failed"
	}
	return "finished"
}
