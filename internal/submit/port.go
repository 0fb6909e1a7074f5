package submit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// portSettings are the settings of a port block.
var portSettings = []string{"static", "listen", "host"}

const (
	portExample  = "port \"http\" {}"
	portNameHint = "A name has small letters, digits and single hyphens, begins with a letter, and has at most 15 " +
		"characters (RFC 6335): " + portExample + "."
	staticHint = "It is the number that the port has on every machine: static = 8080. Without it the machine gives " +
		"each task a free one."
	hostHint = "Write \"*\" for all addresses of the machine, or \"localhost\" for processes on the machine only. " +
		"Without it the port is on the address by which other nodes reach the machine."
	portColumn = "port." // begins what stands for a port's number in a text, as for a column
)

// readPorts reads the port blocks. It comes before whatever may refer to ports.
func (b *jobBuilder) readPorts() {
	lines := map[uint16]int{}
	for _, block := range b.body.Blocks {
		if block.Type == "port" {
			b.readPort(block, lines)
		}
	}
	if port := b.innerBlock("port"); port != nil && !b.isService() {
		b.reportProblem(port.TypeRange, "a port is for a service",
			"Add a block "+serviceExample+" to the job, or remove the port.")
		return
	}
	if len(b.ports) > roost.MaxPorts {
		b.reportProblem(b.ports[roost.MaxPorts].block.DefRange(), "there are too many ports",
			fmt.Sprintf("A task has at most %d. Let one port serve several purposes, or make several jobs.",
				roost.MaxPorts))
		return
	}
	list := make([]classad.Value, len(b.ports))
	for i, p := range b.ports {
		ad := classad.New()
		ad.SetString(roost.AttrName, p.Name)
		if p.Static != 0 {
			ad.SetInt(roost.AttrPortStatic, int64(p.Static))
		}
		if p.Listen {
			ad.SetBool(roost.AttrPortListen, true)
		}
		if p.Host != roost.PortHostMachine {
			ad.SetString(roost.AttrPortHost, p.Host)
		}
		list[i] = classad.AdOf(ad)
	}
	if len(list) > 0 {
		b.ad.SetValue(roost.AttrPorts, classad.ListValue(list...))
	}
}

// portBlock is a port with the block that asks for it.
type portBlock struct {
	roost.PortRequest
	block *hclsyntax.Block
}

// readPort reads one block. lines has the lines of the numbers so far.
func (b *jobBuilder) readPort(block *hclsyntax.Block, lines map[uint16]int) {
	name, ok := b.portName(block)
	if !ok || !b.parser.refuseUnknown(block, "a port", portSettings, nil) {
		return
	}
	inner := b.inBlock(block)
	p := portBlock{roost.PortRequest{Name: name}, block}
	if n, ok := inner.constantInt("static", 1, 1<<16-1, staticHint); ok {
		p.Static = uint16(n)
		at := block.Body.Attributes["static"].Expr.Range()
		line, twice := lines[p.Static]
		switch {
		case twice:
			b.reportProblem(at, fmt.Sprintf("two ports have the number %d", n),
				fmt.Sprintf("The other one is on line %d. A task can listen on it only once: give one of them another "+
					"number.", line))
		case n >= roost.FirstDynamicPort && n <= roost.LastDynamicPort:
			warnOf(b.parser, at, fmt.Sprintf("most machines give the number %d to other ports", n),
				fmt.Sprintf("They give those from %d to %d to ports that name none, unless their node files have "+
					"another range. The job runs only on machines with another range, and waits if there are none: "+
					"choose another number, or remove static.", roost.FirstDynamicPort, roost.LastDynamicPort))
		}
		lines[p.Static] = at.Start.Line
	}
	p.Listen, _ = inner.constantBool("listen")
	if host, at, ok := inner.constantText("host", hostHint); ok {
		if p.Host = host; !slices.Contains([]string{roost.PortHostAny, roost.PortHostLocal}, host) {
			b.reportProblem(at, fmt.Sprintf("a port cannot be on %q", truncateText(host)), hostHint)
		}
	}
	b.ports = append(b.ports, p)
}

// portName returns the name of a port, if it is one and no other port has it.
func (b *jobBuilder) portName(block *hclsyntax.Block) (string, bool) {
	if len(block.Labels) != 1 {
		at := block.TypeRange
		if len(block.Labels) > 1 {
			at = block.LabelRanges[1]
		}
		b.reportProblem(at, "a port has one name", "Write it in quotes behind the word: "+portExample+".")
		return "", false
	}
	name, at := block.Labels[0], block.LabelRanges[0]
	if err := roost.CheckPortName(name); err != nil {
		b.reportProblem(at, fmt.Sprintf("%q cannot be the name of a port", truncateText(name)),
			portNameHint)
		return "", false
	}
	for _, other := range b.ports {
		if other.Name == name {
			b.reportProblem(at, fmt.Sprintf("there are two ports called %q", name),
				fmt.Sprintf("The other one is on line %d. Give one of them another name.",
					other.block.DefRange().Start.Line))
			return "", false
		}
	}
	return name, true
}

// refuseSavedPorts reports checkpoint images of tasks with sockets. Beside the socket
// that the machine still has, a restored task could not listen again.
func (b *jobBuilder) refuseSavedPorts(checkpoint *hclsyntax.Block) {
	for _, p := range b.ports {
		if p.Listen {
			b.reportProblem(checkpoint.TypeRange,
				fmt.Sprintf("a task cannot be saved with the socket of port %q", p.Name),
				"An image of its processes cannot be restored beside the socket that the machine holds for it. Set "+
					"method = \"self\" if the program saves its own state, or remove the checkpoint block or listen.")
			return
		}
	}
}

// portReference handles a plain port.NAME.
func (b taskSetReader) portReference(e *hclsyntax.ScopeTraversalExpr) (taskText, bool) {
	name, named := traversalStepName(e.Traversal, 1)
	if !named || len(e.Traversal) != 2 {
		b.reportProblem(e.Range(), "a port is referred to by its name alone", "Write port.NAME, as in "+
			"\"--listen=:${port.http}\".")
		return taskText{}, false
	}
	names := make([]string, len(b.ports))
	for i, p := range b.ports {
		if names[i] = p.Name; p.Name == name {
			return taskText{[]textPiece{{column: portColumn + name}}, e.Range()}, true
		}
	}
	b.reportProblem(e.Range(), fmt.Sprintf("there is no port %q in this job", truncateText(name)),
		fmt.Sprintf("Ask for it: port %q {}.", truncateText(name))+nearestHint(name, names))
	return taskText{}, false
}

// refuseComputedPort reports a port in a computation: its number is known only on the
// machine.
func (b taskSetReader) refuseComputedPort(expr hclsyntax.Expression) bool {
	for _, t := range b.parser.freeReferences(expr) {
		if t.RootName() == "port" {
			b.reportProblem(t.SourceRange(), "a port cannot be computed with",
				"The machine of a task chooses its number. It can be part of a text: \"--listen=:${port.http}\".")
			return true
		}
	}
	return false
}

// refusePort reports a port in a text that must be known before the task has a machine.
func (b taskSetReader) refusePort(t taskText, what string) bool {
	if !slices.ContainsFunc(t.pieces, func(p textPiece) bool { return strings.HasPrefix(p.column, portColumn) }) {
		return false
	}
	b.reportProblem(t.sourceRange, "a port cannot be part of the name of "+what,
		"The machine of a task chooses its number. It can be used in arguments and environment.")
	return true
}
