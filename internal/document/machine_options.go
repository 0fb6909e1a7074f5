package document

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// MachineOptions is how a job wants the machine to treat its tasks.
type MachineOptions struct {
	CPUSlack       bool   `json:"cpu_slack"`       // a task may use CPU time beyond its request that is idle
	MemorySlack    bool   `json:"memory_slack"`    // a task may use memory beyond its request that is idle
	Cores          string `json:"cores,omitempty"` // "whole": no other task runs on a task's cores
	ThreadsPerCore int64  `json:"threads_per_core,omitempty"`
	NUMA           string `json:"numa,omitempty"` // "one": all its cores are of one NUMA node
}

// MachineOptionsOf returns the wishes in the ad of a job; nil for one with none.
func MachineOptionsOf(adText string) *MachineOptions {
	ad, err := classad.Parse(adText)
	if err != nil || adText == "" {
		return nil
	}
	w := MachineOptions{CPUSlack: true}
	usual := w
	if slack, ok := ad.Bool(roost.AttrCPUSlack); ok {
		w.CPUSlack = slack
	}
	w.MemorySlack, _ = ad.Bool(roost.AttrMemorySlack)
	w.ThreadsPerCore, _ = ad.Int(roost.AttrCoreThreads)
	if whole, _ := ad.Bool(roost.AttrWholeCores); whole {
		w.Cores = "whole"
	}
	if one, _ := ad.Bool(roost.AttrOneNumaNode); one {
		w.NUMA = "one"
	}
	if w == usual {
		return nil
	}
	return &w
}

// Text describes them in a line.
func (w *MachineOptions) Text() string {
	var parts []string
	if !w.CPUSlack {
		parts = append(parts, "no more CPU time than it asks for")
	}
	if w.MemorySlack {
		parts = append(parts, "idle memory beyond its request")
	}
	if w.Cores != "" {
		parts = append(parts, "physical cores to itself")
	}
	if w.ThreadsPerCore > 0 {
		parts = append(parts, fmt.Sprintf("%d hardware threads of each core", w.ThreadsPerCore))
	}
	if w.NUMA != "" {
		parts = append(parts, "cores of one NUMA node")
	}
	return strings.Join(parts, ", ")
}
