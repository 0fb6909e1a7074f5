package dag

import (
	"bytes"
	"math"
	"path"
	"strings"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

func parseReject(p *fileParser) {
	if p.end() {
		p.lex.start, p.lex.end = 0, len(p.line)
		p.fail("this file is marked with REJECT", "It is not to be run as it is. Whoever wrote it says why; without "+
			"this line it is read as any other.")
	}
}

func parseDot(p *fileParser) {
	word, ok := p.word("file")
	if !ok {
		return
	}
	dot := DotFile{Name: p.scope.filePath(string(word)), Overwrite: true}
	for {
		word, more := p.lex.next()
		switch {
		case !more:
			p.flow.DotFiles = append(p.flow.DotFiles, dot)
			return
		case isWord(word, "UPDATE"):
			dot.IsUpdated = true
		case isWord(word, "DONT-UPDATE"):
			dot.IsUpdated = false
		case isWord(word, "OVERWRITE"):
			dot.Overwrite = true
		case isWord(word, "DONT-OVERWRITE"):
			dot.Overwrite = false
		case isWord(word, "INCLUDE"):
			if word, ok = p.word("file behind INCLUDE"); !ok {
				return
			}
			dot.Header = p.scope.filePath(string(word))
		default:
			p.failSyntax("%s is one word too many", quote(string(word)))
			return
		}
	}
}

// defaultStatusInterval is that of DAGMan, in seconds.
const defaultStatusInterval = 60

func parseStatusFile(p *fileParser) {
	word, ok := p.word("file")
	if !ok {
		return
	}
	status := StatusFile{Name: p.scope.filePath(string(word)), MinInterval: defaultStatusInterval}
	start, end := p.lex.start, p.lex.end
	for {
		word, more := p.lex.next()
		switch {
		case !more:
			p.lex.start, p.lex.end = start, end
			if p.acceptsFile(p.flow.StatusFile.Name) {
				p.flow.StatusFile = status
			}
			return
		case isWord(word, "ALWAYS-UPDATE"):
			status.IsAlways = true
		default:
			n, ok := p.integerOf(word, "number of seconds", 0, math.MaxInt32)
			if !ok {
				return
			}
			status.MinInterval = n
		}
	}
}

// acceptsFile reports whether a file of which there is one is not set yet. In a splice
// such a file has no effect.
func (p *fileParser) acceptsFile(first string) bool {
	switch {
	case p.scope.outer != nil:
		p.warn(p.command.displayName()+" has no effect in a splice", "Write it into the outermost DAG file.")
	case first != "":
		p.warn(p.command.displayName()+" is given twice", "The first one counts, "+quote(first)+".")
	default:
		return true
	}
	return false
}

func parseJobstateLog(p *fileParser) {
	word, ok := p.word("file")
	if !ok {
		return
	}
	name := p.scope.filePath(string(word))
	if start, end := p.lex.start, p.lex.end; p.end() {
		p.lex.start, p.lex.end = start, end
		if p.acceptsFile(p.flow.JobstateLog) {
			p.flow.JobstateLog = name
		}
	}
}

func parseConfig(p *fileParser) {
	word, ok := p.word("file")
	if !ok {
		return
	}
	name := p.scope.filePath(string(word))
	start, end := p.lex.start, p.lex.end
	if !p.end() {
		return
	}
	p.lex.start, p.lex.end = start, end
	switch {
	case p.flow.ConfigFile != "" && p.flow.ConfigFile != name:
		p.fail("this is the second CONFIG file", "A flow has one, and line "+
			p.placeText(p.configPlace.file, p.configPlace.line)+" names "+quote(p.flow.ConfigFile)+
			". Put the settings of both into one file.")
		return
	case !p.opts.SkipFileTests && !p.files.Exists(name):
		p.failMissing("there is no file "+quote(name), "CONFIG names a file with settings of DAGMan, which has to be "+
			"there.")
	}
	p.flow.ConfigFile, p.configPlace = name, place{p.number, uint32(p.lineNo)}
}

func parseSavePoint(p *fileParser) {
	t, ok := p.target(false)
	if !ok {
		return
	}
	name := p.flow.Graph.Name(t.node) + "-" + path.Base(p.name) + ".save"
	if word, more := p.lex.next(); more {
		if name = string(word); strings.Contains(name, "/") {
			name = p.scope.filePath(name)
		}
		if !p.end() {
			return
		}
	}
	id := p.textID([]byte(name))
	p.changeSettings(t, func(s *NodeSettings) { s.SavePoint = id })
}

func parseAttribute(p *fileParser) {
	text := p.lex.rest()
	switch name, value, ok := bytes.Cut(text, []byte("=")); {
	case len(text) == 0:
		p.failSyntax("SET_JOB_ATTR has no attribute")
	case !ok || len(bytes.TrimSpace(name)) == 0 || len(bytes.TrimSpace(value)) == 0:
		p.failSyntax("this is no NAME = VALUE")
	default:
		p.flow.Attributes = append(p.flow.Attributes, string(text))
	}
}

func parseEnvironment(p *fileParser) {
	word, ok := p.word("SET or GET")
	if !ok {
		return
	}
	isSet := isWord(word, "SET")
	if !isSet && !isWord(word, "GET") {
		p.failSyntax("%s is neither SET nor GET", quote(string(word)))
		return
	}
	text := p.lex.rest()
	if len(text) == 0 {
		p.failSyntax("ENV names no variables")
		return
	}
	p.flow.Environment = append(p.flow.Environment, EnvironmentCommand{Text: string(text), IsSet: isSet})
}

func parsePinIn(p *fileParser)  { p.parsePin(p.scope.pinsIn) }
func parsePinOut(p *fileParser) { p.parsePin(p.scope.pinsOut) }

// maxPin bounds the numbers of pins, which begin with 1.
const maxPin = 1 << 20

func (p *fileParser) parsePin(pins map[int][]graph.NodeID) {
	t, ok := p.target(false)
	if !ok {
		return
	}
	number, ok := p.integer("number of a pin", 1, maxPin)
	if !ok || !p.end() {
		return
	}
	if !p.flow.Graph.Node(t.node).Kind.HasArcs() {
		p.fail("this node cannot have dependencies", "A pin connects nodes that wait for each other.")
		return
	}
	pins[number] = append(pins[number], t.node)
}
