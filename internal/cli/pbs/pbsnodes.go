package pbs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/nodes"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func pbsnodesCommand() *frame.Command {
	return &frame.Command{
		Name: "pbsnodes", Group: frame.GroupPBS, Summary: "list machines, and take them out of service, as PBS does",
		RawArgs: true, MaxOperands: -1, Run: runPbsnodes,
		Synopsis: "-a [-v] [-x] [-S [-j] [-L]] [-F FORMAT] [-D DELIMITER] | [-v | -H] [-S [-j] [-L]] [-F FORMAT] " +
			"[-D DELIMITER] NODE… | -l | [-o | -r] [-C COMMENT] NODE…",
		Description: "Lists machines of the pool in the layouts of OpenPBS, or has one get no more jobs, which " +
			"an administrator may, or one who was given drains.",
		Examples: []frame.Example{
			{Line: "pbsnodes -a", Description: "everything about all machines"},
			{Line: "pbsnodes -aSj", Description: "a line each, with what is free and the jobs there"},
			{Line: "pbsnodes -aSj -F json", Description: "the same for a program"},
			{Line: "pbsnodes -l", Description: "those that are down or out of service, and why"},
			{Line: "pbsnodes -o -C 'new memory' n7", Description: "no more jobs for n7"},
			{Line: "pbsnodes -r n7", Description: "n7 is well again"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("a", "", "all machines"),
			pbsframe.ShortFlag("A", "NOTE", "the same as -C, behind what was said already, as in Torque"),
			pbsframe.ShortFlag("c", "", "the same as -r"),
			pbsframe.ShortFlag("C", "COMMENT",
				"why they are out of service; alone it changes what was said, also of machines that are in service"),
			pbsframe.ShortFlag("D", "DELIMITER", "what stands between the attributes of -F dsv, | unless given"),
			pbsframe.ShortFlag("F", "FORMAT", "json, dsv for one line each, or default"),
			pbsframe.ShortFlag("H", "", "the resource units of the machines that are named"),
			pbsframe.ShortFlag("j", "", "with -S: the jobs, and what is free"),
			pbsframe.ShortFlag("l", "",
				"only machines that are down or out of service; for who speaks Torque those in "+
					"a state that may be named behind it"),
			pbsframe.ShortFlag("L", "", "with -S: columns as wide as what is in them"),
			pbsframe.ShortFlag("n", "", "with -l: with the comments, which only Torque leaves out without it"),
			pbsframe.ShortFlag("N", "NOTE", "the same as -C, as in Torque; n for none"),
			pbsframe.ShortFlag("o", "", "take machines out of service: what runs there may end"),
			pbsframe.ShortFlag("q", "", "say nothing about what goes wrong"),
			pbsframe.ShortFlag("r", "", "put machines into service again"),
			pbsframe.ShortFlag("S", "", "a line each"),
			pbsframe.ShortFlag("s", "SERVER", "ask the schedd of this node, where you are logged in"),
			pbsframe.ShortFlag("v", "", "list the resource units that machines are cut into, where they are cut"),
			pbsframe.ShortFlag("x", "", "in the XML of Torque"),
		},
	}
}

func runPbsnodes(c *frame.Invocation) error {
	if len(c.Args) == 1 && c.Args[0] == "--version" { // Toil knows by this word which options qstat has
		if d, err := pbsframe.Dialect(c); err == nil && d == roost.Torque {
			fmt.Fprintf(c.Stderr, "Version: %s\n", pbsframe.RoostVersion())
			return nil
		}
		fmt.Fprintf(c.Stdout, "pbs_version = %s\n", pbsframe.Version())
		return nil
	}
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	given, err := optionsInOrder(c.Args, nodes.OptionSpec)
	if err != nil {
		fmt.Fprintf(c.Stderr, "pbsnodes: %v\n%s", err, nodes.Usage)
		return frame.ExitError(1)
	}
	dialect, err := pbsframe.Dialect(c)
	if err != nil {
		fmt.Fprintf(c.Stderr, "pbsnodes: %s\n", strings.Join(strings.Fields(frame.ErrorText(err)), " "))
		return frame.ExitError(1)
	}
	o, ok := nodes.ParseCommandLine(given, dialect)
	if !ok {
		if usage := map[roost.PBSDialect]string{roost.OpenPBS: nodes.Usage,
			roost.Torque: nodes.TorqueUsage}[dialect]; !o.Quiet {
			fmt.Fprint(c.Stderr, usage)
		}
		return frame.ExitError(1)
	}
	if o.Server != "" {
		c.ScheddNode = o.Server
	}
	p := &nodeLister{Invocation: c, CommandOptions: &o}
	switch o.Action {
	case nodes.MarkOffline, nodes.ClearOffline, nodes.SetComment:
		return p.changeNodes()
	}
	return p.list()
}

// optionsInOrder is getopt where the order of options counts: options and operands as
// they stand.
func optionsInOrder(args []string, spec string) (list []nodes.GivenOption, err error) {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		if word == "--" {
			for _, w := range args {
				list = append(list, nodes.GivenOption{Value: w})
			}
			return list, nil
		}
		if len(word) < 2 || word[0] != '-' {
			list = append(list, nodes.GivenOption{Value: word})
			continue
		}
		for i := 1; i < len(word); i++ {
			at := strings.IndexByte(spec, word[i])
			if at < 0 || word[i] == ':' {
				return list, fmt.Errorf("invalid option -- '%c'", word[i])
			}
			if at+1 == len(spec) || spec[at+1] != ':' {
				list = append(list, nodes.GivenOption{Letter: word[i]})
				continue
			}
			value := word[i+1:]
			if value == "" {
				if len(args) == 0 {
					return list, fmt.Errorf("option requires an argument -- '%c'", word[i])
				}
				value, args = args[0], args[1:]
			}
			list = append(list, nodes.GivenOption{Letter: word[i], Value: value})
			break
		}
	}
	return list, nil
}

// nodeLister is one call of pbsnodes.
type nodeLister struct {
	*frame.Invocation
	*nodes.CommandOptions
	allNodes []*poolNode
}

// printNodeError says what goes wrong, unless nothing is to be said.
func (p *nodeLister) printNodeError(format string, args ...any) {
	if !p.Quiet {
		fmt.Fprintf(p.Stderr, format+"\n", args...)
	}
}

// list shows nodes.
func (p *nodeLister) list() error {
	var err error
	if p.allNodes, err = poolNodes(p.Invocation, p.Action != nodes.ListUnavailable || p.Wanted != ""); err != nil {
		p.printNodeError("pbsnodes: %s", strings.Join(strings.Fields(frame.ErrorText(err)), " "))
		return frame.ExitError(1)
	}
	if len(p.allNodes) == 0 && len(p.Nodes) == 0 {
		p.printNodeError("pbsnodes: No nodes found")
		return nil
	}
	out := bufio.NewWriter(p.Stdout)
	code := 0
	if p.Action == nodes.ListUnavailable {
		p.listUnavailable(out)
	} else if code, err = p.print(nodes.NewPrinter(out, p.CommandOptions, p.header())); err != nil {
		return frame.KindErrorf(roost.NoOutput, "write: %v", err)
	}
	if err := out.Flush(); err != nil {
		return frame.KindErrorf(roost.NoOutput, "write: %v", err)
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

// listUnavailable is -l. In Torque it may name nodes, and has comments with -n only.
func (p *nodeLister) listUnavailable(to io.Writer) {
	for _, n := range p.allNodes {
		switch {
		case !p.IsWanted(&n.Node), len(p.Nodes) > 0 && !slices.ContainsFunc(p.Nodes, func(name string) bool {
			return p.find(name) == n
		}):
		case p.Format != nodes.Torque:
			fmt.Fprintf(to, "%-20s %s %s\n", n.Name, n.State(), document.PrintableText(n.Comment))
		case p.Notes:
			fmt.Fprintf(to, "%-20.20s %-26.26s %s\n", n.Name, n.TorqueState(), document.PrintableText(n.Comment))
		default:
			fmt.Fprintf(to, "%-20.20s %s\n", n.Name, n.TorqueState())
		}
	}
}

// header is what JSON begins with. A schedd that has told of nodes and is gone since has
// no name.
func (p *nodeLister) header() (h nodes.JSONHeader) {
	h.Now, h.Version = p.Now(), pbsframe.Version()
	if p.Format == nodes.JSON {
		h.Server, _ = p.ServerName()
	}
	return h
}

// print prints the nodes that are wanted, and returns the exit status.
func (p *nodeLister) print(to nodes.NodePrinter) (code int, err error) {
	one := func(n *poolNode) error {
		if p.Vnodes || p.Action == nodes.ShowVnodes {
			for _, part := range n.vnodes() {
				if err := to.Print(part); err != nil {
					return err
				}
			}
			return nil
		}
		return to.Print(&n.Node)
	}
	if p.Action == nodes.ShowAll {
		for _, n := range p.allNodes {
			if err := one(n); err != nil {
				return 0, err
			}
		}
		return 0, to.Close()
	}
	for _, name := range p.Nodes {
		if n := p.find(name); n != nil {
			err = one(n)
		} else if v := p.findVnode(name); v != nil && p.Vnodes {
			err = to.Print(v)
		} else {
			var printed bool
			if printed, err = to.Unknown(name); !printed {
				p.printNodeError("Node: %s,  Error: Unknown node ", name)
				code = 1
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return code, to.Close()
}

// find is the node of that name, or the only one that is called so up to the first point.
func (p *nodeLister) find(name string) *poolNode {
	all := make([]string, len(p.allNodes))
	for i, n := range p.allNodes {
		all[i] = n.Name
	}
	found := qsub.MatchingMachines(name, all)
	if len(found) != 1 {
		return nil
	}
	return p.allNodes[slices.Index(all, found[0])]
}

func (p *nodeLister) findVnode(name string) *nodes.Node {
	host, _, _ := strings.Cut(name, "[")
	if n := p.find(host); n != nil {
		for _, v := range n.vnodes() {
			if v.Name == name {
				return v
			}
		}
	}
	return nil
}

// changeNodes takes nodes out of service, puts them back, or changes the comment of those
// that are out.
func (p *nodeLister) changeNodes() error {
	var err error
	if p.allNodes, err = poolNodes(p.Invocation, false); err != nil {
		p.printNodeError("pbsnodes: %s", strings.Join(strings.Fields(frame.ErrorText(err)), " "))
		return frame.ExitError(1)
	}
	code := 0
	for _, name := range p.Nodes {
		if name == "" {
			continue
		}
		n := p.find(name)
		if n == nil {
			p.printNodeError("Error marking node %s - Unknown node ", name)
			code = 1
			continue
		}
		if err := p.changeNode(n); err != nil {
			text := strings.Join(strings.Fields(frame.ErrorText(err)), " ")
			if errors.Is(frame.DecodeError(err), roost.PermissionDenied) {
				text = "Unauthorized Request: " + text
			}
			p.printNodeError("Error marking node %s - %s", name, text)
			code = 1
		}
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

func (p *nodeLister) changeNode(n *poolNode) error {
	if p.Action == nodes.ClearOffline {
		if !n.drained {
			return nil
		}
		return admin.RemoveObject(p.Invocation, ledger.VerbRemove, ledger.KindDrain, n.Name)
	}
	if p.Action == nodes.SetComment && !n.drained { // it is in service, and stays there
		text := p.Comment
		if p.Appended && n.adminComment != "" && text != "" {
			text = n.adminComment + ", " + text
		}
		return admin.SetNodeComment(p.Invocation, n.Name, text, n.adminComment)
	}
	w := admin.ObjectPatch{"node": n.Name}
	if p.Commented {
		w["reason"] = p.Comment
		if p.Appended && n.Comment != "" {
			w["reason"] = n.Comment + ", " + p.Comment
		}
	}
	if p.Action == nodes.MarkOffline {
		w["from"], w["until"] = nil, nil // now, until somebody says otherwise
	}
	_, err := p.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbSet), Kind: string(ledger.KindDrain),
		Object: w.JSONText()})
	return err
}
