package flows

import (
	"io"
	"path"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit/flowplan"
)

// translate returns a file in HCL as a DAG file.
func (f userFiles) translate(name string, in io.Reader) (io.ReadCloser, error) {
	t := f.flows[path.Clean(name)]
	if t == nil {
		src, err := io.ReadAll(io.LimitReader(in, roost.MaxJobFileBytes+1))
		if err != nil {
			return nil, err
		}
		opts, err := f.c.SubmitOptions()
		if err != nil {
			return nil, err
		}
		opts.Filename = name
		t = flowplan.TranslateFlow(src, opts)
		f.flows[path.Clean(name)] = t
	}
	return t.Open(), nil
}

// applySettings sets what a file says of the whole flow, where the command line does not.
func (f userFiles) applySettings(o *flowOptions, name string) {
	t := f.flows[path.Clean(name)]
	if t == nil {
		return
	}
	s := t.Settings
	for _, one := range []struct {
		flag string
		from *int
		to   *int
	}{{"max-jobs", s.Jobs, &o.limits.Jobs}, {"max-idle", s.IdleTasks, &o.limits.IdleTasks},
		{"max-pre", s.Pre, &o.limits.Pre}, {"max-post", s.Post, &o.limits.Post}} {
		if one.from != nil && !o.set[one.flag] {
			*one.to = *one.from
		}
	}
	if s.DepthFirst != nil && !o.set["depth-first"] {
		o.depthFirst = *s.DepthFirst
	}
	if s.AlwaysRunPost != nil && !o.set["always-run-post"] {
		o.alwaysRunPost = *s.AlwaysRunPost
	}
	if o.name == "" {
		o.name = t.Name
	}
}
