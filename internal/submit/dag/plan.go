package dag

import (
	"path"

	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/plan"
)

// DefaultLimits are those of DAGMan: its knobs DAGMAN_MAX_JOBS_SUBMITTED, _IDLE,
// _PRE_SCRIPTS and _POST_SCRIPTS.
func DefaultLimits() flow.Limits { return flow.Limits{IdleTasks: 1000, Pre: 20, Post: 20} }

// Plan returns the plan of the flow in a directory, which is absolute. It shares the
// graph and the texts with f. It has no jobs yet: they are compiled into its templates,
// and their numbers and values into its nodes.
func (f *Flow) Plan(directory string) *plan.Plan {
	p := &plan.Plan{
		Graph: f.Graph, Texts: f.Texts, Templates: make([]plan.JobTemplate, 1),
		Settings: make([]plan.NodeSettings, 0, len(f.Settings)), Scripts: make([]plan.NodeScript, 0, len(f.Scripts)),
		Categories: make([]plan.Category, 0, len(f.Categories)),
		Final:      f.Final, HasFinal: f.HasFinal, Provisioner: f.Provisioner, HasProvisioner: f.HasProvisioner,
		Limits: DefaultLimits(), Directory: directory,
	}
	for _, name := range f.Files {
		p.Files = append(p.Files, absolutePath(directory, name))
	}
	p.Reports = plan.Reports{JobstateLog: absolutePath(directory, f.JobstateLog), Status: plan.StatusFile{
		Name: absolutePath(directory, f.StatusFile.Name), MinInterval: f.StatusFile.MinInterval,
		IsAlways: f.StatusFile.IsAlways}}
	for _, d := range f.DotFiles[:min(len(f.DotFiles), plan.MaxDotFiles)] {
		p.Reports.Dots = append(p.Reports.Dots, plan.DotFile{Name: absolutePath(directory, d.Name), Source: d.Header,
			IsUpdated: d.IsUpdated, Numbered: !d.Overwrite})
	}
	definition := f.Definition()
	for i, s := range f.Settings {
		one := plan.NodeSettings{Directory: s.Directory, SavePoint: s.SavePoint, Pre: s.Scripts[PreScript],
			Post: s.Scripts[PostScript], Hold: s.Scripts[HoldScript], Rules: definition.Rules[i]}
		if s.HasTolerance {
			one.Tolerance, one.ToleranceIsShare, one.FailsFast = int(s.Tolerance), s.ToleranceIsShare, s.FailsFast
		}
		p.Settings = append(p.Settings, one)
	}
	for _, s := range f.Scripts {
		one := plan.NodeScript{Command: s.Command, Defer: s.DeferStatus.rule(), DeferSeconds: int(s.DeferSeconds),
			DebugFile: s.DebugFile}
		switch s.DebugOutput {
		case StandardOutput:
			one.DebugOutput = plan.DebugStdout
		case StandardError:
			one.DebugOutput = plan.DebugStderr
		case AllOutput:
			one.DebugOutput = plan.DebugStdout | plan.DebugStderr
		}
		p.Scripts = append(p.Scripts, one)
	}
	for _, c := range f.Categories {
		p.Categories = append(p.Categories, plan.Category{Name: c.Name, MaxJobs: c.MaxJobs})
	}
	atLeastOne(&p.Settings)
	atLeastOne(&p.Scripts)
	atLeastOne(&p.Categories)
	return p
}

// absolutePath is a file in a directory. An empty name stays empty.
func absolutePath(directory, name string) string {
	if name == "" || path.IsAbs(name) {
		return name
	}
	return path.Join(directory, name)
}

// atLeastOne gives a table its entry 0.
func atLeastOne[T any](table *[]T) {
	if len(*table) == 0 {
		*table = make([]T, 1)
	}
}
