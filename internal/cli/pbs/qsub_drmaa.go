package pbs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// drmaaOption is the option by which the library libdrmaa submits.
const drmaaOption = "--drmaa"

// runDRMAA submits the job template on standard input. It prints in JSON the id of the
// job, the ids of a bulk, or an error number of DRMAA.
func runDRMAA(c *frame.Invocation) error {
	document, err := submitTemplate(c)
	var refused *qsub.TemplateError
	if errors.As(err, &refused) {
		return frame.PrintLine(c.Stdout, frame.JSONDocument{"drmaa_error": refused.Number, "error": refused.Text})
	}
	if err != nil {
		return err
	}
	return frame.PrintLine(c.Stdout, document)
}

func submitTemplate(c *frame.Invocation) (frame.JSONDocument, error) {
	src, err := frame.ReadLimited(c.Stdin, "standard input", roost.MaxJobFileBytes)
	if err != nil {
		return nil, frame.KindErrorf(roost.Invalid, "%v", err)
	}
	var t qsub.Template
	if err := json.Unmarshal(src, &t); err != nil {
		return nil, frame.KindErrorf(roost.Invalid, "standard input is no job template in JSON: %v", err)
	}
	category, err := categoryOptions(c, t.Attributes["drmaa_job_category"])
	if err != nil {
		return nil, err
	}
	caller, err := pbsframe.NewCaller(c)
	if err != nil {
		return nil, err
	}
	result, indexes, err := qsub.ParseTemplate(t, category, caller)
	if err != nil {
		return nil, err
	}
	if result.Server != "" {
		c.ScheddNode = result.Server
	}
	reply, err := jobs.SubmitJobs(c, []jobspec.Job{result.Job}, t.Key, nil)
	if err != nil {
		return nil, templateRefusal(err)
	}
	id := reply.GetIds()[0]
	if indexes == nil {
		return frame.JSONDocument{"job": id}, nil
	}
	return frame.JSONDocument{"job": id, "ids": bulkIDs(id, result.Job.Array, indexes)}, nil
}

// bulkIDs returns the ids of the jobs of a bulk in their order.
func bulkIDs(id string, array bool, indexes []int) []string {
	if !array {
		return []string{id}
	}
	number, host, dotted := strings.Cut(id, ".")
	if dotted {
		host = "." + host
	}
	ids := make([]string, len(indexes))
	for i, index := range indexes {
		ids[i] = fmt.Sprintf("%s[%d]%s", number, index, host)
	}
	return ids
}

// templateRefusal turns what the schedd refuses for good into an error of DRMAA. Others
// become exit statuses.
func templateRefusal(err error) error {
	var kind roost.ErrorKind
	if errors.As(frame.DecodeError(err), &kind) &&
		slices.Contains([]roost.ErrorKind{roost.Invalid, roost.NotFound, roost.BadConfig}, kind) {
		return &qsub.TemplateError{Number: qsub.DRMAADenied, Text: frame.ErrorText(err)}
	}
	return err
}

// categoryOptions returns the options of a job category. They are the words behind its
// name on its line of drmaa.conf, the user's own or that of the machine. The category
// "default" need not exist.
func categoryOptions(c *frame.Invocation, name string) ([]string, error) {
	own := c.Getenv("XDG_CONFIG_HOME")
	if own == "" {
		own = filepath.Join(c.Getenv("HOME"), ".config")
	}
	files := []string{filepath.Join(own, "roost", "drmaa.conf"), "/etc/roost/drmaa.conf"}
	wanted := name
	if wanted == "" {
		wanted = "default"
	}
	for _, file := range files {
		src, err := frame.UserFiles{}.Read(file, roost.MaxJobFileBytes)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, frame.KindErrorf(roost.NoInput, "%s: %v", file, err)
		}
		words, found, err := readCategory(bytes.NewReader(src), wanted)
		if err != nil {
			return nil, &qsub.TemplateError{Number: qsub.DRMAADenied, Text: file + ": " + err.Error()}
		}
		if found {
			return words, nil
		}
	}
	if name == "" || name == "default" {
		return nil, nil
	}
	return nil, &qsub.TemplateError{Number: qsub.DRMAADenied, Text: fmt.Sprintf("drmaa_job_category: there is no "+
		"category %q: a line that begins with its name in %s makes one", name, strings.Join(files, " or "))}
}

// readCategory finds the line of a category: its name, and options of qsub.
func readCategory(src io.Reader, name string) (words []string, found bool, err error) {
	lines := bufio.NewScanner(src)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		words, ok := qsub.SplitWords(line)
		if !ok {
			return nil, false, fmt.Errorf("line %d: a quote is not closed", n)
		}
		if words[0] == name {
			return words[1:], true, nil
		}
	}
	return nil, false, lines.Err()
}
