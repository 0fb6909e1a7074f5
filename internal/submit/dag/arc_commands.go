package dag

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

func parseParent(p *fileParser) { p.parseDependency(false) }

func parseWeak(p *fileParser) {
	word, ok := p.lex.next()
	if !ok || !isWord(word, "PARENT") {
		p.failSyntax("WEAK is not followed by PARENT")
		return
	}
	p.parseDependency(true)
}

// parseDependency reads PARENT a… CHILD b….
func (p *fileParser) parseDependency(weak bool) {
	p.parents, p.nodes = p.parents[:0], p.nodes[:0]
	var undefined [2][]string // parents and children
	side, count := 0, [2]int{}
	for {
		word, more := p.lex.next()
		switch {
		case !more && side == 0 && count[0] == 0:
			p.failSyntax("PARENT has no name of a node")
			return
		case !more && side == 0:
			p.failSyntax("the word CHILD is missing behind the parents")
			return
		case !more && count[1] == 0:
			p.failSyntax("CHILD has no name of a node")
			return
		case !more:
			p.depend(undefined, weak)
			return
		case isWord(word, "CHILD") && count[0] == 0:
			p.failSyntax("PARENT has no name of a node")
			return
		case isWord(word, "CHILD") && side == 1:
			p.fail("there are two words CHILD", "A line has one. Write another line for what the children precede: "+
				p.command.syntax)
			return
		case isWord(word, "CHILD"):
			side = 1
		default:
			count[side]++
			if !p.addEnds(word, side) {
				undefined[side] = append(undefined[side], string(word))
			}
		}
	}
}

// addEnds adds what a name in a dependency is: a node, or the first or last nodes of a
// splice. It returns false if it is neither.
func (p *fileParser) addEnds(word []byte, side int) bool {
	ends := &p.parents
	if side == 1 {
		ends = &p.nodes
	}
	g := p.flow.Graph
	if id, ok := g.Find(p.fullName(word)); ok {
		if n := g.Node(id); !n.Kind.HasArcs() {
			p.fail("a "+n.Kind.String()+" node cannot have dependencies", "The place of "+quote(string(word))+
				" in the order is fixed by its command. Remove it from this line, or define it with JOB.")
			return true
		}
		*ends = append(*ends, id)
		return true
	}
	splice := p.scope.splices[string(word)]
	if splice == nil {
		return false
	}
	list := splice.terminal
	if side == 1 {
		list = splice.initial
	}
	if len(list) == 0 && !splice.isBroken {
		p.warn("the splice "+quote(string(word))+" has no nodes", "This line does not depend on it.")
	}
	*ends = append(*ends, list...)
	return true
}

// depend adds the arcs of a line.
func (p *fileParser) depend(undefined [2][]string, weak bool) {
	if len(undefined[0])+len(undefined[1]) > 0 {
		p.failUndefined(undefined)
		return
	}
	p.parents, p.nodes = withoutRepeats(p.parents), withoutRepeats(p.nodes)
	if err := p.flow.Graph.Depend(p.parents, p.nodes, weak, !p.opts.NoJoins); err != nil {
		p.fail("this dependency cannot be added", "The flow is too big: "+err.Error()+".")
		p.full = true
	}
}

func withoutRepeats(list []graph.NodeID) []graph.NodeID {
	if len(list) < 2 {
		return list
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// failUndefined reports the names of a dependency that are not defined.
func (p *fileParser) failUndefined(undefined [2][]string) {
	const most = 10
	var parts []string
	for side, what := range [2]string{"parents: ", "children: "} {
		names := undefined[side]
		if len(names) == 0 {
			continue
		}
		text := what
		for i, name := range names[:min(len(names), most)] {
			if i > 0 {
				text += ", "
			}
			text += quote(name)
		}
		if len(names) > most {
			text += " and more"
		}
		parts = append(parts, text)
	}
	all := slices.Concat(undefined[0], undefined[1])
	p.mark(all[0])
	p.fail("these nodes are not defined, "+strings.Join(parts, "; "), p.undefinedCure([]byte(all[0])))
}

// mark makes a word of the line the one that the next diagnostic is about.
func (p *fileParser) mark(word string) {
	for at := 0; ; {
		i := strings.Index(string(p.line[at:]), word)
		if i < 0 {
			return
		}
		start, end := at+i, at+i+len(word)
		if (start == 0 || isBlank(p.line[start-1])) && (end == len(p.line) || isBlank(p.line[end])) {
			p.lex.start, p.lex.end = start, end
			return
		}
		at = end
	}
}
