package qmgr

import (
	"fmt"
	"regexp"
	"strings"
)

// Verb is what a command does.
type Verb string

// The verbs.
const (
	Create Verb = "create"
	Delete Verb = "delete"
	Set    Verb = "set"
	Unset  Verb = "unset"
	List   Verb = "list"
	Print  Verb = "print"
	Active Verb = "active"
	Import Verb = "import"
	Export Verb = "export"
	Help   Verb = "help"
	Quit   Verb = "quit"
)

// Kind is of what sort the objects of a command are.
type Kind string

// The kinds.
const (
	Server   Kind = "server"
	Queue    Kind = "queue"
	Node     Kind = "node"
	Resource Kind = "resource"
	Sched    Kind = "sched"
	Hook     Kind = "hook"
)

// Command is one line.
type Command struct {
	Verb    Verb
	Kind    Kind     // empty: Help and Quit, and Active that asks
	Names   []string // of objects, without what stands behind an @; none for the active ones
	All     bool     // all there are are meant: an @ stands alone before a server
	Changes []Change // Create, Set and Unset; of List and Print the attributes that are wanted, without values
	Topic   string   // Help
}

// Change is one attribute to be set.
type Change struct {
	Name, Resource string
	Op             string // "=", "+=", "-="; "" of Unset
	Value          string
}

// Attribute is how the change names its attribute.
func (c Change) Attribute() string {
	if c.Resource == "" {
		return c.Name
	}
	return c.Name + "." + c.Resource
}

// SyntaxError is a line that is no command.
type SyntaxError struct {
	Why  string
	Line string
	At   int // in Line, in bytes; below 0 where that says nothing
}

func (e *SyntaxError) Error() string {
	if e.At < 0 {
		return e.Why
	}
	return fmt.Sprintf("%s\n%s\n%s^", e.Why, e.Line, strings.Repeat(" ", e.At))
}

var (
	verbs = []Verb{Active, Create, Delete, Export, Help, Import, List, Print, Quit, Set, Unset}
	kinds = []Kind{Hook, Node, Queue, Resource, Sched, Server}
)

// Split takes a line apart into the commands that are in it, which end with semicolons. A comment begins with a # before which there is nothing or a blank.
func Split(line string) (commands []string) {
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

// Parse reads one command. Of an empty one, and of a comment, ok is false.
func Parse(line string) (c Command, ok bool, err error) {
	p := parser{line: line}
	word := p.word()
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
		return c, false, p.fail(-1, "qmgr: Illegal operation: "+word+"\nTry 'help' if you are having trouble.")
	case Help:
		c.Topic = p.word()
		return c, true, nil
	case Quit:
		return c, true, nil
	}
	switch word = p.word(); {
	case word == "" && c.Verb == Active:
		return c, true, nil
	case word == "":
		return c, false, p.fail(-1, "qmgr: No object type given")
	}
	for _, k := range kinds {
		if w := strings.ToLower(word); w != "" && c.Kind == "" && (strings.HasPrefix(string(k), w) || w == string(k)+"s") {
			c.Kind = k
		}
	}
	if strings.EqualFold(word, "s") || strings.EqualFold(word, "se") {
		c.Kind = Server
	}
	if c.Kind == "" {
		return c, false, p.fail(-1, "qmgr: Illegal object type: "+word+".")
	}
	if err := p.names(&c); err != nil {
		return c, false, err
	}
	if c.Verb == Import || c.Verb == Export {
		return c, true, nil // what stands behind the name is of no use without hooks
	}
	return c, true, p.attributes(&c)
}

// parser is where in a line it is read.
type parser struct {
	line string
	at   int
}

func (p *parser) fail(at int, why string) error { return &SyntaxError{why, p.line, at} }

// word is the next one; empty at the end.
func (p *parser) word() string {
	p.skip()
	start := p.at
	for p.at < len(p.line) && !strings.ContainsRune(" \t", rune(p.line[p.at])) {
		p.at++
	}
	return p.line[start:p.at]
}

func (p *parser) skip() {
	for p.at < len(p.line) && strings.ContainsRune(" \t", rune(p.line[p.at])) {
		p.at++
	}
}

// change is the beginning of what is set: an attribute with an operator behind it.
var change = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z0-9_]+))?\s*(\+=|-=|=)\s*`)

// attribute is one that is only named.
var attribute = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z0-9_]+))?\s*(,|$)`)

// names reads the names of objects, if the next word is no attribute with something set.
func (p *parser) names(c *Command) error {
	if p.skip(); change.MatchString(p.line[p.at:]) || p.at == len(p.line) {
		return nil
	}
	if c.Kind == Server && c.Verb != Create && c.Verb != Delete && !strings.Contains(p.line[p.at:], "@") && attribute.MatchString(p.line[p.at:]) {
		return nil // there is one server: what is named is an attribute of it
	}
	at := p.at
	word := p.word()
	for strings.HasSuffix(word, ",") { // "a, b"
		word += p.word()
	}
	for _, name := range strings.Split(word, ",") {
		name, _, directed := strings.Cut(name, "@")
		if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.[]") != "" {
			return p.fail(at, "qmgr: Illegal object name: "+name)
		}
		if name != "" {
			c.Names = append(c.Names, name)
		} else if directed {
			c.All = true
		}
	}
	return nil
}

// attributes reads what is behind the names.
func (p *parser) attributes(c *Command) error {
	for p.skip(); p.at < len(p.line); p.skip() {
		if m := change.FindStringSubmatch(p.line[p.at:]); m != nil && (c.Verb == Set || c.Verb == Create) {
			p.at += len(m[0])
			value, err := p.value()
			if err != nil {
				return err
			}
			c.Changes = append(c.Changes, Change{m[1], m[2], m[3], value})
			continue
		}
		m := attribute.FindStringSubmatch(p.line[p.at:])
		if m == nil || c.Verb == Set || c.Verb == Create || c.Verb == Delete {
			return p.fail(p.at, "qmgr: Syntax error - cannot locate attribute")
		}
		p.at += len(m[0])
		c.Changes = append(c.Changes, Change{Name: m[1], Resource: m[2]})
	}
	if len(c.Changes) == 0 && (c.Verb == Set || c.Verb == Unset) {
		return p.fail(p.at, "qmgr: Syntax error - cannot locate attribute")
	}
	return nil
}

// value reads what an attribute is set to: up to a comma behind which another one is set, or in quotes.
func (p *parser) value() (string, error) {
	start := p.at
	if p.at < len(p.line) && (p.line[p.at] == '"' || p.line[p.at] == '\'') {
		end := strings.IndexByte(p.line[start+1:], p.line[start])
		if end < 0 {
			return "", p.fail(start, "qmgr: Syntax error - no closing quote")
		}
		p.at = start + 1 + end + 1
		if p.skip(); p.at < len(p.line) {
			if p.line[p.at] != ',' {
				return "", p.fail(p.at, "qmgr: Syntax error")
			}
			p.at++
		}
		return p.line[start+1 : start+1+end], nil
	}
	for ; p.at < len(p.line); p.at++ {
		if p.line[p.at] == ',' && change.MatchString(p.line[p.at+1:]) {
			value := strings.TrimSpace(p.line[start:p.at])
			p.at++
			return value, nil
		}
	}
	return strings.TrimSpace(p.line[start:]), nil
}
