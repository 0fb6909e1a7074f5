package cli

import (
	"fmt"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/lublin"
)

func simModel() (subcommand, []ucli.Flag) {
	return subcommand{name: "model", summary: "make up a log of jobs", minOperands: 1, maxOperands: 1,
			operandNames: "how many jobs, as 10000", run: generateModel}, []ucli.Flag{
			processorsFlag(), seedFlag(),
			&ucli.BoolFlag{Name: "types", Usage: "model: make batch and interactive jobs apart"},
			&ucli.IntFlag{Name: "overask",
				Usage: "model: let a job ask for as long as it takes, or up to `N` times more"},
			outputFlag(), overwriteFlag(),
		}
}

// modelProcessors is of what the model's parameters are.
const modelProcessors = 128

func generateModel(c *invocation, args []string) error {
	jobs, err := strconv.Atoi(args[0])
	if err != nil {
		return usageErrorf("%q is no number of jobs", args[0])
	}
	m := lublin.LogModel{Jobs: jobs, Processors: modelProcessors, Seed: uint64(c.countFlag("seed")),
		Types: c.flag("types"), OverestimateFactor: float64(c.countFlag("overask"))}
	if c.isFlagSet("processors") {
		m.Processors = c.countFlag("processors")
	}
	log, err := m.DrawLog()
	if err != nil {
		return kindErrorf(roost.Invalid, "%v", err)
	}
	file := c.stringFlag("output")
	if file == "" {
		if err := log.Write(c.stdout); err != nil {
			return kindErrorf(roost.NoOutput, "%v", err)
		}
		return nil
	}
	var text strings.Builder
	if err := log.Write(&text); err != nil {
		return kindErrorf(roost.NoOutput, "%v", err)
	}
	if err := c.writeNewFile(file, text.String()); err != nil {
		return err
	}
	last := &log.Jobs[len(log.Jobs)-1]
	fmt.Fprintf(c.stdout, "%s: %s on %s in %s\n", printableText(file), plural(jobs, "job"),
		plural(m.Processors, "processor"), secondsText(last.Submit))
	return nil
}
