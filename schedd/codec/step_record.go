package codec

import (
	"strings"
	"unicode/utf8"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
)

// Bounds of what a node says of the steps of an attempt: their number, and the bytes of a
// text.
const (
	MaxSteps    = 1000
	maxStepText = 256
)

// SanitizeSteps returns those of some steps that can be. They are bounded, each number is
// there once, texts can be shown, and amounts are not negative.
func SanitizeSteps(all []*wire.StepRecord) (list []*wire.StepRecord) {
	seen := map[uint32]bool{}
	for _, s := range all[:min(len(all), MaxSteps)] {
		if s == nil || seen[s.GetNumber()] {
			continue
		}
		seen[s.GetNumber()] = true
		list = append(list, &wire.StepRecord{Number: s.GetNumber(), Name: stepText(s.GetName()),
			Began: max(s.GetBegan(), 0), Ended: max(s.GetEnded(), 0), Code: s.GetCode() & 0xffff,
			Signal: s.GetSignal() & 0x7f, End: stepText(s.GetEnd()), Tasks: s.GetTasks(), Cpus: s.GetCpus(),
			Nodes: s.GetNodes(), NodeList: stepText(s.GetNodeList()), UserCpu: max(s.GetUserCpu(), 0),
			SystemCpu: max(s.GetSystemCpu(), 0), MaxRss: max(s.GetMaxRss(), 0), MaxRssTask: s.GetMaxRssTask(),
			MaxRssNode: stepText(s.GetMaxRssNode()), MinCpu: max(s.GetMinCpu(), 0), MinCpuTask: s.GetMinCpuTask(),
			MinCpuNode: stepText(s.GetMinCpuNode()), SumRss: max(s.GetSumRss(), 0)})
	}
	return list
}

// stepText is a text as it can be shown, or nothing.
func stepText(text string) string {
	if len(text) > maxStepText || !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) {
		return ""
	}
	return text
}

// queueSteps turns the wire's form of steps into the queue's.
func queueSteps(all []*wire.StepRecord) *eventlog.Steps {
	if len(all) == 0 {
		return nil
	}
	steps := &eventlog.Steps{}
	for _, s := range SanitizeSteps(all) {
		steps.List = append(steps.List, eventlog.Step{
			Number: s.Number, Name: s.Name, Began: s.Began, Ended: s.Ended, Code: s.Code, Signal: s.Signal, End: s.End,
			Tasks: s.Tasks, CPUs: s.Cpus, Nodes: s.Nodes, NodeList: s.NodeList, User: s.UserCpu, System: s.SystemCpu,
			SumRSS: s.SumRss,
			MaxRSS: eventlog.PeakOfTask{Value: s.MaxRss, Task: s.MaxRssTask, Node: s.MaxRssNode},
			MinCPU: eventlog.PeakOfTask{Value: s.MinCpu, Task: s.MinCpuTask, Node: s.MinCpuNode},
		})
	}
	return steps
}

// wireSteps is the way back.
func wireSteps(all *eventlog.Steps) (list []*wire.StepRecord) {
	if all == nil {
		return nil
	}
	for i := range all.List {
		s := &all.List[i]
		list = append(list, &wire.StepRecord{Number: s.Number, Name: s.Name, Began: s.Began, Ended: s.Ended,
			Code: s.Code, Signal: s.Signal, End: s.End, Tasks: s.Tasks, Cpus: s.CPUs, Nodes: s.Nodes,
			NodeList: s.NodeList, UserCpu: s.User, SystemCpu: s.System, SumRss: s.SumRSS, MaxRss: s.MaxRSS.Value,
			MaxRssTask: s.MaxRSS.Task, MaxRssNode: s.MaxRSS.Node, MinCpu: s.MinCPU.Value, MinCpuTask: s.MinCPU.Task,
			MinCpuNode: s.MinCPU.Node})
	}
	return list
}
