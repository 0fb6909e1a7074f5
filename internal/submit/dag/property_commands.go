package dag

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// The bounds of numbers in DAG files: DAGMan has them in 32 bits.
const (
	leastCode = math.MinInt32
	mostCode  = math.MaxInt32
)

func parseRetry(p *fileParser) {
	t, ok := p.target(true)
	if !ok || !p.appliesTo(t) {
		return
	}
	count, ok := p.integer("number of retries", 0, mostCode)
	if !ok {
		return
	}
	if count > maxRetries {
		p.warn(fmt.Sprintf("there are at most %d retries", maxRetries), "The number is replaced by it.")
		count = maxRetries
	}
	var unless OptionalCode
	if word, more := p.lex.next(); more {
		if !isWord(word, "UNLESS-EXIT") {
			p.failSyntax("%s is one word too many", quote(string(word)))
			return
		}
		code, ok := p.integer("exit code", leastCode, mostCode)
		if !ok || !p.end() {
			return
		}
		unless = codeOf(code)
	}
	p.eachTarget(t, func(n *graph.Node) { n.Retry = uint16(count) })
	if unless.IsSet || p.hasSettings(t, func(s *NodeSettings) bool { return s.UnlessExit.IsSet }) {
		p.changeSettings(t, func(s *NodeSettings) { s.UnlessExit = unless })
	}
}

// hasSettings reports whether a node that the command is about has some setting.
func (p *fileParser) hasSettings(t targetNodes, has func(s *NodeSettings) bool) (found bool) {
	p.eachTarget(t, func(n *graph.Node) { found = found || has(&p.flow.Settings[n.Settings]) })
	return found
}

func parseAbort(p *fileParser) {
	t, ok := p.target(true)
	if !ok || !p.appliesTo(t) {
		return
	}
	code, ok := p.integer("exit code", leastCode, mostCode)
	if !ok {
		return
	}
	var result OptionalCode
	if word, more := p.lex.next(); more {
		if !isWord(word, "RETURN") {
			p.failSyntax("%s is one word too many", quote(string(word)))
			return
		}
		n, ok := p.integer("exit code of the flow", 0, math.MaxUint8)
		if !ok || !p.end() {
			return
		}
		result = codeOf(n)
	}
	p.changeSettings(t, func(s *NodeSettings) { s.AbortOn, s.AbortReturn = codeOf(code), result })
}

func parsePreSkip(p *fileParser) {
	t, ok := p.target(true)
	if !ok {
		return
	}
	code, ok := p.integer("exit code", leastCode, mostCode)
	if !ok {
		return
	}
	if code == 0 {
		p.fail("PRE_SKIP cannot be for 0", "0 is success: every node would be done without its jobs. Have the PRE "+
			"script end with another code, and name that.")
		return
	}
	if p.end() {
		p.changeSettings(t, func(s *NodeSettings) { s.PreSkip = codeOf(code) })
	}
}

func parseTolerance(p *fileParser) {
	t, ok := p.target(true)
	if !ok {
		return
	}
	word, ok := p.word("number of failed jobs")
	if !ok {
		return
	}
	digits, isShare := bytes.CutSuffix(word, []byte("%"))
	what, most := "number of failed jobs", mostCode
	if isShare {
		what, most = "share in percent", 100
	}
	count, ok := p.integerOf(digits, what, 0, most)
	if !ok {
		return
	}
	failsFast := false
	if word, more := p.lex.next(); more {
		failsFast = isWord(word, "FAIL-FAST")
		if !failsFast && !isWord(word, "WAIT") {
			p.failSyntax("%s is neither FAIL-FAST nor WAIT", quote(string(word)))
			return
		}
		if !p.end() {
			return
		}
	}
	p.changeSettings(t, func(s *NodeSettings) {
		s.Tolerance, s.ToleranceIsShare, s.FailsFast, s.HasTolerance = uint32(count), isShare, failsFast, true
	})
}

func parsePriority(p *fileParser) {
	t, ok := p.target(true)
	if !ok || !p.appliesTo(t) {
		return
	}
	n, ok := p.integer("priority", leastCode, mostCode)
	if !ok {
		return
	}
	if c := min(max(n, -maxPriority), maxPriority); c != n {
		p.warn(fmt.Sprintf("the priority is replaced by %d", c), fmt.Sprintf("Priorities are between %d and %d.",
			-maxPriority, maxPriority))
		n = c
	}
	if p.end() {
		p.eachTarget(t, func(node *graph.Node) { node.Priority = int16(n) })
	}
}

func parseDone(p *fileParser) {
	t, ok := p.target(false)
	if !ok {
		return
	}
	n := p.flow.Graph.Node(t.node)
	switch {
	case !p.end():
	case n.Kind.HasArcs():
		n.Flags |= graph.DoneFlag
	default:
		p.warn("DONE has no effect on a "+n.Kind.String()+" node", "It runs whatever else is done.")
	}
}

// categoryNumber is the number of a category of the scope. A name with a + is one of the
// whole flow.
func (p *fileParser) categoryNumber(word []byte) (uint16, bool) {
	name := string(word)
	if len(word) > 0 && word[0] != '+' {
		name = string(p.fullName(word))
	}
	number, ok := p.categories[name]
	if ok {
		return number, true
	}
	if len(p.flow.Categories) == maxCategories {
		p.fail(fmt.Sprintf("there are more than %d categories", maxCategories-1), "Use one for several sets of nodes.")
		return 0, false
	}
	number = uint16(len(p.flow.Categories))
	p.categories[name] = number
	p.flow.Categories = append(p.flow.Categories, NodeCategory{Name: name, MaxJobs: -1,
		line: place{p.number, uint32(p.lineNo)}})
	return number, true
}

func parseCategory(p *fileParser) {
	t, ok := p.target(true)
	if !ok || !p.appliesTo(t) {
		return
	}
	word, ok := p.word("name of a category")
	if !ok {
		return
	}
	number, ok := p.categoryNumber(word)
	if ok && p.end() {
		p.eachTarget(t, func(n *graph.Node) { n.Category = number })
	}
}

func parseMaxJobs(p *fileParser) {
	word, ok := p.word("name of a category")
	if !ok {
		return
	}
	number, ok := p.categoryNumber(word)
	if !ok {
		return
	}
	count, ok := p.integer("number of jobs", 0, mostCode)
	if !ok || !p.end() {
		return
	}
	c := &p.flow.Categories[number]
	if c.MaxJobs >= 0 && c.MaxJobs != count {
		p.warn("MAXJOBS of "+quote(c.Name)+" is set twice", "It was "+strconv.Itoa(c.MaxJobs)+" on line "+
			p.placeText(c.line.file, c.line.line)+". The later line counts; that of a splice is read before those "+
			"around it.")
	}
	c.MaxJobs, c.line = count, place{p.number, uint32(p.lineNo)}
}
