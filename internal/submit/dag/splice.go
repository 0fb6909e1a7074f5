package dag

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

func parseInclude(p *fileParser) {
	word, ok := p.word("file")
	if !ok {
		return
	}
	full := p.scope.filePath(string(word))
	start, end := p.lex.start, p.lex.end
	if !p.end() {
		return
	}
	p.lex.start, p.lex.end = start, end
	if p.acceptsNested(full) {
		p.parseFile(p.scope, full, p.pass, p)
	}
}

// acceptsNested reports whether a file may be read from within those that are being read.
// Only the first pass says why not.
func (p *fileParser) acceptsNested(full string) bool {
	clean := path.Clean(full)
	if i := slices.Index(p.opened, clean); i >= 0 {
		if p.pass == 1 {
			chain := slices.Concat(p.opened[i:], []string{clean})
			p.fail("this file is within itself", "It would never end: "+strings.Join(shortened(chain), " → ")+
				". Run the file as SUBDAG EXTERNAL if that is meant.")
		}
		return false
	}
	if len(p.opened) > maxSpliceDepth {
		if p.pass == 1 {
			p.fail(fmt.Sprintf("files nest deeper than %d", maxSpliceDepth), "They are "+
				strings.Join(shortened(p.opened), " → ")+". Join some of them, or use SUBDAG EXTERNAL.")
		}
		return false
	}
	return true
}

// shortened leaves out the middle of a long list.
func shortened(list []string) []string {
	const most = 8
	if len(list) <= most {
		return list
	}
	return slices.Concat(list[:most/2], []string{"…"}, list[len(list)-most/2:])
}

func parseSplice(p *fileParser) {
	word, ok := p.word("name of the splice")
	if !ok || !p.isNodeName(word) {
		return
	}
	name, isNew := string(word), true
	switch _, isNode := p.flow.Graph.Find(p.fullName(word)); {
	case p.scope.splices[name] != nil:
		isNew = false
		p.fail("the splice "+quote(name)+" is defined twice", "Their nodes would have the same names. Rename one.")
	case isNode:
		isNew = false
		p.fail("there is a node "+quote(name)+" already", "Nodes and splices share their names. Rename one of them.")
	}
	if word, ok = p.word("DAG file"); !ok {
		return
	}
	file := string(word)
	start, end := p.lex.start, p.lex.end
	inner := newScope(p.scope, p.flow.Graph.Len())
	if word, more := p.lex.next(); more {
		if !isWord(word, "DIR") {
			p.failSyntax("%s is one word too many", quote(string(word)))
			return
		}
		if word, ok = p.word("directory behind DIR"); !ok {
			return
		}
		inner.directory = p.scope.filePath(string(word))
		if !p.end() {
			return
		}
	}
	p.lex.start, p.lex.end = start, end
	if !isNew {
		return
	}
	inner.prefix = slices.Concat(p.scope.prefix, []byte(name+"+"))
	inner.last, inner.isBroken = inner.first, true
	p.scope.splices[name] = inner
	if !p.acceptsNested(inner.filePath(file)) {
		return
	}
	inner.isBroken = false
	p.flow.Splices++
	p.parseScope(inner, file, p)
	p.scope.inner = append(p.scope.inner, inner)
}

// spliceConnection is a CONNECT line.
type spliceConnection struct {
	from, to *nodeScope
	names    [2]string
	report   func(summary, detail string)
}

func parseConnect(p *fileParser) {
	c := spliceConnection{}
	for i, end := range []**nodeScope{&c.from, &c.to} {
		word, ok := p.word("two splices")
		if !ok {
			return
		}
		c.names[i] = string(word)
		*end = p.scope.splices[c.names[i]]
	}
	if !p.end() {
		return
	}
	for i, s := range []*nodeScope{c.from, c.to} {
		if s == nil {
			p.mark(c.names[i])
			p.fail("there is no splice "+quote(c.names[i]), "CONNECT is for two splices of this file. A SPLICE line "+
				"defines one.")
			return
		}
		if s.isBroken {
			return
		}
	}
	at := &fileParser{flowParser: p.flowParser, name: p.name, number: p.number, line: slices.Clone(p.line),
		lineNo: p.lineNo, command: p.command, translated: p.translated, readLine: p.readLine}
	at.lex.end = len(at.line)
	c.report = at.fail
	p.scope.connections = append(p.scope.connections, c)
}

// connectSplices adds the arcs of the CONNECT lines of a scope.
func (p *flowParser) connectSplices(s *nodeScope) {
	for _, c := range s.connections {
		p.connect(c)
	}
}

// connect makes the nodes of each pin out parents of those of the pin in with that
// number.
func (p *flowParser) connect(c spliceConnection) {
	out, in := c.from.pinsOut, c.to.pinsIn
	switch {
	case len(out) == 0:
		c.report("the splice "+quote(c.names[0])+" has no PIN_OUT", "Its file has to say which nodes others wait for.")
		return
	case len(out) != len(in):
		c.report(fmt.Sprintf("%s has %d pins out, and %s has %d pins in", c.names[0], len(out), c.names[1], len(in)),
			"Each pin out needs a pin in of the same number.")
		return
	}
	connected := map[graph.NodeID]bool{}
	for number := 1; number <= len(out); number++ {
		from, to := withoutRepeats(slices.Clone(out[number])), withoutRepeats(slices.Clone(in[number]))
		if len(from) == 0 || len(to) == 0 {
			c.report(fmt.Sprintf("there is no pin %d on one side", number), "Pins are numbered from 1, without gaps.")
			return
		}
		for _, id := range to {
			connected[id] = true
		}
		if err := p.flow.Graph.Depend(from, to, false, !p.opts.NoJoins); err != nil {
			c.report("this connection cannot be added", "The flow is too big: "+err.Error()+".")
			p.full = true
			return
		}
	}
	for _, id := range c.to.initial {
		if !connected[id] {
			c.report("the node "+quote(p.flow.Graph.Name(id))+" has no PIN_IN", "Each node of a connected splice that "+
				"waits for no other has to wait for a pin. Otherwise it would run at once.")
			return
		}
	}
}
