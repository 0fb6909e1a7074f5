package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Verb is what an administrator wants done with an object.
type Verb string

// The verbs. They stand in logs on disk.
const (
	Set    Verb = "set"    // make it, or change the fields that are given
	Remove Verb = "remove" // take it away; a setting goes back to its default
	Reset  Verb = "reset"  // of submitters: forget what was used
)

// Verbs lists the verbs that a kind knows.
func Verbs(kind Kind) []Verb {
	if kind == KindSubmitter {
		return []Verb{Set, Remove, Reset}
	}
	return []Verb{Set, Remove}
}

// Command is one wish of an administrator.
type Command struct {
	Who     string // as in "ann@node"; empty for Roost itself
	Trusted bool   // root on a central manager, who needs no capability
	Verb    Verb
	Kind    Kind
	Name    string // Remove and Reset: of the object
	// Object says of Set what the object is, as JSON. Fields that it does not name stay as they are, and null takes one away (RFC 7396).
	Object json.RawMessage
	Whole  bool   // Set: fields that Object does not name are taken away
	Fresh  bool   // Set: an object of that name must not be there yet
	Unsure bool   // who sends it does not know the users in it: they must have an account
	Basis  []byte // the digest of the objects of that kind when it was thought out; empty: whatever they are by now
}

// maxObject bounds the JSON of an object, in bytes.
const maxObject = 1 << 20

// Check refuses a command that would be refused now, with the reason. Time counts as that of the latest entry.
func (l *Ledger) Check(c *Command) error {
	_, _, err := l.resolve(c)
	return err
}

// command applies a command, or says why not.
func (l *Ledger) command(c *Command) error {
	name, o, err := l.resolve(c)
	if err != nil {
		return err
	}
	switch {
	case c.Verb == Reset:
		l.book.Reset(l.time(), l.ParseSubmitter(name))
	case o != nil:
		l.put(c.Kind, name, o)
	default:
		delete(l.objects[c.Kind], name)
		l.changed(c.Kind, name)
	}
	return nil
}

// resolve finds out which object a command is about, and what Set would make of it.
func (l *Ledger) resolve(c *Command) (name string, o *object, err error) {
	if !slices.Contains(Kinds(), c.Kind) {
		return "", nil, refusal(roost.Invalid, fmt.Sprintf("%q", c.Kind), errors.New("no objects of that kind are known"))
	}
	if !slices.Contains(Verbs(c.Kind), c.Verb) {
		return "", nil, refusal(roost.Invalid, string(c.Kind), fmt.Errorf("%q is nothing that can be done with it", c.Verb))
	}
	if !c.Trusted {
		if err := l.May(c.Who, Allowing(c.Kind)); err != nil {
			return "", nil, fmt.Errorf("%s: %w", c.Kind, err)
		}
	}
	if len(c.Basis) > 0 && !bytes.Equal(c.Basis, l.Digest(c.Kind)) {
		return "", nil, refusal(roost.Conflict, string(c.Kind), errors.New("others have changed since this was thought out: look again"))
	}
	if c.Verb == Set {
		return l.resolveSet(c)
	}
	name = c.Name
	if c.Kind == KindSubmitter {
		name = SubmitterName(l.ParseSubmitter(name))
	}
	subject := fmt.Sprintf("%s %s", c.Kind, name)
	if c.Verb == Reset {
		if s := l.ParseSubmitter(name); !l.book.Has(s) {
			return "", nil, refusal(roost.NotFound, subject, errors.New("it has used nothing; roost shares lists those who have"))
		}
		return name, nil, nil
	}
	if l.objects[c.Kind][name] == nil {
		return "", nil, refusal(roost.NotFound, subject, errors.New("nothing of that name is set"+suggest(name, l.names(c.Kind))))
	}
	return name, nil, l.unused(c.Kind, name)
}

func (l *Ledger) resolveSet(c *Command) (name string, o *object, err error) {
	if len(c.Object) > maxObject {
		return "", nil, refusal(roost.Invalid, string(c.Kind), fmt.Errorf("it has %d bytes, and %d is the most", len(c.Object), maxObject))
	}
	wish, err := kinds()[c.Kind](c.Object)
	if err != nil {
		return "", nil, refusal(roost.Invalid, string(c.Kind), err)
	}
	name = wish.name()
	subject := strings.TrimSpace(fmt.Sprintf("%s %s", c.Kind, name))
	var text []byte
	old := l.objects[c.Kind][name]
	switch {
	case old != nil && c.Fresh:
		return "", nil, refusal(roost.Conflict, subject, errors.New("there is one already"))
	case old == nil && len(l.objects[c.Kind]) >= maxObjects:
		return "", nil, refusal(roost.Exhausted, subject, fmt.Errorf("there are %d already", maxObjects))
	case old != nil && !c.Whole:
		text, err = merge(old.text, c.Object)
	default:
		text, err = merge([]byte("{}"), c.Object)
	}
	if err != nil {
		return "", nil, refusal(roost.Invalid, subject, err)
	}
	t, err := kinds()[c.Kind](text)
	if err != nil {
		return "", nil, refusal(roost.Invalid, subject, err)
	}
	if err := l.whole(t, c.Unsure); err != nil {
		return "", nil, refusal(roost.Invalid, subject, err)
	}
	made := l.now
	if old != nil {
		made = old.made
	}
	return name, &object{text, t, c.Who, l.now, made}, nil
}

// whole refuses a thing that makes no sense, by itself or with what else there is.
func (l *Ledger) whole(t thing, unsure bool) error {
	if err := t.check(l); err != nil {
		return err
	}
	for _, g := range t.groups() {
		if l.objects[KindGroup][g] == nil {
			return fmt.Errorf("there is no group %q%s; make it first: roost group set %s", g, suggest(g, l.names(KindGroup)), g)
		}
	}
	if !unsure {
		return nil
	}
	known := map[string]bool{}
	for _, s := range l.book.Submitters() {
		known[s.Owner] = true
	}
	for _, u := range t.users() {
		if !known[u] {
			return fmt.Errorf("there is no user %q on this node, and none of that name has ever used the pool; --force sets it nevertheless", u)
		}
	}
	return nil
}

// unused refuses to remove what others need.
func (l *Ledger) unused(kind Kind, name string) error {
	var users []string
	switch {
	case kind == KindGroup:
		users = l.usersOf(name)
	case kind == KindQueue && l.Text(DefaultQueue) == name:
		users = []string{"setting " + DefaultQueue}
	}
	if len(users) == 0 {
		return nil
	}
	return refusal(roost.Conflict, fmt.Sprintf("%s %s", kind, name), fmt.Errorf("it is needed by %s: change or remove that first", list(users)))
}

func (l *Ledger) names(kind Kind) []string {
	var names []string
	for _, o := range l.Objects(kind) {
		names = append(names, o.Name)
	}
	return names
}

// merge lays a patch over an object (RFC 7396) and returns it with its keys in order. Numbers stay as they are written.
func merge(old, patch []byte) ([]byte, error) {
	a, err := decodeObject(old)
	if err != nil {
		return nil, err
	}
	b, err := decodeObject(patch)
	if err != nil {
		return nil, err
	}
	overlay(a, b)
	return json.Marshal(a)
}

func decodeObject(text []byte) (map[string]any, error) {
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	if o == nil || strings.TrimSpace(string(text[d.InputOffset():])) != "" {
		return nil, errors.New("it is not one JSON object")
	}
	return o, nil
}

func overlay(old, patch map[string]any) {
	for key, v := range patch { // the order does not matter: each key is one of a kind
		switch v := v.(type) {
		case nil:
			delete(old, key)
		case map[string]any:
			inner, ok := old[key].(map[string]any)
			if !ok {
				inner = map[string]any{}
			}
			overlay(inner, v)
			old[key] = inner
		default:
			old[key] = v
		}
	}
}

// LastChange is when an object was last set, and by whom.
func (o Object) LastChange() string {
	if o.By == "" {
		return o.At.Format(time.RFC3339)
	}
	return o.At.Format(time.RFC3339) + " by " + o.By
}

// Nodes are the machines that Set would name: those that drains and reservations are about.
func (l *Ledger) Nodes(c *Command) []string {
	_, o, err := l.resolve(c)
	if err != nil || o == nil {
		return nil
	}
	switch t := o.thing.(type) {
	case Drain:
		return []string{t.Node}
	case Comment:
		return []string{t.Node}
	case Reservation:
		return t.Nodes
	}
	return nil
}

// NameOf is what an object of that JSON is called among its kind.
func NameOf(kind Kind, object []byte) (string, error) {
	read := kinds()[kind]
	if read == nil {
		return "", refusal(roost.Invalid, fmt.Sprintf("%q", kind), errors.New("no objects of that kind are known"))
	}
	t, err := read(object)
	if err != nil {
		return "", refusal(roost.Invalid, string(kind), err)
	}
	return t.name(), nil
}
