package dag

import "github.com/roost-batch/roost/schedd/flow"

// Definition returns what package flow needs of a flow in order to run it. It shares the
// graph with f.
func (f *Flow) Definition() *flow.Definition {
	d := &flow.Definition{
		Graph: f.Graph, Rules: make([]flow.NodeRules, 0, len(f.Settings)),
		Categories: make([]int, 0, len(f.Categories)),
		Final:      f.Final, HasFinal: f.HasFinal, Provisioner: f.Provisioner, HasProvisioner: f.HasProvisioner,
	}
	for _, s := range f.Settings {
		d.Rules = append(d.Rules, flow.NodeRules{
			HasPre: s.Scripts[PreScript] != 0, HasPost: s.Scripts[PostScript] != 0,
			PreSkip: s.PreSkip.rule(), UnlessExit: s.UnlessExit.rule(),
			AbortOn: s.AbortOn.rule(), AbortReturn: s.AbortReturn.rule(),
		})
	}
	for _, c := range f.Categories {
		d.Categories = append(d.Categories, c.MaxJobs)
	}
	return d
}

func (c OptionalCode) rule() flow.ExitRule { return flow.ExitRule{Code: int(c.Code), IsSet: c.IsSet} }
