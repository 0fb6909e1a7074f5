package dag

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// FileReader reads the files that DAG files name. Names are as they are in the files,
// with the directories of splices before them.
type FileReader interface {
	// Open opens a file for reading. A file is opened twice.
	Open(name string) (io.ReadCloser, error)
	// Exists reports whether there is such a file.
	Exists(name string) bool
}

// ParseOptions says how DAG files are read.
type ParseOptions struct {
	UseDirectory  bool // names are relative to the DAG file's directory, not to the working directory
	AnyNodeName   bool // names of nodes may have a +
	NoJoins       bool // there is an arc from each parent to each child
	SkipFileTests bool // missing submit descriptions, scripts and configuration files are no mistakes
}

// The bounds of a flow.
const (
	maxSpliceDepth = 64
	maxFiles       = 1 << 16 // of one flow; a splice that is used again counts again
	maxCategories  = 1 << 16
	maxPriority    = 1024
	maxRetries     = 1<<16 - 1
	firstBuffer    = 256 << 10 // to read the first file
	nestedBuffer   = 16 << 10
)

// flowParser is the state of reading the DAG files of one flow.
type flowParser struct {
	files   FileReader
	opts    ParseOptions
	table   map[string]*dagCommand
	flow    *Flow
	diags   Diagnostics
	opened  []string // the files that are being read, from the outermost on
	numbers map[string]uint16
	reads   int // files opened in the first pass

	categories   map[string]uint16
	directories  map[graph.TextID]uint32 // settings that hold a directory only
	configPlace  place
	suggestions  int // that may still be made
	name         []byte
	lastText     []byte // of textID, which often gets the same text again
	lastTextID   graph.TextID
	full         bool // no room is left, which was reported
	dotsReported bool // a name with a dot was reported
}

// Parse reads the DAG files of one flow. With several files the nodes of file number i
// are called i.NAME. The flow is whole only if there are no errors.
func Parse(files FileReader, names []string, opts ParseOptions) (*Flow, *Diagnostics) {
	p := &flowParser{files: files, opts: opts, table: commandTable(), numbers: map[string]uint16{},
		categories: map[string]uint16{}, directories: map[graph.TextID]uint32{}, suggestions: maxSuggestions}
	p.flow = &Flow{Graph: graph.New(), Texts: graph.NewTextTable(), Settings: make([]NodeSettings, 1),
		Scripts: make([]NodeScript, 1), Vars: make([]NodeVariable, 1), Categories: []NodeCategory{{MaxJobs: -1}},
		nextVariable: make([]uint32, 1), sharedRecord: make([]bool, 1)}
	for i, name := range names {
		s := newScope(nil, p.flow.Graph.Len())
		if len(names) > 1 {
			s.prefix = []byte(strconv.Itoa(i) + ".")
		}
		if opts.UseDirectory {
			s.directory = path.Dir(name)
			name = path.Base(name)
		}
		p.parseScope(s, name, nil)
	}
	p.finish()
	return p.flow, &p.diags
}

// maxSuggestions bounds how often a misspelt name of a node is searched for.
const maxSuggestions = 20

// textID is the number of a text.
func (p *flowParser) textID(text []byte) graph.TextID {
	if len(text) > 0 && string(text) == string(p.lastText) {
		return p.lastTextID
	}
	id, ok := p.flow.Texts.Add(text)
	if !ok {
		p.reportFull("there is a text of more than 1 MiB, or all texts have more than 4 GiB")
	}
	p.lastText, p.lastTextID = append(p.lastText[:0], text...), id
	return id
}

// reportFull reports once that the flow is too big.
func (p *flowParser) reportFull(why string) {
	if !p.full {
		p.full = true
		name := ""
		if len(p.flow.Files) > 0 {
			name = p.flow.Files[0]
		}
		p.diags.add(0, Diagnostic{File: name, Summary: "the flow is too big",
			Detail: "It cannot be read as a whole: " + why + ". Cut it into flows that SUBDAG EXTERNAL starts."})
	}
}

// fileNumber is the number of a file in Flow.Files.
func (p *flowParser) fileNumber(name string) uint16 {
	n, ok := p.numbers[name]
	if !ok {
		n = uint16(len(p.flow.Files))
		p.flow.Files, p.numbers[name] = append(p.flow.Files, name), n
	}
	return n
}

// fileParser reads one file in one pass.
type fileParser struct {
	*flowParser
	scope   *nodeScope
	name    string
	number  uint16
	pass    int // 1 or 2
	lines   *lineReader
	lex     wordLexer
	line    []byte
	lineNo  int // of the user's file
	command *dagCommand

	translated TranslatedFile // nil: the file is a DAG file
	readLine   int            // number of the first line of the command that is read

	parents []graph.NodeID // of the command that is read
	nodes   []graph.NodeID // children, or the nodes of a splice
}

// parseFile reads a file in one pass, and reports whether it could be opened. from is the
// line that names the file; nil for one that the user named.
func (p *flowParser) parseFile(s *nodeScope, name string, pass int, from *fileParser) bool {
	if p.reads += pass & 1; p.reads > maxFiles {
		p.reportFull(fmt.Sprintf("it consists of more than %d files", maxFiles))
		return false
	}
	in, err := p.files.Open(name)
	if err != nil {
		p.reportUnreadable(name, pass, err, from)
		return false
	}
	defer in.Close()
	number := p.fileNumber(name)
	p.opened = append(p.opened, path.Clean(name))
	defer func() { p.opened = p.opened[:len(p.opened)-1] }()
	size := firstBuffer
	if from != nil {
		size = nestedBuffer
	}
	f := &fileParser{flowParser: p, scope: s, name: name, number: number, pass: pass, lines: newLineReader(in, size)}
	if f.translated, _ = in.(TranslatedFile); f.translated != nil && pass == 1 {
		p.addMistakes(number, f.translated)
	}
	if err := f.parseLines(); err != nil && pass == 1 {
		p.diags.add(int(number), Diagnostic{File: name, Line: f.lines.line + 1, Column: 1,
			IsMissing: !errors.Is(err, errLineSize), Summary: "this file cannot be read to its end",
			Detail: errorText(err) + "."})
	}
	return true
}

// reportUnreadable reports that a file cannot be opened.
func (p *flowParser) reportUnreadable(name string, pass int, err error, from *fileParser) {
	switch {
	case from == nil && pass == 1:
		p.diags.add(int(p.fileNumber(name)), Diagnostic{File: name, IsMissing: true,
			Summary: "this DAG file cannot be read", Detail: errorText(err) + ". Check its name and its permissions."})
	case from != nil && from.pass == 1:
		from.failMissing("the file "+quote(name)+" cannot be read", errorText(err)+". The name is relative to the "+
			"working directory, or to the directory of the splice.")
	}
}

// errorText is the cause of an error without the file's name.
func errorText(err error) string {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	text := strings.TrimSuffix(err.Error(), ".")
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// parseLines reads the lines of the file.
func (p *fileParser) parseLines() error {
	for !p.full {
		line, err := p.lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		p.line, p.readLine, p.command = line, p.lines.first, nil
		p.lineNo = p.lineNumber(p.readLine)
		p.lex.reset(line)
		word, _ := p.lex.next()
		c := findCommand(p.table, word)
		if c == nil {
			if p.pass == 2 && !p.reportUnknown(word) {
				return nil
			}
			continue
		}
		p.command = c
		switch {
		case p.pass == 1 && c.defines != nil:
			c.defines(p)
		case p.pass == 2 && c.applies != nil:
			c.applies(p)
		case p.pass == 2 && c.hasBlock:
			p.skipBlock()
		default:
			continue
		}
		if p.lex.unclosed {
			p.reportUnclosed()
		}
	}
	return nil
}

// reportUnknown reports a word that is no command. It returns false if the file is no
// text, so that the rest of it tells nothing.
func (p *fileParser) reportUnknown(word []byte) bool {
	for _, c := range p.line {
		if c == 0 {
			p.fail("this is not a text file", "There is a NUL in this line. A DAG file is text: one command a line.")
			return false
		}
	}
	cure := "A line of a DAG file begins with a command, such as JOB, PARENT or RETRY."
	if near := nearestName(word, commandNames(p.table)); near != "" {
		cure = "Did you mean " + near + "?"
	}
	p.fail("there is no command "+quote(string(word)), cure)
	return true
}
