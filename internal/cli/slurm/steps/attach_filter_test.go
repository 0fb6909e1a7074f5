package steps

import (
	"bytes"
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/cli/frame"
)

// TestAttachFilterArguments holds what sattach writes against what the step's machine
// reads, and against what the release before it wrote.
func TestAttachFilterArguments(t *testing.T) {
	for _, f := range []AttachFilter{
		{AllTasks, AllTasks, AllTasks, false}, {AllTasks, AllTasks, AllTasks, true}, {3, 3, 3, false},
		{0, AllTasks, 1, false}, {AllTasks, 2, 2, true},
	} {
		words := f.Arguments()
		var got AttachFilter
		if err := got.parse(words[1:]); err != nil || words[0] != "attach" || got != f {
			t.Errorf("%+v is written as %q, and read as %+v, %v", f, words, got, err)
		}
	}
	for _, words := range [][]string{{"x"}, {"-2"}, {"1", "2", "3", "four"}, {"1", "2", "3", labelWord, "5"},
		{"99999999999"}} {
		if err := new(AttachFilter).parse(words); err == nil {
			t.Errorf("%q is read as a filter", words)
		}
	}
	all := AttachFilter{AllTasks, AllTasks, AllTasks, false}
	if got := all.Arguments(); !slices.Equal(got, []string{"attach", "-1"}) {
		t.Errorf("all tasks are written as %q, which the release before does not read", got)
	}
}

// TestAttachLabels holds labels against srun's: as wide as the greatest number of a task,
// each line whole.
func TestAttachLabels(t *testing.T) {
	var out, errs bytes.Buffer
	c := &frame.Invocation{App: &frame.App{Stdout: &out, Stderr: &errs}}
	k := controlCall{c: c}
	k.filter = AttachFilter{AllTasks, AllTasks, AllTasks, true}
	k.openOutputs(12)
	k.stdout.write(3, []byte("a\nb"))
	k.stdout.write(11, []byte("c\n"))
	k.stdout.write(3, []byte("b\nlast"))
	k.stderr.write(0, []byte("bad\n"))
	k.flushOutputs()
	if want := " 3: a\n11: c\n 3: bb\n 3: last\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
	if want := " 0: bad\n"; errs.String() != want {
		t.Errorf("wrote %q to standard error, want %q", errs.String(), want)
	}
}
