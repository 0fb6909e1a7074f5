package jobs

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// listIDs lists the jobs whose ids are in a file, in one call. An id without a job is
// named, so that no id is without an answer.
func listIDs(c *frame.Invocation, sel *scheddapi.Selection) error {
	if len(sel.Selectors)+len(sel.States) > 0 || sel.Constraint != "" {
		return frame.UsageErrorf("--ids goes together with no other selection of jobs")
	}
	file := c.StringFlag("ids")
	src, err := ReadInput(c, file)
	if err != nil {
		return err
	}
	if sel.Selectors, err = readIDs(string(src)); err != nil {
		return frame.UsageErrorf("--ids %s: %v", file, err)
	}
	var found []*scheddapi.JobStatus
	var unknown []string
	if len(sel.Selectors) > 0 {
		if found, err = c.QueryJobs(&scheddapi.QueryRequest{Selection: sel, Table: true, History: true,
			Tasks: c.Flag("tasks"), Attributes: []string{roost.AttrJobID}}); err != nil {
			return err
		}
	}
	known := found[:0]
	for _, s := range found {
		if r := s.GetRefused(); r != nil {
			unknown = append(unknown, r.GetSelector())
			continue
		}
		known = append(known, s)
	}
	if c.WantsJSON() {
		return idsJSON(c, known, unknown)
	}
	for _, id := range unknown {
		fmt.Fprintf(c.Stderr, "%s: not found\n", document.PrintableText(id))
	}
	if len(known) > 0 {
		jobTable(c, known, true).Print(c.Stdout, c.OutScreen)
	}
	if len(unknown) > 0 {
		return frame.ExitError(roost.NotFound.ExitCode())
	}
	return nil
}

// idsJSON prints the jobs and the ids without one. These are no error: a program reads
// them from the answer.
func idsJSON(c *frame.Invocation, known []*scheddapi.JobStatus, unknown []string) error {
	records := make([]document.Job, len(known))
	for i, s := range known {
		records[i] = document.JobOf(s, c.Flag("tasks"))
	}
	if unknown == nil {
		unknown = []string{}
	}
	return frame.PrintJSON(c.Stdout, frame.JSONDocument{"jobs": records, "unknown": unknown})
}

// readIDs reads ids between white space. Each stands once, and begins with a digit, so
// that no word such as all is among them.
func readIDs(text string) (ids []string, err error) {
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		for _, id := range strings.Fields(line) {
			if id[0] < '0' || id[0] > '9' || strings.Contains(id, "-") && !strings.Contains(id, "[") &&
				!strings.Contains(id, ".") {
				return nil, fmt.Errorf("line %d: %q is no id of a job", i+1, id)
			}
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}
