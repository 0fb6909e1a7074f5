package page

import (
	"fmt"
	"reflect"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/web/view"
)

// amountParts are an amount of cores or GPUs by state, as parts of a bar.
func amountParts(inUse, reclaimed, owner, drained, free, down float64) []BarPart {
	return stateParts([]float64{inUse, reclaimed, owner, drained, free, down},
		func(f float64) string { return numberText(f) })
}

// sizeParts are an amount of bytes by state, as parts of a bar.
func sizeParts(inUse, reclaimed, owner, drained, free, down float64) []BarPart {
	return stateParts([]float64{inUse, reclaimed, owner, drained, free, down},
		func(f float64) string { return roost.Bytes(f).String() })
}

// amountStates are the states of an amount, in the order of a bar.
var amountStates = [...]struct{ class, word string }{{"fill-running", "held"}, {"fill-reclaimed", "held, and lent"},
	{"fill-warn", "with owners"}, {"fill-bad", "drained"}, {"fill-free", "free"}, {"fill-down", "down"}}

func stateParts(amounts []float64, text func(float64) string) (parts []BarPart) {
	for i, s := range amountStates {
		if amounts[i] > 0 {
			parts = append(parts, BarPart{amounts[i], s.class, text(amounts[i]) + " " + s.word})
		}
	}
	return parts
}

// waitReasonText writes a kind of reason for a wait in words. It shows an unknown one as
// it was sent.
func waitReasonText(kind string) string {
	if text, ok := waitReasonTexts()[kind]; ok {
		return text
	}
	return kind
}

func waitReasonTexts() map[string]string {
	return map[string]string{"busy": "Machines are busy", "limit": "A limit or quota", "gang": "Room for a whole gang",
		"no match": "No machine matches the requirements", "policy": "Policies of the machines",
		"owner active": "Owners use their machines", "drained": "Machines are drained",
		"too small": "Machines are too small", "refused": "Machines refused the tasks",
		"kept apart": "Tasks that are kept apart", "reserved": "Machines are reserved",
		"held": "Room is held for earlier jobs", "unexplained": "Not explained yet", "other": "Other"}
}

// certaintyText writes what an estimate of a start is based on in words. It shows an
// unknown one as it was sent.
func certaintyText(word string) string {
	if text, ok := map[string]string{"walltime": "walltimes of the tasks before it",
		"prediction": "how long similar tasks took", "rate": "how fast tasks started lately"}[word]; ok {
		return text
	}
	return word
}

// waitingTasks returns the sum of the tasks that wait.
func waitingTasks(all []view.WaitReason) (n uint64) {
	for _, w := range all {
		n += w.Tasks
	}
	return n
}

// laterText writes when something happens, in seconds from now on; nil: not in the time
// that was looked at.
func laterText(seconds *float64) string {
	switch {
	case seconds == nil:
		return "not seen"
	case *seconds < 1:
		return "at once"
	}
	return "in " + spanText(*seconds)
}

// maxFew is how many rows of a long list a page shows. The API has all.
const maxFew = 200

// fewOf returns the first elements of a list.
func fewOf(list any) (any, error) {
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice {
		return nil, fmt.Errorf("a %T is no list", list)
	}
	return v.Slice(0, min(v.Len(), maxFew)).Interface(), nil
}

// newestOf returns the last elements of a list, the last first.
func newestOf(list any) (any, error) {
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice {
		return nil, fmt.Errorf("a %T is no list", list)
	}
	last := reflect.MakeSlice(v.Type(), 0, min(v.Len(), maxFew))
	for i := range min(v.Len(), maxFew) {
		last = reflect.Append(last, v.Index(v.Len()-1-i))
	}
	return last.Interface(), nil
}
