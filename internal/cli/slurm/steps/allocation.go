package steps

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/step"
)

// reachVariable names the socket by which a job runs something on its other machines.
const reachVariable = "ROOST_REACH"

// allocation is the job that srun runs in.
type allocation struct {
	id       string // its number, as Slurm writes it
	machines []step.Machine
	socket   string
	table    string // the file of its steps
	log      string // that of what they say of themselves
}

// isInAllocation says whether this runs in a job that can have steps.
func isInAllocation(c *frame.Invocation) bool { return c.Getenv(reachVariable) != "" }

// readAllocation finds the machines of the job that this runs in. Jobs of any dialect
// have a file of nodes if they are to run on several: "qsub -l select".
func readAllocation(c *frame.Invocation) (*allocation, error) {
	text, err := os.ReadFile(c.Getenv("PBS_NODEFILE"))
	if err != nil {
		return nil, fmt.Errorf("the machines of the job are not known: %w", err)
	}
	a := &allocation{socket: c.Getenv(reachVariable)}
	directory := filepath.Dir(a.socket)
	a.table, a.log = filepath.Join(directory, "steps"), filepath.Join(directory, "steps.log")
	id, _, _ := strings.Cut(cmp.Or(c.Getenv("SLURM_JOB_ID"), c.Getenv("ROOST_JOB_ID")), ".")
	a.id = id
	for i, name := range strings.Fields(string(text)) {
		at := slices.IndexFunc(a.machines, func(m step.Machine) bool { return m.Name == name })
		if at < 0 {
			at = len(a.machines)
			a.machines = append(a.machines, step.Machine{Name: name, Line: i})
		}
		a.machines[at].Tasks++
	}
	if len(a.machines) == 0 {
		return nil, errors.New("the job has no machines in its file of nodes")
	}
	counts, err := step.ExpandCounts(c.Getenv("SLURM_JOB_CPUS_PER_NODE"))
	perChunk, _ := strconv.Atoi(c.Getenv("NCPUS"))
	lines, _ := strconv.Atoi(c.Getenv("PBS_NUM_PPN"))
	for i := range a.machines {
		m := &a.machines[i]
		if err == nil && len(counts) == len(a.machines) {
			m.CPUs = counts[i]
		} else { // of qsub: its chunks have so many processors, and so many lines each
			m.CPUs = m.Tasks / max(lines, 1) * max(perChunk, 1)
		}
	}
	return a, nil
}
