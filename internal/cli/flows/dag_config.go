package flows

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/submit/dag"
)

// applyConfig has the CONFIG file of a flow count where the command line says nothing.
func applyConfig(c *frame.Invocation, read *dag.Flow, o *flowOptions) error {
	name := read.ConfigFile
	switch {
	case name != "" && o.config != "" && c.AbsolutePath(name) != c.AbsolutePath(o.config):
		return frame.KindErrorf(roost.Invalid, "there are two files with settings, -config %s and CONFIG %s; a flow "+
			"has one", o.config, name)
	case name == "":
		name = o.config
	}
	if name == "" {
		return nil
	}
	config, err := dag.ReadConfig(newUserFiles(c), name)
	if err != nil {
		return frame.KindErrorf(roost.Invalid, "CONFIG: %v", err)
	}
	for _, text := range config.Warnings {
		fmt.Fprintf(c.Stderr, "roost: warning: %s\n", document.PrintableText(text))
	}
	for _, n := range []struct {
		flag string
		to   *int
		from *int
	}{{"max-jobs", &o.limits.Jobs, config.MaxJobs}, {"max-idle", &o.limits.IdleTasks, config.MaxIdle},
		{"max-pre", &o.limits.Pre, config.MaxPre}, {"max-post", &o.limits.Post, config.MaxPost}} {
		if n.from != nil && !o.set[n.flag] {
			*n.to = min(*n.from, roost.MaxTasks)
		}
	}
	for _, b := range []struct {
		flag string
		to   *bool
		from *bool
	}{{"always-run-post", &o.alwaysRunPost, config.AlwaysRunPost}, {"depth-first", &o.depthFirst, config.DepthFirst},
		{"", &o.appendVariables, config.AppendVariables}} {
		if b.from != nil && !o.set[b.flag] {
			*b.to = *b.from
		}
	}
	if config.AutoRescue != nil && !*config.AutoRescue && o.rescue < 0 {
		o.rescue = 0
	}
	return nil
}
