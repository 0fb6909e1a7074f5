package claim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/slurm/hostlist"
)

// slurmVariables are the variables of a job of sbatch that only its machine knows
// (sbatch(1), "OUTPUT ENVIRONMENT VARIABLES"). lines are those of its file of nodes.
func slurmVariables(node string, lines []string, now time.Time, walltime time.Duration, gpus int) []string {
	names := slices.Compact(slices.Clone(lines))
	if len(names) == 0 {
		names = []string{node}
	}
	list := hostlist.Compress(names)
	all := []string{"SLURM_JOB_NODELIST=" + list, "SLURM_NODELIST=" + list, "SLURMD_NODENAME=" + node,
		"SLURM_JOB_START_TIME=" + strconv.FormatInt(now.Unix(), 10), "ENVIRONMENT=BATCH",
		"SLURM_TOPOLOGY_ADDR=" + node, "SLURM_TOPOLOGY_ADDR_PATTERN=node"}
	if walltime > 0 {
		all = append(all, "SLURM_JOB_END_TIME="+strconv.FormatInt(now.Add(walltime).Unix(), 10))
	}
	if gpus > 0 {
		numbers := make([]string, gpus)
		for i := range numbers {
			numbers[i] = strconv.Itoa(i)
		}
		all = append(all, "SLURM_GPUS_ON_NODE="+strconv.Itoa(gpus), "SLURM_JOB_GPUS="+strings.Join(numbers, ","))
	}
	return all
}
