package dag

import (
	"bytes"
	"io"
	"math"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

func parseJob(p *fileParser)         { p.parseNode(graph.JobNode) }
func parseFinal(p *fileParser)       { p.parseNode(graph.FinalNode) }
func parseProvisioner(p *fileParser) { p.parseNode(graph.ProvisionerNode) }
func parseService(p *fileParser)     { p.parseNode(graph.ServiceNode) }

func parseSubdag(p *fileParser) {
	word, ok := p.lex.next()
	if !ok || !isWord(word, "EXTERNAL") {
		p.failSyntax("SUBDAG is not followed by EXTERNAL")
		return
	}
	p.parseNode(graph.SubflowNode)
}

// parseNode reads a command that defines a node. The node is defined as soon as its name
// is known: a mistake behind it is no reason to report all lines that name the node.
func (p *fileParser) parseNode(kind graph.NodeKind) {
	node := &graph.Node{} // for the rest of the line where there is none
	name, ok := p.word("name of a node")
	if !ok {
		return
	}
	if p.isNodeName(name) {
		if id, ok := p.defineNode(name, kind); ok {
			node = p.flow.Graph.Node(id)
		}
	}
	what := "file with a submit description"
	if kind == graph.SubflowNode {
		what = "DAG file"
	}
	word, ok := p.word(what)
	if !ok {
		return
	}
	if end, isBlock := blockEnd(word); isBlock && kind != graph.SubflowNode {
		text, first, ok := p.parseBlock(end)
		if !ok {
			return
		}
		node.Description = p.addInline(InlineDescription{Text: text, File: p.number, Line: first}) | inlineBit
	} else {
		node.Description = uint32(p.textID(word))
	}
	p.parseNodeOptions(node, kind)
}

// parseNodeOptions reads DIR, NOOP and DONE.
func (p *fileParser) parseNodeOptions(node *graph.Node, kind graph.NodeKind) {
	directory := p.scope.directory
	for {
		word, more := p.lex.next()
		switch {
		case !more:
			if directory != "" {
				node.Settings = p.directorySettings(p.textID([]byte(directory)))
			}
			return
		case isWord(word, "NOOP"):
			node.Flags |= graph.NoopFlag
		case isWord(word, "DONE"):
			if !kind.HasArcs() {
				p.warn("DONE has no effect on a "+kind.String()+" node", "It runs whatever else is done.")
				break
			}
			node.Flags |= graph.DoneFlag
		case isWord(word, "DIR"):
			word, ok := p.word("directory behind DIR")
			if !ok {
				return
			}
			directory = p.scope.filePath(string(word))
		default:
			p.failSyntax("%s is one word too many", quote(string(word)))
			return
		}
	}
}

// isNodeName reports whether a node may have this name, and says why where it may not.
func (p *fileParser) isNodeName(name []byte) bool {
	switch {
	case isWord(name, "PARENT"), isWord(name, "CHILD"), isWord(name, "ALL_NODES"):
		p.fail("a node cannot be called "+quote(string(name)), "PARENT, CHILD and ALL_NODES are words of the "+
			"language, also in lower case. Choose another name.")
		return false
	case len(name) == 0:
		p.failSyntax("the name of the node is empty")
		return false
	}
	for _, c := range name {
		switch {
		case c == '+' && !p.opts.AnyNodeName:
			p.fail("a node's name cannot have a +", "SPLICE+NODE is the node of a splice. Write _ or - in "+
				quote(string(name))+".")
			return false
		case isBlank(c) || c == '\n' || c == 0:
			p.fail("a node's name cannot have a blank", "Other commands could not name "+quote(string(name))+
				". Write _ or - for the blank.")
			return false
		case c == '.' && !p.dotsReported:
			p.dotsReported = true
			p.warn("this name of a node has a dot", "HTCondor's manual reserves the dot: of several DAG files the "+
				"nodes are called 0.NAME, 1.NAME and so on. This is reported once.")
		}
	}
	return true
}

// fullName is a name of the scope as the graph has it. The next call overwrites it.
func (p *fileParser) fullName(name []byte) []byte {
	if len(p.scope.prefix) == 0 {
		return name
	}
	p.flowParser.name = append(append(p.flowParser.name[:0], p.scope.prefix...), name...)
	return p.flowParser.name
}

// defineNode adds a node to the graph.
func (p *fileParser) defineNode(name []byte, kind graph.NodeKind) (graph.NodeID, bool) {
	if !p.acceptsKind(kind) {
		return 0, false
	}
	if p.scope.splices[string(name)] != nil {
		p.fail("there is a splice "+quote(string(name))+" already", "Nodes and splices share their names. "+
			"Rename one of them.")
		return 0, false
	}
	id, isNew, err := p.flow.Graph.AddNode(p.fullName(name), kind)
	if err != nil {
		p.fail("this node cannot be added", "The flow is too big: "+err.Error()+".")
		p.full = true
		return 0, false
	}
	node := p.flow.Graph.Node(id)
	if !isNew {
		p.fail("the node "+quote(string(name))+" is defined twice", "It is already defined on line "+
			p.placeText(node.File, node.Line)+". Rename or remove one of them.")
		return 0, false
	}
	node.File, node.Line = p.number, uint32(min(p.lineNo, math.MaxUint32))
	switch kind {
	case graph.FinalNode:
		p.flow.Final, p.flow.HasFinal = id, true
	case graph.ProvisionerNode:
		p.flow.Provisioner, p.flow.HasProvisioner = id, true
	}
	return id, true
}

// acceptsKind reports whether the flow may have a node of the kind here.
func (p *fileParser) acceptsKind(kind graph.NodeKind) bool {
	switch {
	case kind == graph.FinalNode && p.scope.outer != nil:
		p.fail("a splice cannot have a FINAL node", "It runs at the end of the whole flow. Define it in the outermost "+
			"DAG file, or run this file as SUBDAG EXTERNAL.")
	case kind == graph.FinalNode && p.flow.HasFinal:
		p.failSecond(p.flow.Final)
	case kind == graph.ProvisionerNode && p.flow.HasProvisioner:
		p.failSecond(p.flow.Provisioner)
	default:
		return true
	}
	return false
}

// failSecond reports a second node of a kind of which there is one.
func (p *fileParser) failSecond(first graph.NodeID) {
	n := p.flow.Graph.Node(first)
	p.fail("this is the second "+n.Kind.String()+" node", "A flow has one, and "+quote(p.flow.Graph.Name(first))+
		" on line "+p.placeText(n.File, n.Line)+" is it already. Remove one of them.")
}

// blockEnd returns the line that ends an inline description, if a word begins one.
func blockEnd(word []byte) (end string, ok bool) {
	switch {
	case len(word) > 0 && word[0] == '{':
		return "}", true
	case bytes.HasPrefix(word, []byte("@=")):
		return "@" + string(word[2:]), true
	}
	return "", false
}

// parseBlock reads the lines of an inline description. The lexer goes on behind its end.
func (p *fileParser) parseBlock(end string) (text string, first uint32, ok bool) {
	if end == "@" {
		p.failSyntax("@= has no word that ends the description")
		return "", 0, false
	}
	word, rest := p.line[p.lex.start:p.lex.end], bytes.TrimSpace(p.line[p.lex.end:])
	if end == "}" && len(word) > 1 || len(rest) > 0 {
		p.fail("the description begins on the next line", "End this line after { or @=WORD, and write the "+
			"description below it.")
	}
	header, headerNo := string(p.line), p.lineNo
	lexer := p.lex
	var b bytes.Buffer
	first = uint32(p.lineNumber(p.lines.line + 1))
	for {
		line, err := p.lines.physical()
		if err != nil {
			p.line, p.lineNo, p.lex = []byte(header), headerNo, lexer
			p.lex.line = p.line
			cure := "The file ends before it does. Write " + end + " on a line of its own behind it."
			if err != io.EOF {
				cure = errorText(err) + "."
			}
			p.fail("the submit description has no end", cure)
			return "", 0, false
		}
		trimmed := bytes.TrimSpace(line)
		if rest, ok := bytes.CutPrefix(trimmed, []byte(end)); ok && (len(rest) == 0 || isBlank(rest[0])) {
			p.line, p.lineNo = append([]byte(nil), rest...), p.lineNumber(p.lines.line)
			p.lex.reset(p.line)
			return b.String(), first, true
		}
		b.Write(line)
		b.WriteByte('\n')
		if b.Len() > maxLineSize {
			p.fail("the submit description is too long", "It has more than 64 MiB. Write it into a file of its own.")
			return "", 0, false
		}
	}
}

// skipBlock passes the inline description of a command that the first pass has read.
func (p *fileParser) skipBlock() {
	p.lex.next() // the name
	word, _ := p.lex.next()
	end, isBlock := blockEnd(word)
	if !isBlock || end == "@" {
		return
	}
	for {
		line, err := p.lines.physical()
		if err != nil {
			return
		}
		rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte(end))
		if ok && (len(rest) == 0 || isBlank(rest[0])) {
			return
		}
	}
}

func (p *fileParser) addInline(d InlineDescription) uint32 {
	p.flow.Inline = append(p.flow.Inline, d)
	return uint32(len(p.flow.Inline) - 1)
}

func parseSubmitDescription(p *fileParser) {
	word, ok := p.word("name of the submit description")
	if !ok {
		return
	}
	name := p.textID(word)
	twice := false
	if _, twice = p.scope.inline[name]; twice {
		p.warn("the submit description "+quote(string(word))+" is defined twice", "The first one counts.")
	}
	if word, ok = p.word("submit description"); !ok {
		return
	}
	end, isBlock := blockEnd(word)
	if !isBlock {
		p.failSyntax("the submit description does not begin with {")
		return
	}
	text, first, ok := p.parseBlock(end)
	if !ok {
		return
	}
	if !twice {
		p.scope.inline[name] = p.addInline(InlineDescription{Name: p.flow.Texts.Text(name), Text: text,
			File: p.number, Line: first})
	}
	p.end()
}
