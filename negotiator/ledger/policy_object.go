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

// ObjectKind is a kind of object that administrators set.
type ObjectKind string

// The kinds. They stand in logs on disk.
const (
	KindSubmitter   ObjectKind = "submitter"
	KindGroup       ObjectKind = "group"
	KindQuota       ObjectKind = "quota"
	KindLimit       ObjectKind = "limit"
	KindQueue       ObjectKind = "queue"
	KindPool        ObjectKind = "pool"
	KindAdmin       ObjectKind = "admin"
	KindSetting     ObjectKind = "setting"
	KindReservation ObjectKind = "reservation"
	KindDrain       ObjectKind = "drain"
	KindResource    ObjectKind = "resource"
	KindComment     ObjectKind = "comment"
)

// objectValue is what an object says, decoded.
type objectValue interface {
	name() string // what it is found by among its kind
	// check refuses what makes no sense by itself, or with what else is set. The error
	// says what and the cure; who calls adds of which object.
	check(l *Ledger) error
	// users are the users that it names, who may not exist.
	users() []string
	// groups are the groups that have to exist as long as it does.
	groups() []string
}

// objectReader makes a thing of JSON.
type objectReader func(text []byte) (objectValue, error)

// objectReaders is the table of all kinds.
func objectReaders() map[ObjectKind]objectReader {
	return map[ObjectKind]objectReader{
		KindSubmitter: readObject[SubmitterPolicy], KindGroup: readObject[AccountingGroup],
		KindQuota: readObject[BandQuota], KindLimit: readObject[ConcurrencyLimit], KindQueue: readObject[QueuePolicy],
		KindPool:  readObject[PoolLimits],
		KindAdmin: readObject[AdminRights], KindSetting: readObject[SettingValue],
		KindReservation: readObject[AdvanceReservation], KindDrain: readObject[MachineDrain],
		KindResource: readObject[CustomResource], KindComment: readObject[MachineComment],
	}
}

// Kinds lists the kinds that this version knows, in order.
func Kinds() []ObjectKind { return slices.Sorted(maps.Keys(objectReaders())) }

func readObject[T objectValue](text []byte) (objectValue, error) {
	var t T
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, jsonErrorText(err)
	}
	return t, nil
}

// jsonErrorText says what is wrong with JSON in words of the object.
func jsonErrorText(err error) error {
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

// storedObject is one object as it is kept.
type storedObject struct {
	text  []byte      // JSON, keys in order, with fields that this version does not know
	value objectValue // nil: of a kind, or in a form, that this version does not know
	setBy string      // who set it last; empty for Roost itself
	setAt int64       // when
	made  int64       // when it was first set; of an object from before this was noted, when it was last set then
}

// PolicyObject is an object for programs and people.
type PolicyObject struct {
	Kind  ObjectKind      `json:"kind"`
	Name  string          `json:"name"`
	Text  json.RawMessage `json:"object"`
	SetBy string          `json:"set_by,omitempty"`
	SetAt time.Time       `json:"set_at"`
	Made  time.Time       `json:"made_at"`
}

// Objects lists the objects of one kind by name, as they are kept.
func (l *Ledger) Objects(kind ObjectKind) []PolicyObject {
	var all []PolicyObject
	for _, name := range slices.Sorted(maps.Keys(l.objects[kind])) {
		o := l.objects[kind][name]
		all = append(all, PolicyObject{kind, name, o.text, o.setBy, time.Unix(0, o.setAt).UTC(),
			time.Unix(0, o.made).UTC()})
	}
	return all
}

// Digest is one of all objects of a kind: it is another one after each change of any of
// them.
func (l *Ledger) Digest(kind ObjectKind) []byte {
	h := sha256.New()
	for _, o := range l.Objects(kind) {
		fmt.Fprintf(h, "%q %q %q %d\n", o.Name, o.Text, o.SetBy, o.SetAt.UnixNano())
	}
	return h.Sum(nil)
}

// objectValues ranges over the decoded objects of one kind, by name.
func objectValues[T objectValue](l *Ledger, kind ObjectKind) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, name := range slices.Sorted(maps.Keys(l.objects[kind])) {
			if t, ok := l.objects[kind][name].value.(T); ok && !yield(t) {
				return
			}
		}
	}
}

func objectNamed[T objectValue](l *Ledger, kind ObjectKind, name string) (t T, ok bool) {
	if o := l.objects[kind][name]; o != nil {
		t, ok = o.value.(T)
	}
	return t, ok
}

// objectsNeeding lists the objects that need a group, for the message that refuses to
// remove it.
func (l *Ledger) objectsNeeding(group string) []string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(l.objects)) {
		for t := range objectValues[objectValue](l, kind) {
			if slices.Contains(t.groups(), group) {
				all = append(all, fmt.Sprintf("%s %s", kind, t.name()))
			}
		}
	}
	return all
}

// putObject keeps an object.
func (l *Ledger) putObject(kind ObjectKind, name string, o *storedObject) {
	if l.objects[kind] == nil {
		l.objects[kind] = map[string]*storedObject{}
	}
	l.objects[kind][name] = o
	l.applyObjectChange(kind, name)
}

// applyObjectChange does what follows from a change of an object for the accounts.
func (l *Ledger) applyObjectChange(kind ObjectKind, name string) {
	l.policyVersion++
	switch kind {
	case KindSubmitter:
		l.applyFactors(name)
	case KindSetting:
		if name == SettingHalfLife {
			l.accountant.SetHalfLife(l.clockTime(), l.SettingDuration(SettingHalfLife))
		}
	}
}

func refusalError(kind roost.ErrorKind, subject string, cause error) error {
	return fmt.Errorf("%s: %w: %w", subject, kind, cause)
}

func listText(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + fmt.Sprintf(" and %d more", len(names)-5)
	}
	return strings.Join(names, ", ")
}
