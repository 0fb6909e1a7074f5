package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// ShowFlow shows a flow and nodes of it.
func ShowFlow(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(c)
	if err != nil {
		return nil, err
	}
	query := c.Request.URL.Query()
	states := slices.DeleteFunc(query["state"], func(s string) bool { return s == "" }) // of the form: any
	for _, s := range states {
		if !slices.Contains(document.FlowStates(), s) {
			return nil, fmt.Errorf("state: %w: %q is none of %s", roost.Invalid, document.PrintableText(s),
				strings.Join(document.FlowStates(), ", "))
		}
	}
	status, err := findJob(c, id, false)
	switch {
	case err != nil:
		return nil, err
	case status.GetFlow() == nil:
		return nil, fmt.Errorf("job %s: %w: it is no flow; roost flow submit makes flows", id, roost.NotFound)
	}
	f := document.FlowNodes{Version: document.Version, Job: document.JobOf(status, false), Nodes: []document.FlowNode{},
		States: states}
	req := &wire.FlowNodesRequest{Id: status.GetId(), States: states, Names: query["node"]}
	err = ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		ctx, cancel := context.WithCancel(ctx) // what is left of a large flow is not sent
		defer cancel()
		stream, err := s.ListFlowNodes(ctx, req)
		return drain(stream, err, func(m *wire.FlowNodes) error {
			for _, n := range m.GetNodes() {
				if f.Cut = len(f.Nodes) >= limit; f.Cut {
					return errEnough
				}
				f.Nodes = append(f.Nodes, document.FlowNodeOf(n))
			}
			return nil
		})
	})
	if f.Cut {
		err = nil
	}
	return f, err
}
