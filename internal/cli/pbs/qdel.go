package pbs

import (
	"cmp"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire"
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
			shortFlag("m", "TEXT", "why; it stands in the job's log"),
			shortFlag("p", "", "the same as -W force, as in Torque"),
			shortFlag("t", "RANGE", "of the arrays named, only these tasks, as in Torque"),
			shortFlag("W", "force", "kill what runs at once; suppress_email=N, and a number of seconds as in Torque, "+
				"are taken and mean nothing here"),
			shortFlag("x", "", "jobs that have ended leave the history, with the output that was kept of them"),
		},
	}
}

func qdel(c *frame.Invocation) error {
	if answersVersion(c) {
		return nil
	}
	o, err := getopt(c.Args, "W:xpm:t:")
	if err != nil {
		return pbsUsage(c, err.Error())
	}
	force := o.isSet('p')
	for _, w := range o.given['W'] {
		switch key, _, _ := strings.Cut(w, "="); {
		case key == "force":
			force = true
		case key == "suppress_email" || w != "" && frame.LeadingDigits(w) == len(w):
		default:
			return pbsUsage(c, "illegal -W value")
		}
	}
	named, all := len(o.operands) > 0, slices.Contains(o.operands, "all")
	if o.operands, err = ownJobs(c, o.operands); err != nil {
		return pbsFail(c, err)
	}
	if named && len(o.operands) == 0 {
		return nil // all of none
	}
	if tasks := o.last('t'); tasks != "" {
		for i, id := range o.operands {
			o.operands[i] = withTaskRange(id, tasks)
		}
	}
	// of all, some may end meanwhile
	return actOnOperands(c, o, &wire.ActRequest{Verb: wire.ActRequest_REMOVE, Reason: cmp.Or(o.last('m'), "qdel"),
		Force: force, Ended: o.isSet('x')}, o.isSet('x') || all)
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
		if err := l.listAll("", "", func(s *wire.JobStatus) error {
			ids = append(ids, pbsName(s.GetId(), s.GetArray()))
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// withTaskRange makes "12[1-5].host" of "12[].host" or "12.host", and of "1-5".
func withTaskRange(id, tasks string) string {
	n := frame.LeadingDigits(id)
	return id[:n] + "[" + tasks + "]" + strings.TrimPrefix(id[n:], "[]")
}
