package qsub

import (
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// NewResult builds the job.
func (s *JobSubmission) NewResult() (QsubResult, error) {
	for _, step := range []func() error{s.parseAttributes, s.checkInteractive, s.parseResources, s.checkConflicts} {
		if err := step(); err != nil {
			return QsubResult{}, err
		}
	}
	ad := classad.New()
	job := jobspec.Job{Name: s.Name, Label: s.Name, Ad: ad, Count: 1}
	if s.Array != nil {
		job.Count, job.Array = s.Array.Len(), true
		ad.SetString(roost.AttrArrayIndex, s.Array.String())
	}
	ad.SetString(roost.AttrMyType, "Job")
	ad.SetString(roost.AttrJobName, jobspec.EscapeLiteral(s.Name))
	if parts := len(s.request.gangParts); parts > 1 {
		job.Count *= parts // and to its user it is one job all the same, or as many as the array has indexes
		ad.SetBool("Array", s.Array != nil)
	}
	ad.SetInt(roost.AttrTaskCount, int64(job.Count))
	if err := setContainer(s, ad); err != nil {
		return QsubResult{}, err
	}
	s.setProgram(ad)
	s.paths().setPaths(ad)
	s.setStaging(ad)
	job.Columns = s.setRequest(ad)
	s.setBounds(ad)
	if err := s.setCountedResources(ad); err != nil {
		return QsubResult{}, err
	}
	s.setNotices(ad)
	s.setAccounting(ad)
	s.setCheckpointAttributes(ad)
	ad.SetStrings(roost.AttrEnvironment, s.jobEnvironment())
	s.setRecord(ad)
	if s.interactive {
		s.setTerminal(ad)
	}
	return QsubResult{Job: job, Queue: s.Queue, Server: s.Server, Quiet: s.quiet, Block: s.block,
		Interactive: s.interactive, Warnings: s.warnings}, nil
}

// setProgram sets the script with its shell, or the command after "--".
func (s *JobSubmission) setProgram(ad *classad.Ad) {
	where := s.paths().workingDirectory()
	if s.ownDirectory {
		where = s.outputDirectory()
	}
	ad.SetString(roost.AttrIwd, jobspec.EscapeLiteral(where))
	arguments := s.arguments
	if s.Command == nil && s.interactive {
		return
	}
	if s.Command == nil {
		ad.SetString(roost.AttrScript, s.Script)
		if s.Shell != "" || !strings.HasPrefix(s.Script, "#!") {
			ad.SetString(roost.AttrShell, s.shellPath())
		}
	} else {
		program := s.Command[0]
		if strings.Contains(program, "/") {
			program = s.paths().absolutePath(program)
		} else if s.Caller.LookPath != nil && !hasContainer(s) { // an image has its own
			if found, err := s.Caller.LookPath(program); err == nil {
				program = s.paths().absolutePath(found)
			}
		}
		ad.SetString(roost.AttrCmd, jobspec.EscapeLiteral(program))
		arguments = s.Command[1:]
	}
	if len(arguments) == 0 {
		return
	}
	list := make([]string, len(arguments))
	for i, a := range arguments {
		list[i] = jobspec.EscapeLiteral(a)
	}
	ad.SetStrings(roost.AttrArguments, list)
}

// shellPath returns -S, otherwise PBS_SHELL, otherwise the user's login shell, otherwise
// sh.
func (s *JobSubmission) shellPath() string {
	if s.Shell != "" {
		return s.Shell
	}
	if hasContainer(s) { // the login shell may not be in it
		return "/bin/sh"
	}
	for _, name := range []string{"PBS_SHELL", "SHELL"} {
		if sh, ok := LookUpVariable(s.Caller.Environ, name); ok && strings.HasPrefix(sh, "/") {
			return sh
		}
	}
	return "/bin/sh"
}

// setAccounting sets the account of the job, and what decides when it runs.
func (s *JobSubmission) setAccounting(ad *classad.Ad) {
	d := jobspec.StandardDefaults()
	ad.SetString(roost.AttrBand, d.Band.String())
	ad.SetInt(roost.AttrPriority, int64(s.Priority))
	if group := s.Account; group != "" || s.Project != "" {
		if group == "" {
			group = s.Project
		}
		ad.SetString(roost.AttrGroup, group)
	}
	if s.group != "" && s.group != s.Caller.Group {
		ad.SetString(roost.AttrUnixGroup, s.group)
	}
	if s.Queue != "" {
		ad.SetString(roost.AttrQueue, s.Queue)
	}
	if s.reservation != "" {
		ad.SetString(roost.AttrReservation, s.reservation)
	}
	if s.Start.After(s.Caller.Now) {
		ad.SetInt(roost.AttrStartAfter, s.Start.Unix())
	}
	if s.cellQueue != nil {
		ad.SetBool(roost.AttrCellQueue, *s.cellQueue)
	}
	if s.held {
		ad.SetBool(roost.AttrHoldOnSubmit, true)
	}
	ad.SetBool(roost.AttrRerunnable, !s.NoRerun)
	if s.maxRunning > 0 {
		ad.SetInt(roost.AttrMaxRunning, int64(s.maxRunning))
	}
	ad.SetInt(roost.AttrMaxRetries, 0)
	ad.SetInt(roost.AttrJobLease, wholeSeconds(d.Lease))
	if len(s.dependencies) > 0 {
		ad.SetStrings(roost.AttrDependsOn, s.dependencies)
	}
}
