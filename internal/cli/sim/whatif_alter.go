package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/sim/whatif"
	"github.com/roost-batch/roost/negotiator/cellstate"
)

// parseAlterFlags reads which jobs are to ask for something else.
func parseAlterFlags(c *frame.Invocation, p *cellstate.CellCheckpoint) (all []whatif.RequestChange, err error) {
	for _, text := range c.StringsFlag("alter") {
		job, amounts, err := cutPair("alter", text)
		if err != nil {
			return nil, err
		}
		if !jobID.MatchString(job) || strings.Contains(job, "[") {
			return nil, frame.UsageErrorf("--alter %s: it does not begin with the id of a job, as 12.n2", text)
		}
		change := whatif.RequestChange{}
		if change.Job, err = withHost(p, job); err != nil {
			return nil, err
		}
		for part := range strings.SplitSeq(amounts, ",") {
			name, value, _ := strings.Cut(part, ":")
			if err := setAmount(&change, name, value); err != nil {
				return nil, frame.UsageErrorf("--alter %s: %v", text, err)
			}
		}
		all = append(all, change)
	}
	return all, nil
}

// maxCores bounds the cores of a task.
const maxCores = 1 << 20

// setAmount reads one part of a request.
func setAmount(to *whatif.RequestChange, name, value string) error {
	switch name {
	case "cpus":
		cores, err := strconv.ParseFloat(value, 64)
		if err != nil || !(cores >= 0 && cores <= maxCores) {
			return fmt.Errorf("%q is no number of cores", value)
		}
		to.CPU = new(roost.MilliCPU(math.Round(1000 * cores)))
	case "memory", "disk":
		n, err := roost.ParseBytes(value)
		if err != nil {
			return err
		}
		if name == "memory" {
			to.Memory = &n
		} else {
			to.Disk = &n
		}
	case "gpus":
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil {
			return fmt.Errorf("%q is no number of GPUs", value)
		}
		to.GPUs = new(int(n))
	case "band":
		band, err := roost.ParsePriorityBand(value)
		if err != nil {
			return err
		}
		to.Band = &band
	default:
		return fmt.Errorf("%q is no amount of cpus, memory, disk or gpus, and no band: write it as cpus:8", name)
	}
	return nil
}
