// Package forecast is sbatch and srun with --test-only. It belongs to the program of the
// simulator, which plays the pool on from its present state to predict a start.
package forecast

import (
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/sim"
	"github.com/roost-batch/roost/internal/cli/slurm/steps"
	"github.com/roost-batch/roost/internal/cli/slurm/submission"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// Commands are sbatch and srun, as the simulator's program runs them.
func Commands() []*frame.Command {
	sbatch := frame.FindEntry(submission.Entries(), "sbatch")
	sbatch.Run = func(c *frame.Invocation) error { return submission.PrintForecast(c, c.Args, predict) }
	srun := steps.SrunCommand(func(c *frame.Invocation, given []getopt.Given, command []string) error {
		return submission.PrintForecast(c, submission.ForecastArguments(given, command), predict)
	})
	return []*frame.Command{sbatch, srun}
}

// predict asks the simulator when a job would start.
func predict(c *frame.Invocation, job *jobspec.Job) (f submission.StartForecast, err error) {
	a, err := sim.WhenSubmitted(c, []submit.Job{*job})
	if err != nil {
		return f, err
	}
	f.Start, f.Machines, f.Obstacle = a.First, a.Machines, a.StoppedReason
	if f.Obstacle == "" && a.Explanation != nil {
		f.Obstacle = a.Explanation.Summary
	}
	return f, nil
}
