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

// CommandVerb is the operation that a command performs on an object.
type CommandVerb string

// The verbs. They are written to logs on disk.
const (
	VerbSet    CommandVerb = "set"    // create the object, or change the given fields
	VerbRemove CommandVerb = "remove" // delete the object; a setting reverts to its default
	VerbReset  CommandVerb = "reset"  // for a submitter: reset the accumulated usage
)

// Verbs lists the verbs that are valid for a kind.
func Verbs(kind ObjectKind) []CommandVerb {
	if kind == KindSubmitter {
		return []CommandVerb{VerbSet, VerbRemove, VerbReset}
	}
	return []CommandVerb{VerbSet, VerbRemove}
}

// AdminCommand is one command of an administrator.
type AdminCommand struct {
	Who string // the user, as in "ann@node"; empty for Roost itself
	// the user is root on a central manager and needs no capability; of a secret: the
	// leader has compared the user with its owner
	Trusted bool
	Verb    CommandVerb
	Kind    ObjectKind
	Name    string // VerbRemove and VerbReset: the name of the object
	// Object is the object that VerbSet sets, as JSON. Fields that it does not name stay
	// as they are, and null removes one (RFC 7396).
	Object json.RawMessage
	Whole  bool   // VerbSet: fields that Object does not name are removed
	Fresh  bool   // VerbSet: no object of that name may exist yet
	Unsure bool   // the sender does not know the users in the object: each must have an account
	Basis  []byte // digest of the objects of that kind on which the command is based; empty: no check
}

// maxObject bounds the JSON of an object, in bytes.
const maxObject = 1 << 20

// Check returns the error with which Apply would refuse the command now. It uses the time
// of the latest entry.
func (l *Ledger) Check(c *AdminCommand) error {
	_, _, err := l.commands().resolveCommand(c)
	return err
}

// applyCommand applies a command or returns why it is refused.
func (l commandApplier) applyCommand(c *AdminCommand) error {
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

// resolveCommand finds the object of a command and, for VerbSet, builds its new value.
func (l commandApplier) resolveCommand(c *AdminCommand) (name string, o *storedObject, err error) {
	if objectReaders()[c.Kind] == nil {
		return "", nil, refusalError(roost.Invalid, fmt.Sprintf("%q", c.Kind),
			errors.New("no objects of that kind are known"))
	}
	if !slices.Contains(Verbs(c.Kind), c.Verb) {
		return "", nil, refusalError(roost.Invalid, string(c.Kind),
			fmt.Errorf("%q is not possible for this kind", c.Verb))
	}
	if !c.Trusted {
		if err := l.CheckCapability(c.Who, CapabilityFor(c.Kind)); err != nil {
			return "", nil, fmt.Errorf("%s: %w", c.Kind, err)
		}
	}
	if len(c.Basis) > 0 && !bytes.Equal(c.Basis, l.Digest(c.Kind)) {
		return "", nil, refusalError(roost.Conflict, string(c.Kind),
			errors.New("others have changed since this was prepared: look again"))
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
				errors.New("it has no usage; roost shares lists the submitters with usage"))
		}
		return name, nil, nil
	}
	if l.objects[c.Kind][name] == nil {
		return "", nil, refusalError(roost.NotFound, subject,
			errors.New("nothing of that name is set"+suggestName(name, l.objectNames(c.Kind))))
	}
	return name, nil, l.checkUnused(c.Kind, name)
}

func (l commandApplier) resolveSet(c *AdminCommand) (name string, o *storedObject, err error) {
	if len(c.Object) > maxObject {
		return "", nil, refusalError(roost.Invalid, string(c.Kind),
			fmt.Errorf("it has %d bytes, and %d is the most", len(c.Object), maxObject))
	}
	object, err := objectReaders()[c.Kind](c.Object)
	if err != nil {
		return "", nil, refusalError(roost.Invalid, string(c.Kind), err)
	}
	name = object.name()
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

// checkObject refuses an object that is invalid by itself or contradicts other objects.
func (l commandApplier) checkObject(t objectValue, unsure bool) error {
	if err := t.check(l.Ledger); err != nil {
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

// checkUnused refuses to remove an object that others need.
func (l commandApplier) checkUnused(kind ObjectKind, name string) error {
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

func (l commandApplier) objectNames(kind ObjectKind) []string {
	var names []string
	for _, o := range l.Objects(kind) {
		names = append(names, o.Name)
	}
	return names
}

// mergePatch applies a patch to an object (RFC 7396) and returns it with sorted keys.
// Numbers keep their notation.
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
	for key, v := range patch { // any order gives the same result, as the keys are distinct
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

// LastChange describes when and by whom the object was last set.
func (o PolicyObject) LastChange() string {
	if o.SetBy == "" {
		return o.SetAt.Format(time.RFC3339)
	}
	return o.SetAt.Format(time.RFC3339) + " by " + o.SetBy
}

// Nodes lists the machines of the drain or reservation that VerbSet would set.
func (l *Ledger) Nodes(c *AdminCommand) []string {
	_, o, err := l.commands().resolveCommand(c)
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

// NameOf returns the name of an object of that kind, given as JSON.
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
