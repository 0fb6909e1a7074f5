package pbs

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// What qsub says on standard error of options that mean nothing to an interactive job, and goes on (OpenPBS).
const (
	warnBlock = "qsub (Warning) : setting \"block\" attribute as \"true\" for an interactive job will not return job's exit status"
	warnRerun = "qsub (Warning): Interactive jobs will be treated as not rerunnable"
)

// asksInteractive reports whether the command line wants an interactive job: then nothing is read from standard input, which is the terminal.
func asksInteractive(line []option) bool {
	return slices.ContainsFunc(line, func(o option) bool {
		return o.letter == 'I' || o.letter == 'W' && slices.Contains(List(o.value), "interactive=true")
	})
}

// checkInteractive looks whether the other options go with a terminal.
func (s *submission) checkInteractive() error {
	if s.windows {
		return s.refuseWindows()
	}
	if !s.interactive {
		return nil
	}
	if s.array != nil {
		return refuse("interactive and array job submission cannot be used together", exitUsage)
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

// setTerminal sets what runs on the terminal: the command behind "--", or else a login shell. A script is of no use but for its directives.
func (s *submission) setTerminal(ad *classad.Ad) {
	ad.SetBool(roost.AttrInteractive, true)
	if s.command == nil {
		ad.SetString(roost.AttrCmd, s.shellPath())
		ad.SetString(roost.AttrShell, s.shellPath())
	}
	ad.SetString(roost.AttrOut, "/dev/null")
	ad.SetString(roost.AttrErr, "/dev/null")
	ad.SetBool(roost.AttrJoinOutput, false)
}

func interactive(s *submission, _ string) error {
	s.interactive = true
	return nil
}

func (s *submission) setInteractive(v string) error {
	switch strings.ToLower(v) {
	case "true":
		s.interactive = true
	case "false":
	default:
		return illegal('W')
	}
	return nil
}

// refuseWindows refuses -X in OpenPBS's words where it would, too.
func (s *submission) refuseWindows() error {
	if display, ok := lookup(s.caller.Environ, "DISPLAY"); !ok || display == "" {
		return refuse("DISPLAY not set", exitUsage)
	}
	if !s.interactive {
		return refuse("X11 Forwarding possible only for interactive jobs", exitScript)
	}
	return refuse("X11 Forwarding is not supported yet", exitUsage)
}
