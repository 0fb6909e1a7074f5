package transfer

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// An output that goes to an object store has a name on its machine that says where:
// objectDir, the number of the output among those of the job, and its key. So a machine
// lists such outputs as it lists all others that get another name, and the rules for
// directories and patterns are the same.

// objectDir is the directory of such names. No file is ever there.
const objectDir = ".roost-objects"

// maxObjects bounds the objects of one attempt in each direction.
const maxObjects = 10_000

// objectInput is an object, or a prefix, that comes to a machine.
type objectInput struct {
	url  string
	name string // in the scratch directory
}

// objectFiles are the inputs and outputs of an attempt that are objects.
type objectFiles struct {
	objectInputs  []objectInput
	objectOutputs []string // URLs
}

func (o *objectFiles) hasObjects() bool { return len(o.objectInputs) > 0 || len(o.objectOutputs) > 0 }

// splitObjects takes the objects out of the inputs and outputs of a program.
func (pl *sandboxFiles) splitObjects() {
	var files, outputs []string
	for _, entry := range pl.inputs {
		from, to := jobad.SplitTransfer(entry)
		if jobad.IsObjectURL(from) {
			pl.objectInputs = append(pl.objectInputs, objectInput{from, to})
		} else {
			files = append(files, entry)
		}
	}
	if len(pl.objectInputs) > 0 {
		pl.inputs = files
	}
	for _, entry := range pl.Outputs {
		from, to := jobad.SplitTransfer(entry)
		if jobad.IsObjectURL(to) {
			entry = from + " => " + objectName(len(pl.objectOutputs), to)
			pl.objectOutputs = append(pl.objectOutputs, to)
		}
		outputs = append(outputs, entry)
	}
	if len(pl.objectOutputs) > 0 {
		pl.Outputs = outputs
	}
}

// objectName returns the name on a machine of an output. The key of a URL that is none
// is not used: the attempt does not start with it.
func objectName(number int, url string) string {
	u, err := jobad.ParseObjectURL(url)
	if err != nil || u.Key == "" {
		u.Key = "x"
	}
	return path.Join(objectDir, strconv.Itoa(number)) + "/" + u.Key
}

// isObjectEntry reports whether an output goes to an object store.
func isObjectEntry(e *wire.FileEntry) bool { return strings.HasPrefix(e.GetName(), objectDir+"/") }

// outputObject returns where an output goes, and which of the job's outputs it is of.
func (o *objectFiles) outputObject(e *wire.FileEntry) (u jobad.ObjectURL, number int, err error) {
	rest, _ := strings.CutPrefix(e.GetName(), objectDir+"/")
	digits, key, _ := strings.Cut(rest, "/")
	number, err = strconv.Atoi(digits)
	if err != nil || number < 0 || number >= len(o.objectOutputs) {
		return u, 0, fmt.Errorf("%.200q: %w: it is of no output of the job", e.GetName(), roost.Invalid)
	}
	if u, err = jobad.ParseObjectURL(o.objectOutputs[number]); err != nil {
		return u, number, err
	}
	below := strings.TrimSuffix(u.Key, "/")
	if key != below && !strings.HasPrefix(key, below+"/") {
		return u, number, fmt.Errorf("%.200q: %w: it is not below %s", e.GetName(), roost.Invalid, u)
	}
	u.Key = key
	return u, number, nil
}

// checkObjectURLs checks the objects of an attempt. Their names may have come from
// columns.
func (o *objectFiles) checkObjectURLs() error {
	var wrong error
	for _, in := range o.objectInputs {
		u, err := jobad.ParseObjectURL(in.url)
		switch {
		case err != nil:
			wrong = errors.Join(wrong, err)
		case u.Key == "":
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w: it is a whole bucket", in.url, roost.Invalid))
		case !filepath.IsLocal(in.name) || path.Clean(in.name) == ".":
			wrong = errors.Join(wrong, fmt.Errorf("%s => %.200q: %w: that is no name below the task's directory",
				in.url, in.name, roost.Invalid))
		}
	}
	for _, url := range o.objectOutputs {
		u, err := jobad.ParseObjectURL(url)
		if err == nil && u.Key == "" {
			err = fmt.Errorf("%s: %w: it is a whole bucket", url, roost.Invalid)
		}
		wrong = errors.Join(wrong, err)
	}
	return wrong
}

// objectPatterns are the names that the objects of an attempt get, as its machine
// compares them.
func (o *objectFiles) objectPatterns() (list []string) {
	for _, in := range o.objectInputs {
		list = append(list, "object => "+path.Clean(in.name))
	}
	return list
}
