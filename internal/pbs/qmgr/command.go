package qmgr

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/lazyregexp"
)

// CommandVerb is the verb of a command.
type CommandVerb string

// The verbs.
const (
	Create CommandVerb = "create"
	Delete CommandVerb = "delete"
	Set    CommandVerb = "set"
	Unset  CommandVerb = "unset"
	List   CommandVerb = "list"
	Print  CommandVerb = "print"
	Active CommandVerb = "active"
	Import CommandVerb = "import"
	Export CommandVerb = "export"
	Help   CommandVerb = "help"
	Quit   CommandVerb = "quit"
)

// ObjectKind is the kind of a command's objects.
type ObjectKind string

// The kinds.
const (
	Server   ObjectKind = "server"
	Queue    ObjectKind = "queue"
	Node     ObjectKind = "node"
	Resource ObjectKind = "resource"
	Sched    ObjectKind = "sched"
	Hook     ObjectKind = "hook"
)

// Command is a parsed command.
type Command struct {
	Verb    CommandVerb
	Kind    ObjectKind        // empty: Help, Quit, and Active without an object
	Names   []string          // of objects, without any @server; empty: the active ones
	All     bool              // all objects of the kind: the name is a single @, with or without a server
	Changes []AttributeChange // for Create, Set and Unset; for List and Print the selected attributes, without values
	Topic   string            // of Help
}

// AttributeChange is a change of one attribute.
type AttributeChange struct {
	Name, Resource string
	Op             string // "=", "+=", "-="; "" for Unset
	Value          string
}

// Attribute returns the attribute's name with its resource.
func (c AttributeChange) Attribute() string {
	if c.Resource == "" {
		return c.Name
	}
	return c.Name + "." + c.Resource
}

// SyntaxError is the error of an invalid command.
type SyntaxError struct {
	Reason string
	Line   string
	At     int // byte offset in Line; negative: unknown
}

func (e *SyntaxError) Error() string {
	if e.At < 0 {
		return e.Reason
	}
	return fmt.Sprintf("%s\n%s\n%s^", e.Reason, e.Line, strings.Repeat(" ", e.At))
}

var (
	verbs = []CommandVerb{Active, Create, Delete, Export, Help, Import, List, Print, Quit, Set, Unset}
	kinds = []ObjectKind{Hook, Node, Queue, Resource, Sched, Server}
)

// SplitCommands splits a line into commands, which end with semicolons. A comment begins
// with # at the start or after a blank.
func SplitCommands(line string) (commands []string) {
	start, quote := 0, byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == ';':
			commands = append(commands, line[start:i])
			start = i + 1
		case c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			return append(commands, line[start:i])
		}
	}
	return append(commands, line[start:])
}

// ParseCommand parses one command. For an empty line or a comment, ok is false.
func ParseCommand(line string) (c Command, ok bool, err error) {
	p := commandParser{line: line}
	word := p.nextWord()
	if word == "" || strings.HasPrefix(word, "#") {
		return c, false, nil
	}
	switch strings.ToLower(word) {
	case "?":
		word = "help"
	case "exit":
		word = "quit"
	}
	for _, v := range verbs {
		if c.Verb == "" && strings.HasPrefix(string(v), strings.ToLower(word)) {
			c.Verb = v
		}
	}
	switch c.Verb {
	case "":
		return c, false, p.syntaxError(-1, "qmgr: Illegal operation: "+word+"\nTry 'help' if you are having trouble.")
	case Help:
		c.Topic = p.nextWord()
		return c, true, nil
	case Quit:
		return c, true, nil
	}
	switch word = p.nextWord(); {
	case word == "" && c.Verb == Active:
		return c, true, nil
	case word == "":
		return c, false, p.syntaxError(-1, "qmgr: No object type given")
	}
	for _, k := range kinds {
		if w := strings.ToLower(word); w != "" && c.Kind == "" &&
			(strings.HasPrefix(string(k), w) || w == string(k)+"s") {
			c.Kind = k
		}
	}
	if strings.EqualFold(word, "s") || strings.EqualFold(word, "se") {
		c.Kind = Server
	}
	if c.Kind == "" {
		return c, false, p.syntaxError(-1, "qmgr: Illegal object type: "+word+".")
	}
	if err := p.parseNames(&c); err != nil {
		return c, false, err
	}
	if c.Verb == Import || c.Verb == Export {
		return c, true, nil // there are no hooks, so the rest has no meaning
	}
	return c, true, p.parseAttributes(&c)
}

// commandParser is the position of the parser in a line.
type commandParser struct {
	line     string
	position int
}

func (p *commandParser) syntaxError(at int, why string) error { return &SyntaxError{why, p.line, at} }

// nextWord returns the next word; empty at the end.
func (p *commandParser) nextWord() string {
	p.skipBlanks()
	start := p.position
	for p.position < len(p.line) && !strings.ContainsRune(" \t", rune(p.line[p.position])) {
		p.position++
	}
	return p.line[start:p.position]
}

func (p *commandParser) skipBlanks() {
	for p.position < len(p.line) && strings.ContainsRune(" \t", rune(p.line[p.position])) {
		p.position++
	}
}

// change matches the start of an assignment: an attribute and an operator.
var change = lazyregexp.New(`^\s*([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z0-9_]+))?\s*(\+=|-=|=)\s*`)

// attribute matches an attribute without an operator.
var attribute = lazyregexp.New(`^\s*([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z0-9_]+))?\s*(,|$)`)

// parseNames reads the names of objects, unless the next word begins an assignment.
func (p *commandParser) parseNames(c *Command) error {
	if p.skipBlanks(); change().MatchString(p.line[p.position:]) || p.position == len(p.line) {
		return nil
	}
	if c.Kind == Server && c.Verb != Create && c.Verb != Delete && !strings.Contains(p.line[p.position:], "@") &&
		attribute().MatchString(p.line[p.position:]) {
		return nil // there is one server, so the word is an attribute of it
	}
	at := p.position
	word := p.nextWord()
	for strings.HasSuffix(word, ",") { // "a, b"
		word += p.nextWord()
	}
	for _, name := range strings.Split(word, ",") {
		name, _, directed := strings.Cut(name, "@")
		if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.[]") != "" {
			return p.syntaxError(at, "qmgr: Illegal object name: "+name)
		}
		if name != "" {
			c.Names = append(c.Names, name)
		} else if directed {
			c.All = true
		}
	}
	return nil
}

// parseAttributes reads what follows the names.
func (p *commandParser) parseAttributes(c *Command) error {
	for p.skipBlanks(); p.position < len(p.line); p.skipBlanks() {
		if m := change().FindStringSubmatch(p.line[p.position:]); m != nil && (c.Verb == Set || c.Verb == Create) {
			p.position += len(m[0])
			value, err := p.parseValue()
			if err != nil {
				return err
			}
			c.Changes = append(c.Changes, AttributeChange{m[1], m[2], m[3], value})
			continue
		}
		m := attribute().FindStringSubmatch(p.line[p.position:])
		if m == nil || c.Verb == Set || c.Verb == Create || c.Verb == Delete {
			return p.syntaxError(p.position, "qmgr: Syntax error - cannot locate attribute")
		}
		p.position += len(m[0])
		c.Changes = append(c.Changes, AttributeChange{Name: m[1], Resource: m[2]})
	}
	if len(c.Changes) == 0 && (c.Verb == Set || c.Verb == Unset) {
		return p.syntaxError(p.position, "qmgr: Syntax error - cannot locate attribute")
	}
	return nil
}

// parseValue reads a value: quoted, or up to a comma before another assignment.
func (p *commandParser) parseValue() (string, error) {
	start := p.position
	if p.position < len(p.line) && (p.line[p.position] == '"' || p.line[p.position] == '\'') {
		end := strings.IndexByte(p.line[start+1:], p.line[start])
		if end < 0 {
			return "", p.syntaxError(start, "qmgr: Syntax error - no closing quote")
		}
		p.position = start + 1 + end + 1
		if p.skipBlanks(); p.position < len(p.line) {
			if p.line[p.position] != ',' {
				return "", p.syntaxError(p.position, "qmgr: Syntax error")
			}
			p.position++
		}
		return p.line[start+1 : start+1+end], nil
	}
	for ; p.position < len(p.line); p.position++ {
		if p.line[p.position] == ',' && change().MatchString(p.line[p.position+1:]) {
			value := strings.TrimSpace(p.line[start:p.position])
			p.position++
			return value, nil
		}
	}
	return strings.TrimSpace(p.line[start:]), nil
}
