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

// The kinds. They are written to logs on disk.
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
	KindSecret      ObjectKind = "secret" // of users, who set them by their own right
)

// objectValue is the decoded value of an object.
type objectValue interface {
	name() string // unique among the objects of the kind
	// check refuses a value that is invalid by itself or contradicts other objects. The
	// error names the fault and the remedy; the caller adds the object's name.
	check(l *Ledger) error
	// users lists the users that the object names, who may not exist.
	users() []string
	// groups lists the groups that must exist as long as the object does.
	groups() []string
}

// objectReader decodes an object from JSON.
type objectReader func(text []byte) (objectValue, error)

// objectReaders returns the decoders of all kinds.
func objectReaders() map[ObjectKind]objectReader {
	return map[ObjectKind]objectReader{
		KindSubmitter: readObject[SubmitterPolicy], KindGroup: readObject[AccountingGroup],
		KindQuota: readObject[BandQuota], KindLimit: readObject[ConcurrencyLimit], KindQueue: readObject[QueuePolicy],
		KindPool:  readObject[PoolLimits],
		KindAdmin: readObject[AdminRights], KindSetting: readObject[SettingValue],
		KindReservation: readObject[AdvanceReservation], KindDrain: readObject[MachineDrain],
		KindResource: readObject[CustomResource], KindComment: readObject[MachineComment],
		KindSecret: readObject[Secret],
	}
}

// Kinds lists the kinds that administrators set and everybody sees, sorted.
func Kinds() []ObjectKind {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(objectReaders())), func(k ObjectKind) bool {
		return k == KindSecret
	})
}

func readObject[T objectValue](text []byte) (objectValue, error) {
	var t T
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, jsonErrorText(err)
	}
	return t, nil
}

// jsonErrorText describes a JSON error in terms of the object.
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

// storedObject is one object as the ledger stores it.
type storedObject struct {
	text  []byte      // JSON with sorted keys, with fields that this version does not know
	value objectValue // nil: a kind or a form that this version does not know
	setBy string      // the user who set it last; empty for Roost itself
	setAt int64       // when it was last set, in unix nanoseconds
	made  int64       // when it was first set, in unix nanoseconds; for old objects the last set at that time
}

// PolicyObject is an object in the form for programs and people.
type PolicyObject struct {
	Kind  ObjectKind      `json:"kind"`
	Name  string          `json:"name"`
	Text  json.RawMessage `json:"object"`
	SetBy string          `json:"set_by,omitempty"`
	SetAt time.Time       `json:"set_at"`
	Made  time.Time       `json:"made_at"`
}

// Objects lists the stored objects of one kind by name.
func (l *Ledger) Objects(kind ObjectKind) []PolicyObject {
	var all []PolicyObject
	for _, name := range slices.Sorted(maps.Keys(l.objects[kind])) {
		o := l.objects[kind][name]
		all = append(all, PolicyObject{kind, name, o.text, o.setBy, time.Unix(0, o.setAt).UTC(),
			time.Unix(0, o.made).UTC()})
	}
	return all
}

// Digest returns a digest of all objects of a kind. It changes with each change of any of
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
func (l commandApplier) objectsNeeding(group string) []string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(l.objects)) {
		for t := range objectValues[objectValue](l.Ledger, kind) {
			if slices.Contains(t.groups(), group) {
				all = append(all, fmt.Sprintf("%s %s", kind, t.name()))
			}
		}
	}
	return all
}

// putObject stores an object.
func (l commandApplier) putObject(kind ObjectKind, name string, o *storedObject) {
	if l.objects[kind] == nil {
		l.objects[kind] = map[string]*storedObject{}
	}
	l.objects[kind][name] = o
	l.applyObjectChange(kind, name)
}

// applyObjectChange updates the accounts after a change of an object.
func (l commandApplier) applyObjectChange(kind ObjectKind, name string) {
	l.policyVersion++
	switch kind {
	case KindSubmitter:
		l.applyFactors(name)
	case KindSetting:
		switch name {
		case SettingHalfLife:
			l.accountant.SetHalfLife(l.clockTime(), l.SettingDuration(SettingHalfLife))
		case SettingElsewhereWeight:
			l.accountant.SetElsewhereWeight(l.clockTime(), l.SettingNumber(SettingElsewhereWeight))
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
