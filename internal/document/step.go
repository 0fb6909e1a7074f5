package document

import (
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Step is a step of a task: what srun of the Slurm dialect ran in it. All is as its
// program says.
type Step struct {
	Number uint32 `json:"number"`
	Name   string `json:"name,omitempty"`
	Began  string `json:"began,omitempty"`
	Ended  string `json:"ended,omitempty"` // empty: it runs, or ended with the task
	Code   int32  `json:"code"`
	Signal int32  `json:"signal,omitempty"`
	End    string `json:"end,omitempty"` // cancelled, timeout or node_fail; empty: by itself
	Tasks  uint32 `json:"tasks"`
	CPUs   uint32 `json:"cpus"`
	Nodes  string `json:"nodes,omitempty"`

	UserCPU   float64 `json:"user_cpu_seconds"`
	SystemCPU float64 `json:"system_cpu_seconds"`
	MaxRSS    int64   `json:"max_rss_bytes"`
}

// CPUTime is how long the processes of a step ran, in seconds of one core.
func (s Step) CPUTime() float64 { return s.UserCPU + s.SystemCPU }

// stepsOf returns the documents of steps.
func stepsOf(all []*scheddapi.StepRecord) (list []Step) {
	const second = 1e9
	for _, s := range all {
		list = append(list, Step{Number: s.GetNumber(), Name: s.GetName(), Began: Timestamp(s.GetBegan()),
			Ended: Timestamp(s.GetEnded()), Code: s.GetCode(), Signal: s.GetSignal(), End: s.GetEnd(),
			Tasks: s.GetTasks(), CPUs: s.GetCpus(), Nodes: s.GetNodeList(), UserCPU: float64(s.GetUserCpu()) / second,
			SystemCPU: float64(s.GetSystemCpu()) / second, MaxRSS: s.GetMaxRss()})
	}
	return list
}
