package cli

import (
	"fmt"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/lublin"
)

func simModel() (branch, []ucli.Flag) {
	return branch{name: "model", brief: "make up a log of jobs", least: 1, most: 1, wants: "how many jobs, as 10000", do: model}, []ucli.Flag{
		processorsFlag(), seedFlag(),
		&ucli.BoolFlag{Name: "types", Usage: "model: make batch and interactive jobs apart"},
		&ucli.IntFlag{Name: "overask", Usage: "model: let a job ask for as long as it takes, or up to `N` times more"},
		outputFlag(), overwriteFlag(),
	}
}

// modelProcessors is of what the model's parameters are.
const modelProcessors = 128

func model(c *call, args []string) error {
	jobs, err := strconv.Atoi(args[0])
	if err != nil {
		return usage("%q is no number of jobs", args[0])
	}
	m := lublin.Model{Jobs: jobs, Processors: modelProcessors, Seed: uint64(c.count("seed")), Types: c.flag("types"), Overask: float64(c.count("overask"))}
	if c.given("processors") {
		m.Processors = c.count("processors")
	}
	log, err := m.Log()
	if err != nil {
		return problem(roost.Invalid, "%v", err)
	}
	file := c.text("output")
	if file == "" {
		if err := log.Write(c.stdout); err != nil {
			return problem(roost.NoOutput, "%v", err)
		}
		return nil
	}
	var text strings.Builder
	if err := log.Write(&text); err != nil {
		return problem(roost.NoOutput, "%v", err)
	}
	if err := c.writeNew(file, text.String()); err != nil {
		return err
	}
	last := &log.Jobs[len(log.Jobs)-1]
	fmt.Fprintf(c.stdout, "%s: %s on %s in %s\n", printable(file), plural(jobs, "job"), plural(m.Processors, "processor"), spoken(last.Submit))
	return nil
}
