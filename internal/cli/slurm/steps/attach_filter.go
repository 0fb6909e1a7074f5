package steps

import (
	"fmt"
	"strconv"
)

// AllTasks is the filter that lets the streams of all tasks through.
const AllTasks = -1

// AttachFilter says which streams of a step sattach(1) is about. Each is that of all
// tasks, or of one by its number in the step.
type AttachFilter struct {
	Input, Output, Error int64
	Label                bool // the number of its task stands before each line
}

// labelWord is the argument that asks for labels.
const labelWord = "label"

// Arguments are those of the control command. A filter that an earlier release knew is
// written as it was: one number for all streams.
func (f AttachFilter) Arguments() []string {
	words := []string{"attach", strconv.FormatInt(f.Input, 10)}
	if f.Output != f.Input || f.Error != f.Input || f.Label {
		words = append(words, strconv.FormatInt(f.Output, 10), strconv.FormatInt(f.Error, 10))
	}
	if f.Label {
		words = append(words, labelWord)
	}
	return words
}

// parse reads the words that follow "attach".
func (f *AttachFilter) parse(words []string) error {
	*f = AttachFilter{AllTasks, AllTasks, AllTasks, false}
	for i, word := range words {
		if i == 3 {
			if f.Label = word == labelWord; !f.Label {
				return fmt.Errorf("step-control: %q is not what can follow the tasks: %q can", word, labelWord)
			}
			continue
		}
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil || n < AllTasks || i > 3 {
			return fmt.Errorf("step-control: %q is no number of a task", word)
		}
		switch i {
		case 0:
			*f = AttachFilter{n, n, n, false}
		case 1:
			f.Output, f.Error = n, n
		case 2:
			f.Error = n
		}
	}
	return nil
}

// check returns an error if a filter names a task that a step of so many does not have.
func (f *AttachFilter) check(size uint32) error {
	for _, n := range []int64{f.Input, f.Output, f.Error} {
		if n >= int64(size) {
			return fmt.Errorf("sattach: error: the step has no task %d: its tasks are 0 to %d", n, size-1)
		}
	}
	return nil
}

// isShown reports whether a filter lets the stream of a task through.
func isShown(filter int64, task uint32) bool { return filter == AllTasks || filter == int64(task) }

// openOutputs makes ready what is written to. Labels are as wide as the greatest number
// of a task of the step, as those of srun(1) are.
func (k *controlCall) openOutputs(size uint32) {
	width := 0
	if k.filter.Label {
		width = len(strconv.FormatUint(uint64(max(size, 1)-1), 10))
	}
	k.stdout.out, k.stdout.labelWidth, k.stdout.unbuffered = k.c.Stdout, width, true
	k.stderr.out, k.stderr.labelWidth, k.stderr.unbuffered = k.c.Stderr, width, true
}

// flushOutputs writes the last lines, which have no end.
func (k *controlCall) flushOutputs() {
	k.stdout.flushAll()
	k.stderr.flushAll()
}
