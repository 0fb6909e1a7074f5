package pbs

import (
	"cmp"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qdelCommand() *frame.Command {
	return &frame.Command{
		Name: "qdel", Group: frame.GroupPBS, Summary: "delete jobs", Synopsis: "[-x] [-W force] [-t RANGE] JOB… | all",
		RawArgs: true, MaxOperands: -1, Run: qdel,
		Description: "Removes jobs, arrays (123[]), tasks of them (123[7]) and ranges of those (123[1-5]), or " +
			"all jobs of yours. What runs gets SIGTERM, and then SIGKILL.",
		Examples: []frame.Example{
			{Line: "qdel 123", Description: "delete a job"},
			{Line: "qdel '123[1-5]'", Description: "delete some tasks of an array"},
			{Line: "qdel all", Description: "delete all jobs of yours, as in Torque"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("m", "TEXT", "why; it stands in the job's log"),
			pbsframe.ShortFlag("p", "", "the same as -W force, as in Torque"),
			pbsframe.ShortFlag("t", "RANGE", "of the arrays named, only these tasks, as in Torque"),
			pbsframe.ShortFlag("W", "force",
				"kill what runs at once; suppress_email=N, and a number of seconds as in Torque, "+
					"are taken and mean nothing here"),
			pbsframe.ShortFlag("x", "",
				"jobs that have ended leave the history, with the output that was kept of them"),
		},
	}
}

func qdel(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "W:xpm:t:")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	force := o.IsSet('p')
	for _, w := range o.Given['W'] {
		switch key, _, _ := strings.Cut(w, "="); {
		case key == "force":
			force = true
		case key == "suppress_email" || w != "" && document.LeadingDigits(w) == len(w):
		default:
			return pbsframe.PrintUsage(c, "illegal -W value")
		}
	}
	named, all := len(o.Operands) > 0, slices.Contains(o.Operands, "all")
	if o.Operands, err = ownJobs(c, o.Operands); err != nil {
		return pbsframe.Fail(c, err)
	}
	if named && len(o.Operands) == 0 {
		return nil // all of none
	}
	if tasks := o.Last('t'); tasks != "" {
		for i, id := range o.Operands {
			o.Operands[i] = withTaskRange(id, tasks)
		}
	}
	// of all, some may end meanwhile
	return actOnOperands(c, o, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_REMOVE, Reason: cmp.Or(o.Last('m'),
		"qdel"),
		Force: force, Ended: o.IsSet('x')}, o.IsSet('x') || all)
}

// ownJobs puts the ids of all jobs of the caller that have not ended in the place of
// "all".
func ownJobs(c *frame.Invocation, operands []string) ([]string, error) {
	var ids []string
	for _, text := range operands {
		if text != "all" {
			ids = append(ids, text)
			continue
		}
		l := &pbsList{Invocation: c, CommandOptions: qstat.CommandOptions{Users: []string{frame.LoginName()}}}
		if err := l.listAll("", "", func(s *scheddapi.JobStatus) error {
			ids = append(ids, pbsframe.IDText(s.GetId(), s.GetArray()))
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// withTaskRange makes "12[1-5].host" of "12[].host" or "12.host", and of "1-5".
func withTaskRange(id, tasks string) string {
	n := document.LeadingDigits(id)
	return id[:n] + "[" + tasks + "]" + strings.TrimPrefix(id[n:], "[]")
}
