package qmgr

import (
	"fmt"
	"regexp"
	"strings"
)

// CommandVerb is what a command does.
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

// ObjectKind is of what sort the objects of a command are.
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

// Command is one line.
type Command struct {
	Verb    CommandVerb
	Kind    ObjectKind        // empty: Help and Quit, and Active that asks
	Names   []string          // of objects, without what stands behind an @; none for the active ones
	All     bool              // all there are are meant: an @ stands alone before a server
	Changes []AttributeChange // Create, Set and Unset; of List and Print the attributes that are wanted, without values
	Topic   string            // Help
}

// AttributeChange is one attribute to be set.
type AttributeChange struct {
	Name, Resource string
	Op             string // "=", "+=", "-="; "" of Unset
	Value          string
}

// Attribute is how the change names its attribute.
func (c AttributeChange) Attribute() string {
	if c.Resource == "" {
		return c.Name
	}
	return c.Name + "." + c.Resource
}

// SyntaxError is a line that is no command.
type SyntaxError struct {
	Reason string
	Line   string
	At     int // in Line, in bytes; below 0 where that says nothing
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

// SplitCommands takes a line apart into the commands that are in it, which end with
// semicolons. A comment begins with a # before which there is nothing or a blank.
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

// ParseCommand reads one command. Of an empty one, and of a comment, ok is false.
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
		return c, true, nil // what stands behind the name is of no use without hooks
	}
	return c, true, p.parseAttributes(&c)
}

// commandParser is where in a line it is read.
type commandParser struct {
	line     string
	position int
}

func (p *commandParser) syntaxError(at int, why string) error { return &SyntaxError{why, p.line, at} }

// nextWord is the next one; empty at the end.
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

// change is the beginning of what is set: an attribute with an operator behind it.
var change = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z0-9_]+))?\s*(\+=|-=|=)\s*`)

// attribute is one that is only named.
var attribute = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z0-9_]+))?\s*(,|$)`)

// parseNames reads the names of objects, if the next word is no attribute with something
// set.
func (p *commandParser) parseNames(c *Command) error {
	if p.skipBlanks(); change.MatchString(p.line[p.position:]) || p.position == len(p.line) {
		return nil
	}
	if c.Kind == Server && c.Verb != Create && c.Verb != Delete && !strings.Contains(p.line[p.position:], "@") &&
		attribute.MatchString(p.line[p.position:]) {
		return nil // there is one server: what is named is an attribute of it
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

// parseAttributes reads what is behind the names.
func (p *commandParser) parseAttributes(c *Command) error {
	for p.skipBlanks(); p.position < len(p.line); p.skipBlanks() {
		if m := change.FindStringSubmatch(p.line[p.position:]); m != nil && (c.Verb == Set || c.Verb == Create) {
			p.position += len(m[0])
			value, err := p.parseValue()
			if err != nil {
				return err
			}
			c.Changes = append(c.Changes, AttributeChange{m[1], m[2], m[3], value})
			continue
		}
		m := attribute.FindStringSubmatch(p.line[p.position:])
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

// parseValue reads what an attribute is set to: up to a comma behind which another one is
// set, or in quotes.
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
		if p.line[p.position] == ',' && change.MatchString(p.line[p.position+1:]) {
			value := strings.TrimSpace(p.line[start:p.position])
			p.position++
			return value, nil
		}
	}
	return strings.TrimSpace(p.line[start:]), nil
}
