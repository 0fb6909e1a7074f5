package jobad

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// IndexesOf reads the indexes that an ad gives the tasks of a job. It is nil where they
// have none but their own numbers.
func IndexesOf(text string, tasks int) *roost.ArrayIndexes {
	if text == "" {
		return nil
	}
	x, err := roost.ParseArrayIndexes(text)
	if err != nil || x.Len() != tasks {
		return nil
	}
	return &x
}

// CheckIndexes checks that an ad that names indexes has one for each task.
func CheckIndexes(ad *classad.Ad, tasks int) error {
	if _, ok := ad.Lookup(roost.AttrArrayIndex); !ok {
		return nil
	}
	text, _ := ad.Str(roost.AttrArrayIndex)
	switch x, err := roost.ParseArrayIndexes(text); {
	case err != nil:
		return fmt.Errorf("attribute %s: %w: %w", roost.AttrArrayIndex, roost.Invalid, err)
	case x.Len() != tasks:
		return fmt.Errorf("attribute %s: %w: %q are %d indexes, and the job has %d tasks", roost.AttrArrayIndex,
			roost.Invalid, text, x.Len(), tasks)
	}
	return nil
}
