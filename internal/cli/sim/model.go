package sim

import (
	"fmt"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim/trace/lublin"
)

func modelSubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{Name: "model", Summary: "make up a log of jobs", MinOperands: 1, MaxOperands: 1,
			OperandNames: "how many jobs, as 10000", Run: generateModel}, []ucli.Flag{
			processorsFlag(), seedFlag(),
			&ucli.BoolFlag{Name: "types", Usage: "model: make batch and interactive jobs apart"},
			&ucli.IntFlag{Name: "overask",
				Usage: "model: let a job ask for as long as it takes, or up to `N` times more"},
			outputFlag(), overwriteFlag(),
		}
}

// modelProcessors is of what the model's parameters are.
const modelProcessors = 128

func generateModel(c *frame.Invocation, args []string) error {
	jobs, err := strconv.Atoi(args[0])
	if err != nil {
		return frame.UsageErrorf("%q is no number of jobs", args[0])
	}
	m := lublin.LogModel{Jobs: jobs, Processors: modelProcessors, Seed: uint64(c.CountFlag("seed")),
		Types: c.Flag("types"), OverestimateFactor: float64(c.CountFlag("overask"))}
	if c.IsFlagSet("processors") {
		m.Processors = c.CountFlag("processors")
	}
	log, err := m.DrawLog()
	if err != nil {
		return frame.KindErrorf(roost.Invalid, "%v", err)
	}
	file := c.StringFlag("output")
	if file == "" {
		if err := log.Write(c.Stdout); err != nil {
			return frame.KindErrorf(roost.NoOutput, "%v", err)
		}
		return nil
	}
	var text strings.Builder
	if err := log.Write(&text); err != nil {
		return frame.KindErrorf(roost.NoOutput, "%v", err)
	}
	if err := c.WriteNewFile(file, text.String()); err != nil {
		return err
	}
	last := &log.Jobs[len(log.Jobs)-1]
	fmt.Fprintf(c.Stdout, "%s: %s on %s in %s\n", document.PrintableText(file), document.Plural(jobs, "job"),
		document.Plural(m.Processors, "processor"), secondsText(last.Submit))
	return nil
}
