package pbs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qmgr"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// Nodes come into the pool by themselves. qmgr can take one out of use, which is a drain,
// with a comment, which is the drain's reason, and comment on one that is in use.

// pbsNode is a node as qmgr sees it.
type pbsNode struct {
	ad           *classad.Ad
	drain        *ledger.MachineDrain // nil: it is in use
	adminComment string               // of it by administrators, in use or not
}

// nodes reads the machines that there are, and which are drained.
func (s *qmgrSession) nodes() (map[string]*pbsNode, error) {
	texts, err := s.QueryAds(&scheddapi.AdQuery{Type: "Machine"})
	if err != nil {
		return nil, err
	}
	all := map[string]*pbsNode{}
	for _, text := range texts {
		if ad, err := classad.Parse(text); err == nil {
			name, _ := ad.Str(roost.AttrName)
			all[name] = &pbsNode{ad: ad}
		}
	}
	var drains []admin.AttributedObject[ledger.MachineDrain]
	if err := admin.CellObjects(s.Invocation, string(ledger.KindDrain), &drains); err != nil {
		return nil, err
	}
	for _, d := range drains {
		if n := all[d.Object.Node]; n != nil && !d.Object.From.After(s.Now()) {
			n.drain = &d.Object
		}
	}
	comments, _ := admin.NodeComments(s.Invocation) // of a leader that knows none there are none
	for name, text := range comments {
		if n := all[name]; n != nil {
			n.adminComment = text
		}
	}
	return all, nil
}

func (s *qmgrSession) onNodes(cmd qmgr.Command) error {
	all, err := s.nodes()
	if err != nil {
		return err
	}
	names := s.selectedObjects(cmd)
	if s.selectsAll(cmd, names) {
		names = slices.Sorted(maps.Keys(all))
	}
	if cmd.Verb == qmgr.Print && len(cmd.Names) == 0 {
		fmt.Fprint(s.Stdout, qmgr.SectionHeading("Create nodes and set their properties."))
	}
	var last error
	for _, name := range names {
		if found := qsub.MatchingMachines(name, slices.Sorted(maps.Keys(all))); len(found) == 1 {
			name = found[0]
		}
		if err := s.onNode(cmd, name, all[name]); err != nil {
			if last != nil {
				s.printQmgrError(last)
			}
			last = &objectError{name, err}
		}
	}
	return last
}

func (s *qmgrSession) onNode(cmd qmgr.Command, name string, n *pbsNode) error {
	switch {
	case cmd.Verb == qmgr.Create || cmd.Verb == qmgr.Delete:
		return &qmgrError{pbseNotSupported,
			"No support for requested service: nodes come with roost join and go with roost leave"}
	case n == nil:
		return &qmgrError{pbseUnknownNode, "Unknown node"}
	case cmd.Verb == qmgr.Set || cmd.Verb == qmgr.Unset:
		return s.setNode(name, n, cmd.Changes)
	case cmd.Verb == qmgr.Print:
		fmt.Fprint(s.Stdout, qmgr.SectionHeading("Create and define node "+name)+
			qmgr.PrintCommands(qmgr.Node, name, n.set(), cmd.Changes))
		return nil
	}
	fmt.Fprint(s.Stdout, qmgr.ListObject("Node "+name, append([]qmgr.AttributeValue{{Name: "Mom", Text: name},
		{Name: "state", Text: n.state()}}, n.reported()...), cmd.Changes))
	return nil
}

// state is PBS's word for how a node stands.
func (n *pbsNode) state() string {
	free, _ := n.ad.Real(roost.AttrCpus)
	alone, _ := n.ad.Bool(roost.AttrExclusive)
	switch {
	case n.drain != nil:
		return "offline"
	case alone:
		return "job-exclusive"
	case free <= 0:
		return "job-busy"
	}
	return "free"
}

// set are the attributes of a node that somebody has set.
func (n *pbsNode) set() (all []qmgr.AttributeValue) {
	if n.drain != nil {
		all = []qmgr.AttributeValue{{Name: "state", Text: "offline"}}
	}
	if comment := n.comment(); comment != "" {
		all = append(all, qmgr.AttributeValue{Name: "comment", Text: document.PrintableText(comment)})
	}
	return all
}

// comment is why a node is out of service, or else what administrators have set.
func (n *pbsNode) comment() string {
	if n.drain != nil && n.drain.Reason != "" {
		return n.drain.Reason
	}
	return n.adminComment
}

// reported are the attributes that list shows besides the state: resources and comment.
func (n *pbsNode) reported() (all []qmgr.AttributeValue) {
	add := func(resource, text string) {
		all = append(all, qmgr.AttributeValue{Name: "resources_available", Resource: resource, Text: text})
	}
	if arch, ok := n.ad.Str(roost.AttrOpSys); ok {
		add("arch", strings.ToLower(arch))
	}
	if mib, ok := n.ad.Int(roost.AttrTotalMemory); ok {
		add("mem", fmt.Sprintf("%dkb", mib*1024))
	}
	if cores, ok := n.ad.Real(roost.AttrTotalCpus); ok {
		add("ncpus", fmt.Sprint(int64(cores)))
	}
	if gpus, ok := n.ad.Int(roost.AttrTotalGpus); ok && gpus > 0 {
		add("ngpus", fmt.Sprint(gpus))
	}
	if comment := n.comment(); comment != "" {
		all = append(all, qmgr.AttributeValue{Name: "comment", Text: document.PrintableText(comment)})
	}
	return all
}

// setNode takes a node out of use, or into it.
func (s *qmgrSession) setNode(name string, n *pbsNode, changes []qmgr.AttributeChange) error {
	offline, comments, reason := n.drain != nil, false, ""
	if n.drain != nil {
		reason = n.drain.Reason
	}
	for _, c := range changes {
		word := strings.ToLower(c.Value)
		switch {
		case c.Name == "comment":
			if comments, reason = true, c.Value; c.Op == "" {
				reason = ""
			}
		case c.Name == "state" && (c.Op == "" || word == "free" && c.Op == "=" || word == "offline" && c.Op == "-="):
			offline = false
		case c.Name == "state" && word == "offline" && (c.Op == "=" || c.Op == "+="):
			offline = true
		case c.Name == "state":
			return &qmgrError{15014,
				fmt.Sprintf("Illegal attribute or resource value: state is offline or free, and not %q", c.Value)}
		case qmgr.RefuseForeign(qmgr.Node, c.Name) == nil:
			return &qmgrError{15002, "Undefined attribute: " + c.Attribute()}
		default:
			return &qmgrError{15003, "Cannot set attribute, read only or insufficient permission: the node file of " +
				name + " says what it has"}
		}
	}
	switch {
	case offline:
		return s.setObject(ledger.KindDrain, map[string]any{"node": name, "reason": reason})
	case n.drain != nil:
		if err := admin.RemoveObject(s.Invocation, ledger.VerbRemove, ledger.KindDrain, name); err != nil {
			return err
		}
	}
	if comments {
		return admin.SetNodeComment(s.Invocation, name, reason, n.adminComment)
	}
	return nil
}
