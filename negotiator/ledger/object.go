package ledger

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// Kind is a kind of object that administrators set.
type Kind string

// The kinds. They stand in logs on disk.
const (
	KindSubmitter   Kind = "submitter"
	KindGroup       Kind = "group"
	KindQuota       Kind = "quota"
	KindLimit       Kind = "limit"
	KindQueue       Kind = "queue"
	KindPool        Kind = "pool"
	KindAdmin       Kind = "admin"
	KindSetting     Kind = "setting"
	KindReservation Kind = "reservation"
	KindDrain       Kind = "drain"
	KindResource    Kind = "resource"
	KindComment     Kind = "comment"
)

// thing is what an object says, decoded.
type thing interface {
	name() string // what it is found by among its kind
	// check refuses what makes no sense by itself, or with what else is set. The error says what and the cure; who calls adds of which object.
	check(l *Ledger) error
	// users are the users that it names, who may not exist.
	users() []string
	// groups are the groups that have to exist as long as it does.
	groups() []string
}

// reader makes a thing of JSON.
type reader func(text []byte) (thing, error)

// kinds is the table of all kinds.
func kinds() map[Kind]reader {
	return map[Kind]reader{
		KindSubmitter: read[Submitter], KindGroup: read[Group], KindQuota: read[Quota], KindLimit: read[Limit], KindQueue: read[Queue], KindPool: read[Pool],
		KindAdmin: read[Admin], KindSetting: read[Setting], KindReservation: read[Reservation], KindDrain: read[Drain], KindResource: read[Resource], KindComment: read[Comment],
	}
}

// Kinds lists the kinds that this version knows, in order.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds())) }

func read[T thing](text []byte) (thing, error) {
	var t T
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, misread(err)
	}
	return t, nil
}

// misread says what is wrong with JSON in words of the object.
func misread(err error) error {
	var form *json.UnmarshalTypeError
	var when *time.ParseError
	switch {
	case errors.As(err, &form) && form.Field != "":
		return fmt.Errorf("%s cannot be a JSON %s", form.Field, form.Value)
	case errors.As(err, &form):
		return fmt.Errorf("it is a JSON %s, and an object is wanted", form.Value)
	case errors.As(err, &when):
		return fmt.Errorf("%s is not a time: write it as in \"2026-01-31T08:00:00Z\"", when.Value)
	}
	return err
}

// object is one object as it is kept.
type object struct {
	text  []byte // JSON, keys in order, with fields that this version does not know
	thing thing  // nil: of a kind, or in a form, that this version does not know
	by    string // who set it last; empty for Roost itself
	at    int64  // when
	made  int64  // when it was first set; of an object from before this was noted, when it was last set then
}

// Object is an object for programs and people.
type Object struct {
	Kind Kind            `json:"kind"`
	Name string          `json:"name"`
	Text json.RawMessage `json:"object"`
	By   string          `json:"set_by,omitempty"`
	At   time.Time       `json:"set_at"`
	Made time.Time       `json:"made_at"`
}

// Objects lists the objects of one kind by name, as they are kept.
func (l *Ledger) Objects(kind Kind) []Object {
	var all []Object
	for _, name := range slices.Sorted(maps.Keys(l.objects[kind])) {
		o := l.objects[kind][name]
		all = append(all, Object{kind, name, o.text, o.by, time.Unix(0, o.at).UTC(), time.Unix(0, o.made).UTC()})
	}
	return all
}

// Digest is one of all objects of a kind: it is another one after each change of any of them.
func (l *Ledger) Digest(kind Kind) []byte {
	h := sha256.New()
	for _, o := range l.Objects(kind) {
		fmt.Fprintf(h, "%q %q %q %d\n", o.Name, o.Text, o.By, o.At.UnixNano())
	}
	return h.Sum(nil)
}

// things ranges over the decoded objects of one kind, by name.
func things[T thing](l *Ledger, kind Kind) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, name := range slices.Sorted(maps.Keys(l.objects[kind])) {
			if t, ok := l.objects[kind][name].thing.(T); ok && !yield(t) {
				return
			}
		}
	}
}

func one[T thing](l *Ledger, kind Kind, name string) (t T, ok bool) {
	if o := l.objects[kind][name]; o != nil {
		t, ok = o.thing.(T)
	}
	return t, ok
}

// usersOf lists the objects that need a group, for the message that refuses to remove it.
func (l *Ledger) usersOf(group string) []string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(l.objects)) {
		for t := range things[thing](l, kind) {
			if slices.Contains(t.groups(), group) {
				all = append(all, fmt.Sprintf("%s %s", kind, t.name()))
			}
		}
	}
	return all
}

// put keeps an object.
func (l *Ledger) put(kind Kind, name string, o *object) {
	if l.objects[kind] == nil {
		l.objects[kind] = map[string]*object{}
	}
	l.objects[kind][name] = o
	l.changed(kind, name)
}

// changed does what follows from a change of an object for the accounts.
func (l *Ledger) changed(kind Kind, name string) {
	l.policy++
	switch kind {
	case KindSubmitter:
		l.factor(name)
	case KindSetting:
		if name == HalfLife {
			l.book.SetHalfLife(l.time(), l.Duration(HalfLife))
		}
	}
}

func refusal(kind roost.Kind, subject string, cause error) error {
	return fmt.Errorf("%s: %w: %w", subject, kind, cause)
}

func list(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + fmt.Sprintf(" and %d more", len(names)-5)
	}
	return strings.Join(names, ", ")
}
