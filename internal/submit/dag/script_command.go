package dag

import (
	"math"
	"strings"

	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

func parseScript(p *fileParser) {
	var script NodeScript
	kind, ok := p.parseScriptHead(&script)
	if !ok {
		return
	}
	t, ok := p.target(true)
	if !ok {
		return
	}
	text := p.lex.rest()
	if len(text) == 0 {
		p.failSyntax("SCRIPT has no executable")
		return
	}
	p.checkMacros(text, kind)
	script.Command = p.textID(text)
	p.flow.Scripts = append(p.flow.Scripts, script)
	number := uint32(len(p.flow.Scripts) - 1)
	p.changeSettings(t, func(s *NodeSettings) { s.Scripts[kind] = number })
}

// parseScriptHead reads DEFER, DEBUG and the kind of a script.
func (p *fileParser) parseScriptHead(script *NodeScript) (ScriptKind, bool) {
	for {
		word, ok := p.lex.next()
		switch {
		case !ok:
			p.failSyntax("SCRIPT does not say PRE, POST or HOLD")
			return 0, false
		case isWord(word, "DEFER"):
			status, ok := p.integer("exit code of DEFER", leastCode, mostCode)
			if !ok {
				return 0, false
			}
			seconds, ok := p.integer("number of seconds of DEFER", 0, math.MaxInt32)
			if !ok {
				return 0, false
			}
			script.DeferStatus, script.DeferSeconds = codeOf(status), uint32(seconds)
		case isWord(word, "DEBUG"):
			if !p.parseDebug(script) {
				return 0, false
			}
		default:
			for kind, name := range scriptKinds {
				if isWord(word, name) {
					return ScriptKind(kind), true
				}
			}
			p.failSyntax("%s is none of PRE, POST, HOLD, DEFER and DEBUG", quote(string(word)))
			return 0, false
		}
	}
}

func (p *fileParser) parseDebug(script *NodeScript) bool {
	word, ok := p.word("file of DEBUG")
	if !ok {
		return false
	}
	script.DebugFile = p.textID(word)
	if word, ok = p.word("output of DEBUG"); !ok {
		return false
	}
	for i, name := range []string{"STDOUT", "STDERR", "ALL"} {
		if isWord(word, name) {
			script.DebugOutput = ScriptOutput(i + 1)
			return true
		}
	}
	p.failSyntax("%s is none of STDOUT, STDERR and ALL", quote(string(word)))
	return false
}

// macroNames are the macros of all scripts, and those of POST scripts.
func macroNames() (all, post []string) {
	return strings.Fields("NODE JOB RETRY MAX_RETRIES NODE_COUNT QUEUED_COUNT DONE_COUNT FAILED_COUNT FUTILE_COUNT " +
			"DAGID DAG_STATUS"),
		strings.Fields("CLUSTERID JOBID JOB_COUNT JOB_ABORT_COUNT SUCCESS RETURN EXIT_CODES EXIT_CODE_LIST " +
			"EXIT_CODE_COUNTS PRE_SCRIPT_RETURN")
}

// checkMacros warns of arguments that look like macros and are none.
func (p *fileParser) checkMacros(command []byte, kind ScriptKind) {
	if strings.IndexByte(string(command), '$') < 0 {
		return
	}
	all, post := macroNames()
	for _, arg := range strings.Fields(string(command))[1:] {
		name, ok := strings.CutPrefix(arg, "$")
		if !ok {
			continue
		}
		switch known := containsFold(post, name); {
		case containsFold(all, name), known && kind != PreScript:
		case known:
			p.mark(arg)
			p.warn("only POST and HOLD scripts have "+quote(arg), "The script gets this text as it is.")
		default:
			p.mark(arg)
			cure := ""
			if near := suggest.Nearest(name, append(all, post...)); near != "" {
				cure = " Did you mean $" + near + "?"
			}
			p.warn("there is no macro "+quote(arg), "The script gets this text as it is."+cure)
		}
	}
}

func containsFold(list []string, name string) bool {
	for _, one := range list {
		if strings.EqualFold(one, name) {
			return true
		}
	}
	return false
}

// parseVars reads the variables of nodes.
func parseVars(p *fileParser) {
	t, ok := p.target(true)
	if !ok {
		return
	}
	placement, count := DefaultPlacement, 0
	for {
		key := p.lex.key()
		start, end := p.lex.start, p.lex.end
		isPair := p.lex.equals()
		switch {
		case !isPair && len(key) == 0 && count == 0:
			p.failSyntax("VARS has no variables")
			return
		case !isPair && len(key) == 0:
			return
		case !isPair && count == 0 && placement == DefaultPlacement && isWord(key, "PREPEND"):
			placement = Prepended
			continue
		case !isPair && count == 0 && placement == DefaultPlacement && isWord(key, "APPEND"):
			placement = Appended
			continue
		case !isPair:
			p.lex.start, p.lex.end = start, end
			p.failSyntax("%s has no value", quote(string(key)))
			return
		}
		name, ok := p.variableName(key)
		if !ok {
			return
		}
		value, ok := p.lex.next()
		if !ok {
			p.failSyntax("%s has no value", quote(name))
			return
		}
		if p.lex.unclosed {
			return
		}
		v := NodeVariable{Name: p.textID([]byte(name)), Value: p.textID(value), Placement: placement}
		p.lex.start, p.lex.end = start, end
		p.setVariable(t, v)
		count++
	}
}

// variableName checks the name of a variable. One with a + is an attribute of the job.
func (p *fileParser) variableName(key []byte) (string, bool) {
	name := string(key)
	attribute, isAttribute := strings.CutPrefix(name, "+")
	switch {
	case name == "":
		p.failSyntax("the name before the = is missing")
		return "", false
	case isAttribute && attribute == "":
		p.failSyntax("the name behind the + is missing")
		return "", false
	case len(name) >= 5 && strings.EqualFold(name[:5], "queue"):
		p.fail("a variable cannot be called "+quote(name), "A line of a submit description that begins with queue "+
			"submits jobs. Choose another name.")
		return "", false
	case isAttribute:
		name = "My." + attribute
	}
	return name, true
}

// setVariable gives the nodes that the command is about a variable. Of two with one name
// the later counts.
func (p *fileParser) setVariable(t targetNodes, v NodeVariable) {
	flow, name, warned := p.flow, p.flow.Texts.Text(v.Name), false
	p.eachTarget(t, func(n *graph.Node) {
		last := uint32(0)
		for i := n.Vars; i != 0; last, i = i, flow.nextVariable[i] {
			if old := flow.Vars[i].Name; old != v.Name && !strings.EqualFold(flow.Texts.Text(old), name) {
				continue
			}
			if !warned && !t.all && flow.Vars[i].Value != v.Value {
				warned = true
				p.warn("the variable "+quote(name)+" is set twice", "This value counts, and not "+
					quote(flow.Texts.Text(flow.Vars[i].Value))+".")
			}
			flow.Vars[i] = v
			return
		}
		number := uint32(len(flow.Vars))
		flow.Vars, flow.nextVariable = append(flow.Vars, v), append(flow.nextVariable, 0)
		if last == 0 {
			n.Vars = number
		} else {
			flow.nextVariable[last] = number
		}
	})
}
