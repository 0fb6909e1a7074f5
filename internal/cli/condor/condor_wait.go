package condor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/condor"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func waitCommand() *frame.Command {
	return &frame.Command{
		Name: "condor_wait", Group: frame.GroupCondor, Summary: "wait until jobs have ended", RawArgs: true,
		MaxOperands: -1, Run: runWait,
		Synopsis: "[-wait SECONDS] [-num NUMBER] [-status] [-echo] [LOG] [CLUSTER[.PROC]…]",
		Description: "Waits until all jobs that a user log names have ended, or those of the clusters. Without a " +
			"log the schedd is asked.",
		Examples: []frame.Example{
			{Line: "condor_wait sim.log", Description: "wait for all jobs of a log file"},
			{Line: "condor_wait -wait 3600 sim.log 12", Description: "for an hour at most, for one cluster"},
			{Line: "condor_wait 12", Description: "wait for a job that has no log file"},
		},
	}
}

func runWait(c *frame.Invocation) error {
	l, answered, err := parseArguments(c, []condor.OptionWord{{Word: "wait", Least: 1, Values: 1},
		{Word: "num", Least: 2, Values: 1}, {Word: "status", Least: 1}, {Word: "echo", Least: 1}})
	if err != nil || answered {
		return refuseUnless(c, err)
	}
	w := logWait{status: l.Has("status"), echo: l.Has("echo")}
	seconds, err := positiveNumber(l, "wait", "a number of seconds")
	if err == nil {
		w.number, err = positiveNumber(l, "num", "a number of jobs")
	}
	if err != nil {
		return refuse(c, err)
	}
	w.limit = time.Duration(seconds) * time.Second
	var clusters []string
	for i, text := range l.Operands {
		id, ok := parseWaitID(text)
		switch {
		case i == 0 && (!ok || isFile(c.AbsolutePath(text))):
			w.path, w.file = text, c.AbsolutePath(text)
		case !ok:
			return refuse(c, fmt.Errorf("%q is no CLUSTER and no CLUSTER.PROC", text))
		default:
			w.of, clusters = append(w.of, id), append(clusters, id.String())
		}
	}
	switch {
	case w.path != "":
		return w.await(c)
	case slices.ContainsFunc(w.of, func(id condor.JobID) bool { return id.Proc != condor.WholeCluster }):
		return refuse(c, errors.New("one PROC is waited for by a log file, and none is named"))
	case len(clusters) == 0:
		return refuse(c, errors.New("neither a log file nor a cluster is named"))
	case w.number > 0 || w.status || w.echo:
		return refuse(c, errors.New("-num, -status and -echo are about a log file, and none is named"))
	}
	return awaitClusters(c, clusters, w.limit)
}

// positiveNumber returns the value of an option; 0 if it is not there.
func positiveNumber(l condor.CommandLine, word, what string) (int, error) {
	text := l.Last(word)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("-%s %q: it is %s", word, text, what)
	}
	return int(n), nil
}

// parseWaitID reads CLUSTER, CLUSTER.PROC or CLUSTER.PROC.0, as a log file writes it.
func parseWaitID(text string) (condor.JobID, bool) {
	if parts := strings.Split(text, "."); len(parts) == 3 {
		text = strings.TrimSuffix(text, "."+parts[2])
	}
	return condor.ParseJobID(text)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// awaitClusters waits until all jobs have ended, or the time has passed; 0 is no limit.
func awaitClusters(c *frame.Invocation, clusters []string, limit time.Duration) error {
	waiting := *c
	if limit > 0 {
		var cancel context.CancelFunc
		waiting.Context, cancel = context.WithTimeout(c.Context, limit)
		defer cancel()
	}
	_, err := jobs.WatchJobs(&waiting, &scheddapi.Selection{Selectors: clusters}, jobs.NoProgress{})
	switch {
	case err != nil && waiting.Context.Err() != nil && c.Context.Err() == nil:
		fmt.Fprintln(c.Stdout, "Time expired.")
		return frame.ExitError(failure)
	case err != nil && !errors.Is(frame.DecodeError(err), roost.Finished):
		return fail(c, err)
	}
	fmt.Fprintln(c.Stdout, "All jobs done.")
	return nil
}
