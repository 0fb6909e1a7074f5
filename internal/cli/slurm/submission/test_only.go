package submission

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/sbatch"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// StartForecast is when and where a job would start. Start is zero where nothing lets it
// start within the time that the simulation looks ahead; Obstacle says why then.
type StartForecast struct {
	Start    time.Time
	Machines []string // of the first task, or of the whole gang
	Obstacle string
}

// StartPredictor predicts the start of a job that is not submitted. Its error is of kind
// Invalid where no machine could ever run the job.
type StartPredictor func(c *frame.Invocation, job *jobspec.Job) (StartForecast, error)

// asksTestOnly reports whether a command line of sbatch has --test-only.
func asksTestOnly(args []string) bool {
	given, _, err := sbatch.ParseOptions(args)
	return err == nil && sbatch.Asks(given, "test-only")
}

// PrintForecast is sbatch --test-only: it predicts the start of the job and submits
// nothing.
func PrintForecast(c *frame.Invocation, args []string, predict StartPredictor) error {
	caller, err := pbsframe.NewCaller(c)
	if err != nil {
		return failWith(c, err)
	}
	result, err := sbatch.Parse(args, caller)
	if err != nil {
		return parseRefused(c, err)
	}
	fmt.Fprint(c.Stderr, result.Warnings)
	if err := checkDependencies(c, &result.Job); err != nil {
		return forecastRefused(c, "Job dependency problem: "+frame.ErrorText(err))
	}
	partition, _, _ := strings.Cut(cmp.Or(result.Partition, roost.DefaultQueueName), ",")
	begin := stripWaits(&result.Job)
	f, err := predict(c, &result.Job)
	switch {
	case errors.Is(err, roost.Invalid):
		return forecastRefused(c, "Requested node configuration is not available: "+frame.ErrorText(err))
	case errors.Is(err, roost.NotFound):
		fmt.Fprintf(c.Stderr, "%s: error: invalid partition specified: %s\n", c.Command.Name, partition)
		return forecastRefused(c, "Invalid partition name specified")
	case err != nil:
		return failWith(c, err)
	case f.Start.IsZero():
		return forecastRefused(c, "Requested nodes are busy: "+f.Obstacle)
	case result.Quiet:
		return nil
	}
	if f.Start.Before(begin) {
		f.Start = begin
	}
	machines := slices.Compact(slices.Sorted(slices.Values(f.Machines)))
	fmt.Fprintf(c.Stderr, "%s: Job %s to start at %s using %d processors on nodes %s in partition %s\n",
		c.Command.Name, nextJobNumber(c), f.Start.In(c.Now().Location()).Format("2006-01-02T15:04:05"),
		result.CPUs, hostlist.Compress(machines[:min(len(machines), result.Nodes)]), partition)
	return nil
}

// stripWaits takes from a job what it waits for beside machines. The forecast is for the
// time when nothing of that is left (sbatch(1)). It returns the job's start time, if any.
func stripWaits(job *jobspec.Job) (begin time.Time) {
	if at, ok := job.Ad.Int(roost.AttrStartAfter); ok {
		begin = time.Unix(at, 0)
	}
	for _, name := range []string{roost.AttrHoldOnSubmit, roost.AttrStartAfter, roost.AttrDependsOn} {
		job.Ad.Delete(name)
	}
	return begin
}

// forecastRefused prints why a job would not start.
func forecastRefused(c *frame.Invocation, why string) error {
	fmt.Fprintf(c.Stderr, "allocation failure: %s\n", document.PrintableText(strings.Join(strings.Fields(why), " ")))
	return exitWith(c, 1)
}

// checkDependencies checks that the jobs are there for which a job would wait.
func checkDependencies(c *frame.Invocation, job *jobspec.Job) error {
	waits, _ := job.Ad.Strings(roost.AttrDependsOn)
	var ids []string
	for _, w := range waits {
		_, id, _ := strings.Cut(w, ":")
		id, _, _ = strings.Cut(id, "+")
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := c.QueryJobs(&scheddapi.QueryRequest{Selection: &scheddapi.Selection{Selectors: ids}, History: true})
	return err
}

// nextJobNumber is the number that the next job gets; 0 if the newest one is not known.
func nextJobNumber(c *frame.Invocation) string {
	list, err := c.QueryJobs(&scheddapi.QueryRequest{Newest: true, Limit: 1, History: true})
	if err != nil || len(list) == 0 {
		return "1"
	}
	number, _, _ := strings.Cut(list[0].GetId(), ".")
	n, err := strconv.ParseUint(strings.TrimSuffix(number, "[]"), 10, 64)
	if err != nil || n == math.MaxUint64 {
		return number
	}
	return strconv.FormatUint(n+1, 10)
}

// ForecastArguments is the command line of sbatch for the job of a step that srun only
// tests.
func ForecastArguments(given []getopt.Given, command []string) []string {
	if len(command) == 0 {
		command = []string{"true"}
	}
	return allocationArguments(given, command)
}
