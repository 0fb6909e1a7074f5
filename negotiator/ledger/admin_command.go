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

// CommandVerb is what an administrator wants done with an object.
type CommandVerb string

// The verbs. They stand in logs on disk.
const (
	VerbSet    CommandVerb = "set"    // make it, or change the fields that are given
	VerbRemove CommandVerb = "remove" // take it away; a setting goes back to its default
	VerbReset  CommandVerb = "reset"  // of submitters: forget what was used
)

// Verbs lists the verbs that a kind knows.
func Verbs(kind ObjectKind) []CommandVerb {
	if kind == KindSubmitter {
		return []CommandVerb{VerbSet, VerbRemove, VerbReset}
	}
	return []CommandVerb{VerbSet, VerbRemove}
}

// AdminCommand is one wish of an administrator.
type AdminCommand struct {
	Who     string // as in "ann@node"; empty for Roost itself
	Trusted bool   // root on a central manager, who needs no capability
	Verb    CommandVerb
	Kind    ObjectKind
	Name    string // Remove and VerbReset: of the object
	// Object says of VerbSet what the object is, as JSON. Fields that it does not name
	// stay as they are, and null takes one away (RFC 7396).
	Object json.RawMessage
	Whole  bool   // Set: fields that Object does not name are taken away
	Fresh  bool   // Set: an object of that name must not be there yet
	Unsure bool   // who sends it does not know the users in it: they must have an account
	Basis  []byte // the digest of the objects of that kind when it was thought out; empty: whatever they are by now
}

// maxObject bounds the JSON of an object, in bytes.
const maxObject = 1 << 20

// Check refuses a command that would be refused now, with the reason. Time counts as that
// of the latest entry.
func (l *Ledger) Check(c *AdminCommand) error {
	_, _, err := l.resolveCommand(c)
	return err
}

// applyCommand applies a command, or says why not.
func (l *Ledger) applyCommand(c *AdminCommand) error {
	name, o, err := l.resolveCommand(c)
	if err != nil {
		return err
	}
	switch {
	case c.Verb == VerbReset:
		l.accountant.ResetUsage(l.clockTime(), l.ParseSubmitter(name))
	case o != nil:
		l.putObject(c.Kind, name, o)
	default:
		delete(l.objects[c.Kind], name)
		l.applyObjectChange(c.Kind, name)
	}
	return nil
}

// resolveCommand finds out which object a command is about, and what VerbSet would make
// of it.
func (l *Ledger) resolveCommand(c *AdminCommand) (name string, o *storedObject, err error) {
	if !slices.Contains(Kinds(), c.Kind) {
		return "", nil, refusalError(roost.Invalid, fmt.Sprintf("%q", c.Kind),
			errors.New("no objects of that kind are known"))
	}
	if !slices.Contains(Verbs(c.Kind), c.Verb) {
		return "", nil, refusalError(roost.Invalid, string(c.Kind),
			fmt.Errorf("%q is nothing that can be done with it", c.Verb))
	}
	if !c.Trusted {
		if err := l.CheckCapability(c.Who, CapabilityFor(c.Kind)); err != nil {
			return "", nil, fmt.Errorf("%s: %w", c.Kind, err)
		}
	}
	if len(c.Basis) > 0 && !bytes.Equal(c.Basis, l.Digest(c.Kind)) {
		return "", nil, refusalError(roost.Conflict, string(c.Kind),
			errors.New("others have changed since this was thought out: look again"))
	}
	if c.Verb == VerbSet {
		return l.resolveSet(c)
	}
	name = c.Name
	if c.Kind == KindSubmitter {
		name = SubmitterName(l.ParseSubmitter(name))
	}
	subject := fmt.Sprintf("%s %s", c.Kind, name)
	if c.Verb == VerbReset {
		if s := l.ParseSubmitter(name); !l.accountant.HasAccount(s) {
			return "", nil, refusalError(roost.NotFound, subject,
				errors.New("it has used nothing; roost shares lists those who have"))
		}
		return name, nil, nil
	}
	if l.objects[c.Kind][name] == nil {
		return "", nil, refusalError(roost.NotFound, subject,
			errors.New("nothing of that name is set"+suggestName(name, l.objectNames(c.Kind))))
	}
	return name, nil, l.checkUnused(c.Kind, name)
}

func (l *Ledger) resolveSet(c *AdminCommand) (name string, o *storedObject, err error) {
	if len(c.Object) > maxObject {
		return "", nil, refusalError(roost.Invalid, string(c.Kind),
			fmt.Errorf("it has %d bytes, and %d is the most", len(c.Object), maxObject))
	}
	wish, err := objectReaders()[c.Kind](c.Object)
	if err != nil {
		return "", nil, refusalError(roost.Invalid, string(c.Kind), err)
	}
	name = wish.name()
	subject := strings.TrimSpace(fmt.Sprintf("%s %s", c.Kind, name))
	var text []byte
	old := l.objects[c.Kind][name]
	switch {
	case old != nil && c.Fresh:
		return "", nil, refusalError(roost.Conflict, subject, errors.New("there is one already"))
	case old == nil && len(l.objects[c.Kind]) >= maxObjects:
		return "", nil, refusalError(roost.Exhausted, subject, fmt.Errorf("there are %d already", maxObjects))
	case old != nil && !c.Whole:
		text, err = mergePatch(old.text, c.Object)
	default:
		text, err = mergePatch([]byte("{}"), c.Object)
	}
	if err != nil {
		return "", nil, refusalError(roost.Invalid, subject, err)
	}
	t, err := objectReaders()[c.Kind](text)
	if err != nil {
		return "", nil, refusalError(roost.Invalid, subject, err)
	}
	if err := l.checkObject(t, c.Unsure); err != nil {
		return "", nil, refusalError(roost.Invalid, subject, err)
	}
	made := l.now
	if old != nil {
		made = old.made
	}
	return name, &storedObject{text, t, c.Who, l.now, made}, nil
}

// checkObject refuses a thing that makes no sense, by itself or with what else there is.
func (l *Ledger) checkObject(t objectValue, unsure bool) error {
	if err := t.check(l); err != nil {
		return err
	}
	for _, g := range t.groups() {
		if l.objects[KindGroup][g] == nil {
			return fmt.Errorf("there is no group %q%s; make it first: roost group set %s",
				g, suggestName(g, l.objectNames(KindGroup)), g)
		}
	}
	if !unsure {
		return nil
	}
	known := map[string]bool{}
	for _, s := range l.accountant.Submitters() {
		known[s.Owner] = true
	}
	for _, u := range t.users() {
		if !known[u] {
			return fmt.Errorf("there is no user %q on this node, and none of that name has ever used the pool; "+
				"--force sets it nevertheless", u)
		}
	}
	return nil
}

// checkUnused refuses to remove what others need.
func (l *Ledger) checkUnused(kind ObjectKind, name string) error {
	var users []string
	switch {
	case kind == KindGroup:
		users = l.objectsNeeding(name)
	case kind == KindQueue && l.SettingText(SettingDefaultQueue) == name:
		users = []string{"setting " + SettingDefaultQueue}
	}
	if len(users) == 0 {
		return nil
	}
	return refusalError(roost.Conflict, fmt.Sprintf("%s %s", kind, name),
		fmt.Errorf("it is needed by %s: change or remove that first", listText(users)))
}

func (l *Ledger) objectNames(kind ObjectKind) []string {
	var names []string
	for _, o := range l.Objects(kind) {
		names = append(names, o.Name)
	}
	return names
}

// mergePatch lays a patch over an object (RFC 7396) and returns it with its keys in
// order. Numbers stay as they are written.
func mergePatch(old, patch []byte) ([]byte, error) {
	a, err := decodeObject(old)
	if err != nil {
		return nil, err
	}
	b, err := decodeObject(patch)
	if err != nil {
		return nil, err
	}
	overlayFields(a, b)
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

func overlayFields(old, patch map[string]any) {
	for key, v := range patch { // the order does not matter: each key is one of a kind
		switch v := v.(type) {
		case nil:
			delete(old, key)
		case map[string]any:
			inner, ok := old[key].(map[string]any)
			if !ok {
				inner = map[string]any{}
			}
			overlayFields(inner, v)
			old[key] = inner
		default:
			old[key] = v
		}
	}
}

// LastChange is when an object was last set, and by whom.
func (o PolicyObject) LastChange() string {
	if o.SetBy == "" {
		return o.SetAt.Format(time.RFC3339)
	}
	return o.SetAt.Format(time.RFC3339) + " by " + o.SetBy
}

// Nodes are the machines that VerbSet would name: those that drains and reservations are
// about.
func (l *Ledger) Nodes(c *AdminCommand) []string {
	_, o, err := l.resolveCommand(c)
	if err != nil || o == nil {
		return nil
	}
	switch t := o.value.(type) {
	case MachineDrain:
		return []string{t.Node}
	case MachineComment:
		return []string{t.Node}
	case AdvanceReservation:
		return t.Nodes
	}
	return nil
}

// NameOf is what an object of that JSON is called among its kind.
func NameOf(kind ObjectKind, object []byte) (string, error) {
	read := objectReaders()[kind]
	if read == nil {
		return "", refusalError(roost.Invalid, fmt.Sprintf("%q", kind), errors.New("no objects of that kind are known"))
	}
	t, err := read(object)
	if err != nil {
		return "", refusalError(roost.Invalid, string(kind), err)
	}
	return t.name(), nil
}
