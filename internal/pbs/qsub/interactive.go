package qsub

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Warnings of qsub about options without meaning for an interactive job (OpenPBS).
const (
	warnBlock = "qsub (Warning) : setting \"block\" attribute as \"true\" for an interactive job will not return " +
		"job's exit status"
	warnRerun = "qsub (Warning): Interactive jobs will be treated as not rerunnable"
)

// asksInteractive reports whether the command line asks for an interactive job. Then
// standard input is the terminal, and no script is read from it.
func asksInteractive(line []OptionValue) bool {
	return slices.ContainsFunc(line, func(o OptionValue) bool {
		return o.Letter == 'I' || o.Letter == 'W' && slices.Contains(SplitList(o.Value), "interactive=true")
	})
}

// checkInteractive checks that the other options are valid for an interactive job.
func (s *JobSubmission) checkInteractive() error {
	if s.x11Forwarding {
		return s.refuseX11()
	}
	if !s.interactive {
		return nil
	}
	if s.Array != nil {
		return refusalf("interactive and array job submission cannot be used together", ExitUsage)
	}
	if s.block {
		s.block, s.warnings = false, append(s.warnings, warnBlock)
	}
	if s.mayRerun {
		s.warnings = append(s.warnings, warnRerun)
	}
	s.NoRerun = true
	return nil
}

// setTerminal sets what runs on the terminal: the command after "--", or otherwise a
// login shell. Of a script only the directives matter.
func (s *JobSubmission) setTerminal(ad *classad.Ad) {
	ad.SetBool(roost.AttrInteractive, true)
	if s.Command == nil {
		ad.SetString(roost.AttrCmd, s.shellPath())
		ad.SetString(roost.AttrShell, s.shellPath())
	}
	ad.SetString(roost.AttrOut, "/dev/null")
	ad.SetString(roost.AttrErr, "/dev/null")
	ad.SetBool(roost.AttrJoinOutput, false)
}

func interactiveCommand(s *JobSubmission, _ string) error {
	s.interactive = true
	return nil
}

func (s *JobSubmission) setInteractive(v string) error {
	switch strings.ToLower(v) {
	case "true":
		s.interactive = true
	case "false":
	default:
		return IllegalValueError('W')
	}
	return nil
}

// refuseX11 refuses -X, with OpenPBS's error where OpenPBS would refuse it, too.
func (s *JobSubmission) refuseX11() error {
	if display, ok := LookUpVariable(s.Caller.Environ, "DISPLAY"); !ok || display == "" {
		return refusalf("DISPLAY not set", ExitUsage)
	}
	if !s.interactive {
		return refusalf("X11 Forwarding possible only for interactive jobs", exitScript)
	}
	return refusalf("X11 Forwarding is not supported yet", ExitUsage)
}
