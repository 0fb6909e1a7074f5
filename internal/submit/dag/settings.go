package dag

import (
	"slices"
	"strconv"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// placeText is a line for people, with its file where that is another one.
func (p *fileParser) placeText(file uint16, line uint32) string {
	text := strconv.Itoa(int(line))
	if file != p.number {
		text += " of " + p.flow.Files[file]
	}
	return text
}

// directorySettings are the settings that have nothing but a directory.
func (p *flowParser) directorySettings(directory graph.TextID) uint32 {
	if number, ok := p.directories[directory]; ok {
		return number
	}
	number := p.addSettings(NodeSettings{Directory: directory}, true)
	p.directories[directory] = number
	return number
}

func (p *flowParser) addSettings(s NodeSettings, shared bool) uint32 {
	p.flow.Settings, p.flow.sharedRecord = append(p.flow.Settings, s), append(p.flow.sharedRecord, shared)
	return uint32(len(p.flow.Settings) - 1)
}

// targetNodes are the nodes that a command is about.
type targetNodes struct {
	all  bool // ALL_NODES
	node graph.NodeID
}

// target reads the name of a node, or ALL_NODES if the command may be about all of them.
func (p *fileParser) target(mayBeAll bool) (t targetNodes, ok bool) {
	word, ok := p.word("name of a node")
	if !ok {
		return t, false
	}
	if isWord(word, "ALL_NODES") {
		if !mayBeAll {
			p.fail(p.command.displayName()+" is not for ALL_NODES", "Name the nodes, in a line for each.")
		}
		return targetNodes{all: true}, mayBeAll
	}
	id, found := p.flow.Graph.Find(p.fullName(word))
	switch {
	case found:
		return targetNodes{node: id}, true
	case p.scope.splices[string(word)] != nil:
		p.fail(p.command.displayName()+" cannot be applied to a splice", "A splice is no node. Name its nodes, as in "+
			string(word)+"+NODE, write the command into the file of the splice, or use SUBDAG EXTERNAL, which is "+
			"a node.")
	default:
		p.fail("there is no node "+quote(string(word)), p.undefinedCure(word))
	}
	return t, false
}

// maxSearched bounds the nodes whose names are compared with a misspelt one.
const maxSearched = 10_000

// undefinedCure is the remedy for the name of a node that is not defined.
func (p *fileParser) undefinedCure(word []byte) string {
	if g := p.flow.Graph; g.Len() <= maxSearched && p.suggestions > 0 {
		p.suggestions--
		var names []string
		p.scope.nodes(g, func(id graph.NodeID, _ *graph.Node) {
			names = append(names, g.Name(id)[len(p.scope.prefix):])
		})
		for name := range p.scope.splices {
			names = append(names, name)
		}
		slices.Sort(names)
		if near := nearestName(word, names); near != "" {
			return "Did you mean " + near + "?"
		}
	}
	if p.translated != nil {
		return "The nodes of a splice are called SPLICE+NODE; names are case-sensitive."
	}
	return "A JOB line defines a node; names are case-sensitive. The nodes of a splice are called SPLICE+NODE."
}

// appliesTo reports whether the command may be about a node, and says why where not.
func (p *fileParser) appliesTo(t targetNodes) bool {
	if t.all || p.flow.Graph.Node(t.node).Kind != graph.FinalNode {
		return true
	}
	p.fail(p.command.displayName()+" cannot be applied to the FINAL node", "It always runs, once, when all else has "+
		"ended. Remove the line.")
	return false
}

// eachTarget calls f for the nodes that a command is about. ALL_NODES leaves out FINAL
// and SERVICE nodes, and the nodes of splices.
func (p *fileParser) eachTarget(t targetNodes, f func(n *graph.Node)) {
	if !t.all {
		f(p.flow.Graph.Node(t.node))
		return
	}
	p.scope.nodes(p.flow.Graph, func(_ graph.NodeID, n *graph.Node) {
		if n.Kind != graph.FinalNode && n.Kind != graph.ServiceNode {
			f(n)
		}
	})
}

// changeSettings changes the settings of the nodes that a command is about. Nodes with
// the same settings before have the same record afterwards.
func (p *fileParser) changeSettings(t targetNodes, change func(s *NodeSettings)) {
	flow, changed := p.flow, map[uint32]uint32{}
	p.eachTarget(t, func(n *graph.Node) {
		switch number, ok := changed[n.Settings]; {
		case ok:
			n.Settings = number
		case n.Settings == 0 || flow.sharedRecord[n.Settings]:
			settings := flow.Settings[n.Settings]
			change(&settings)
			old := n.Settings
			n.Settings = p.addSettings(settings, t.all)
			changed[old] = n.Settings
		default:
			change(&flow.Settings[n.Settings])
		}
	})
}
