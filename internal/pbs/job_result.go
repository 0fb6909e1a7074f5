package pbs

import (
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/submit"
)

// newResult builds the job.
func (s *jobSubmission) newResult() (QsubResult, error) {
	for _, step := range []func() error{s.parseAttributes, s.checkInteractive, s.parseResources, s.checkConflicts} {
		if err := step(); err != nil {
			return QsubResult{}, err
		}
	}
	ad := classad.New()
	job := submit.Job{Name: s.name, Label: s.name, Ad: ad, Count: 1}
	if s.array != nil {
		job.Count, job.Array = s.array.Len(), true
		ad.SetString(roost.AttrArrayIndex, s.array.String())
	}
	ad.SetString(roost.AttrMyType, "Job")
	ad.SetString(roost.AttrJobName, submit.EscapeLiteral(s.name))
	if parts := len(s.request.gangParts); parts > 1 {
		job.Count *= parts // and to its user it is one job all the same, or as many as the array has indexes
		ad.SetBool("Array", s.array != nil)
	}
	ad.SetInt(roost.AttrTaskCount, int64(job.Count))
	s.setProgram(ad)
	s.setPaths(ad)
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
	return QsubResult{Job: job, Queue: s.queue, Server: s.server, Quiet: s.quiet, Block: s.block,
		Interactive: s.interactive, Warnings: s.warnings}, nil
}

// setProgram sets the script with its shell, or the command behind "--".
func (s *jobSubmission) setProgram(ad *classad.Ad) {
	where := s.workingDirectory()
	if s.ownDirectory {
		where = s.outputDirectory()
	}
	ad.SetString(roost.AttrIwd, submit.EscapeLiteral(where))
	arguments := s.arguments
	if s.command == nil && s.interactive {
		return
	}
	if s.command == nil {
		ad.SetString(roost.AttrScript, s.script)
		if s.shell != "" || !strings.HasPrefix(s.script, "#!") {
			ad.SetString(roost.AttrShell, s.shellPath())
		}
	} else {
		program := s.command[0]
		if strings.Contains(program, "/") {
			program = s.absolutePath(program)
		} else if s.caller.LookPath != nil {
			if found, err := s.caller.LookPath(program); err == nil {
				program = s.absolutePath(found)
			}
		}
		ad.SetString(roost.AttrCmd, submit.EscapeLiteral(program))
		arguments = s.command[1:]
	}
	if len(arguments) == 0 {
		return
	}
	list := make([]string, len(arguments))
	for i, a := range arguments {
		list[i] = submit.EscapeLiteral(a)
	}
	ad.SetStrings(roost.AttrArguments, list)
}

// shellPath is -S, else PBS_SHELL, else the user's login shell, else sh.
func (s *jobSubmission) shellPath() string {
	if s.shell != "" {
		return s.shell
	}
	for _, name := range []string{"PBS_SHELL", "SHELL"} {
		if sh, ok := lookUpVariable(s.caller.Environ, name); ok && strings.HasPrefix(sh, "/") {
			return sh
		}
	}
	return "/bin/sh"
}

// setAccounting sets on whose account the job runs, and what decides when.
func (s *jobSubmission) setAccounting(ad *classad.Ad) {
	d := submit.StandardDefaults()
	ad.SetString(roost.AttrBand, d.Band.String())
	ad.SetInt(roost.AttrPriority, int64(s.priority))
	if group := s.account; group != "" || s.project != "" {
		if group == "" {
			group = s.project
		}
		ad.SetString(roost.AttrGroup, group)
	}
	if s.group != "" && s.group != s.caller.Group {
		ad.SetString(roost.AttrUnixGroup, s.group)
	}
	if s.queue != "" {
		ad.SetString(roost.AttrQueue, s.queue)
	}
	if s.reservation != "" {
		ad.SetString(roost.AttrReservation, s.reservation)
	}
	if s.start.After(s.caller.Now) {
		ad.SetInt(roost.AttrStartAfter, s.start.Unix())
	}
	if s.held {
		ad.SetBool(roost.AttrHoldOnSubmit, true)
	}
	ad.SetBool(roost.AttrRerunnable, !s.noRerun)
	if s.maxRunning > 0 {
		ad.SetInt(roost.AttrMaxRunning, int64(s.maxRunning))
	}
	ad.SetInt(roost.AttrMaxRetries, 0)
	ad.SetInt(roost.AttrJobLease, wholeSeconds(d.Lease))
	if len(s.dependencies) > 0 {
		ad.SetStrings(roost.AttrDependsOn, s.dependencies)
	}
}
