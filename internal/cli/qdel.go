package cli

import (
	"cmp"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire"
)

func qdelCommand() *command {
	return &command{
		name: "qdel", group: groupPBS, summary: "delete jobs", synopsis: "[-x] [-W force] [-t RANGE] JOB… | all",
		rawArgs: true, maxOperands: -1, run: qdel,
		description: "Removes jobs, arrays (123[]), tasks of them (123[7]) and ranges of those (123[1-5]), or " +
			"all jobs of yours. What runs gets SIGTERM, and then SIGKILL.",
		examples: []commandExample{
			{"qdel 123", "delete a job"},
			{"qdel '123[1-5]'", "delete some tasks of an array"},
			{"qdel all", "delete all jobs of yours, as in Torque"},
		},
		flags: []ucli.Flag{
			shortFlag("m", "TEXT", "why; it stands in the job's log"),
			shortFlag("p", "", "the same as -W force, as in Torque"),
			shortFlag("t", "RANGE", "of the arrays named, only these tasks, as in Torque"),
			shortFlag("W", "force", "kill what runs at once; suppress_email=N, and a number of seconds as in Torque, "+
				"are taken and mean nothing here"),
			shortFlag("x", "", "jobs that have ended leave the history, with the output that was kept of them"),
		},
	}
}

func qdel(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "W:xpm:t:")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	force := o.isSet('p')
	for _, w := range o.given['W'] {
		switch key, _, _ := strings.Cut(w, "="); {
		case key == "force":
			force = true
		case key == "suppress_email" || w != "" && leadingDigits(w) == len(w):
		default:
			return c.pbsUsage("illegal -W value")
		}
	}
	named, all := len(o.operands) > 0, slices.Contains(o.operands, "all")
	if o.operands, err = c.ownJobs(o.operands); err != nil {
		return c.pbsFail(err)
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
	return c.actOnOperands(o, &wire.ActRequest{Verb: wire.ActRequest_REMOVE, Reason: cmp.Or(o.last('m'), "qdel"),
		Force: force, Ended: o.isSet('x')}, o.isSet('x') || all)
}

// ownJobs puts the ids of all jobs of the caller that have not ended in the place of
// "all".
func (c *invocation) ownJobs(operands []string) ([]string, error) {
	var ids []string
	for _, text := range operands {
		if text != "all" {
			ids = append(ids, text)
			continue
		}
		l := &pbsList{invocation: c, CommandOptions: qstat.CommandOptions{Users: []string{loginName()}}}
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
	n := leadingDigits(id)
	return id[:n] + "[" + tasks + "]" + strings.TrimPrefix(id[n:], "[]")
}
