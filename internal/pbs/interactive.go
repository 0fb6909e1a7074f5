package pbs

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// What qsub says on standard error of options that mean nothing to an interactive job,
// and goes on (OpenPBS).
const (
	warnBlock = "qsub (Warning) : setting \"block\" attribute as \"true\" for an interactive job will not return " +
		"job's exit status"
	warnRerun = "qsub (Warning): Interactive jobs will be treated as not rerunnable"
)

// asksInteractive reports whether the command line wants an interactive job: then nothing
// is read from standard input, which is the terminal.
func asksInteractive(line []optionValue) bool {
	return slices.ContainsFunc(line, func(o optionValue) bool {
		return o.letter == 'I' || o.letter == 'W' && slices.Contains(SplitList(o.value), "interactive=true")
	})
}

// checkInteractive looks whether the other options go with a terminal.
func (s *jobSubmission) checkInteractive() error {
	if s.x11Forwarding {
		return s.refuseX11()
	}
	if !s.interactive {
		return nil
	}
	if s.array != nil {
		return refusalf("interactive and array job submission cannot be used together", exitUsage)
	}
	if s.block {
		s.block, s.warnings = false, append(s.warnings, warnBlock)
	}
	if s.mayRerun {
		s.warnings = append(s.warnings, warnRerun)
	}
	s.noRerun = true
	return nil
}

// setTerminal sets what runs on the terminal: the command behind "--", or else a login
// shell. A script is of no use but for its directives.
func (s *jobSubmission) setTerminal(ad *classad.Ad) {
	ad.SetBool(roost.AttrInteractive, true)
	if s.command == nil {
		ad.SetString(roost.AttrCmd, s.shellPath())
		ad.SetString(roost.AttrShell, s.shellPath())
	}
	ad.SetString(roost.AttrOut, "/dev/null")
	ad.SetString(roost.AttrErr, "/dev/null")
	ad.SetBool(roost.AttrJoinOutput, false)
}

func interactiveCommand(s *jobSubmission, _ string) error {
	s.interactive = true
	return nil
}

func (s *jobSubmission) setInteractive(v string) error {
	switch strings.ToLower(v) {
	case "true":
		s.interactive = true
	case "false":
	default:
		return illegalValueError('W')
	}
	return nil
}

// refuseX11 refuses -X in OpenPBS's words where it would, too.
func (s *jobSubmission) refuseX11() error {
	if display, ok := lookUpVariable(s.caller.Environ, "DISPLAY"); !ok || display == "" {
		return refusalf("DISPLAY not set", exitUsage)
	}
	if !s.interactive {
		return refusalf("X11 Forwarding possible only for interactive jobs", exitScript)
	}
	return refusalf("X11 Forwarding is not supported yet", exitUsage)
}
